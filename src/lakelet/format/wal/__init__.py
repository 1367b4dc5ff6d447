"""The write-ahead log: its records, and its files."""
