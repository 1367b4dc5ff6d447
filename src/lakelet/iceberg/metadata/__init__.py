"""The single access path to the metadata of Iceberg tables."""
