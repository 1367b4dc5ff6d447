"""Bytes to values and back: every file type of a table."""
