"""Batches without columns, for counts of rows."""

from __future__ import annotations

import pyarrow as pa


def only_rows(count: int) -> pa.RecordBatch:
    """A batch of a number of rows without columns."""
    return pa.RecordBatch.from_arrays([pa.nulls(count)], names=[""]).select([])


def joined(tables: list[pa.Table], schema: pa.Schema) -> pa.Table:
    """Concatenate tables; Arrow's own concatenation loses the number of rows where there are no columns."""
    if not schema.names:
        return pa.Table.from_batches([only_rows(sum(table.num_rows for table in tables))])
    return pa.concat_tables(tables) if tables else schema.empty_table()
