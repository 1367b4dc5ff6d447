"""Sources of sorted rows for merges and lookups: files and memory."""
