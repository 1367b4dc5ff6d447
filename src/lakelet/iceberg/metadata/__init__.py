"""The one door to the metadata of Iceberg tables."""
