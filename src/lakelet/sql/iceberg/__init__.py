"""Statements and queries over Iceberg tables, which are named catalog.database.table."""
