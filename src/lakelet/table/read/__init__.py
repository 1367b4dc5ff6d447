"""Reads: scans, lookups by key, changes between versions."""
