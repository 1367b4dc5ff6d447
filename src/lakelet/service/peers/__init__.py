"""What the nodes of a cluster ask one another: rows that are not committed yet, and to let go of a table."""
