"""What the nodes of a cluster ask one another: rows that are not committed yet, and to serve a table no more."""
