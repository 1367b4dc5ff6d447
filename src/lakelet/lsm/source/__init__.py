"""Sources of sorted rows: what merges and lookups read, files or not."""
