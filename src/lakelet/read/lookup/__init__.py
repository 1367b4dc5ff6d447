"""Lookups: rows of files by key."""
