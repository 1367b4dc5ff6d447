"""Queries of strangers: a locked DuckDB instance, allow-lists, and tables that whoever serves them gives."""
