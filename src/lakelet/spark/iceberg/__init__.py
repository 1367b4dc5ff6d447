"""Iceberg tables on Spark: frames, inserts, the data source "lakelet-iceberg"."""
