"""Writers of data files: rows are converted to the schema, grouped by partition, written."""
