"""Whether Lakelet can read and write a table at all."""

from __future__ import annotations

from lakelet.model.schema import TableSchema, check_bucket_count
from lakelet.options import check_stored


def check_usable(schema: TableSchema) -> None:
    """Refuses tables with options whose meaning is not implemented: their rows would come out wrong."""
    check_stored(schema.options)
    check_bucket_count(schema)
