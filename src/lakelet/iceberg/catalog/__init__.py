"""Iceberg catalogs, and the tables they hold."""
