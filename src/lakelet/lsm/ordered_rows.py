"""Reorder the rows of a table into batches, beyond the 2 GiB limit of Arrow's text columns.

A column of text in one piece ends at 2 GiB. Below half of that a table is put into one piece and rows are taken from it at
once; above, columns get 64-bit offsets and rows are taken batch by batch, each small enough for 32-bit ones again.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

_MOST_BYTES = 1 << 30


def fits_one_piece(table: pa.Table) -> bool:
    """Whether the columns of a table can be put into one piece each."""
    return bool(table.nbytes <= _MOST_BYTES)


def rows_in_order(table: pa.Table, rows: NDArray[np.int64], batch_rows: int) -> Iterator[pa.RecordBatch]:
    """The rows of these numbers, in batches of a maximum row count."""
    if fits_one_piece(table):
        whole = pa.concat_batches(table.to_batches()) if table.num_rows else table.schema.empty_table().to_batches()[0]
        for start in range(0, len(rows), batch_rows):
            yield whole.take(pa.array(rows[start : start + batch_rows]))
        return
    columns = [_one_piece(column) for column in table.columns]
    step = max(1, min(batch_rows, _MOST_BYTES // 4 * table.num_rows // table.nbytes))
    for start in range(0, len(rows), step):
        yield from _taken(columns, table.schema, rows[start : start + step])


def _taken(columns: list[pa.Array], schema: pa.Schema, rows: NDArray[np.int64]) -> Iterator[pa.RecordBatch]:
    places = pa.array(rows)
    taken = [pc.take(column, places) for column in columns]
    if len(rows) > 1 and sum(column.nbytes for column in taken) > _MOST_BYTES:
        # The long ones came together.
        middle = len(rows) // 2
        yield from _taken(columns, schema, rows[:middle])
        yield from _taken(columns, schema, rows[middle:])
        return
    arrays = [column.cast(field.type) for column, field in zip(taken, schema, strict=True)]
    yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _one_piece(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.cast(_with_long_offsets(column.type)).chunks)


def _with_long_offsets(arrow: pa.DataType) -> pa.DataType:
    types = pa.types
    if types.is_string(arrow):
        return pa.large_string()
    if types.is_binary(arrow):
        return pa.large_binary()
    if types.is_struct(arrow):
        return pa.struct([_field(arrow.field(number)) for number in range(arrow.num_fields)])
    if types.is_list(arrow):
        return pa.large_list(_field(arrow.value_field))
    if types.is_map(arrow):
        return pa.map_(_field(arrow.key_field), _field(arrow.item_field))
    return arrow


def _field(field: pa.Field) -> pa.Field:
    return field.with_type(_with_long_offsets(field.type))
