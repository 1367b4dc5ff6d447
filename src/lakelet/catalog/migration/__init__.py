"""Adopting files: a folder of Parquet files becomes a table, or part of one, without being written anew."""

from lakelet.catalog.migration.migration import Migration, PartitionColumn, migrate

__all__ = ["Migration", "PartitionColumn", "migrate"]
