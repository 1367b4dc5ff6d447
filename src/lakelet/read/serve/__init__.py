"""Serving reads: rows by key from local lookup files."""
