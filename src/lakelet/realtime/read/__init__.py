"""Reads through a writer: rows by key, scans and ranges of keys, over memtables and a snapshot."""
