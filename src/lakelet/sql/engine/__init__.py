"""DuckDB as the query engine: its instance, types, settings and errors."""
