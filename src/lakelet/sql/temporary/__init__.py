"""Temporary tables and views: DuckDB's own, for as long as the session lives."""
