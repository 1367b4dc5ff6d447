"""Changes between two snapshots of a table, row by row."""
