"""Import and export: CSV, JSON, NDJSON and Parquet files."""
