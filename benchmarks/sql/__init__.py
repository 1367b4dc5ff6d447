"""SQL on DuckDB."""
