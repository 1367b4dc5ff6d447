"""Queries: resolve names, plan table scans, and run the text on DuckDB."""
