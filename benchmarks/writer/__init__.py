"""Measures `table.writer()`."""
