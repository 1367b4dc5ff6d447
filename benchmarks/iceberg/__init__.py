"""Rows into Iceberg tables."""
