"""Reads: scans, lookups by primary key, changes between versions."""
