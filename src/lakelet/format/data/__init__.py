"""Data files: Parquet, ORC and Avro, read and written."""
