"""Rows of which only the number is asked for: batches without columns."""

from __future__ import annotations

import pyarrow as pa


def only_rows(count: int) -> pa.RecordBatch:
    """So many rows without columns."""
    return pa.RecordBatch.from_arrays([pa.nulls(count)], names=[""]).select([])


def joined(tables: list[pa.Table], schema: pa.Schema) -> pa.Table:
    """The rows of all tables; Arrow forgets how many there are where they have no columns."""
    if not schema.names:
        return pa.Table.from_batches([only_rows(sum(table.num_rows for table in tables))])
    return pa.concat_tables(tables) if tables else schema.empty_table()
