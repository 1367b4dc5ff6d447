"""Tags, branches and consumers of a table."""
