"""Data files: rows fitted to the schema, grouped by partition, written."""
