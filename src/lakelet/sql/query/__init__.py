"""Queries: names resolved, tables planned, text run by DuckDB."""
