"""Merge engines: how the rows of one key become one row."""
