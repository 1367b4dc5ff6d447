"""Check that Lakelet can read and write a table at all."""

from __future__ import annotations

from lakelet.lsm.engine.table_engine import table_engine
from lakelet.model.schema import TableSchema, check_bucket_count
from lakelet.options import check_stored


def check_usable(schema: TableSchema) -> None:
    """Reject tables with options that are not implemented: their rows would be read wrong."""
    check_stored(schema.options)
    check_bucket_count(schema)
    if schema.primary_keys:
        table_engine(schema)
