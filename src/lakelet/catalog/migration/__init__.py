"""Migration: adopt the Parquet files of a folder into a table, without rewriting them."""

from lakelet.catalog.migration.migration import Migration, PartitionColumn, migrate

__all__ = ["Migration", "PartitionColumn", "migrate"]
