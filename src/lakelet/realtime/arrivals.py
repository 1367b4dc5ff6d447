"""Rows of a table without a primary key, in the order of their arrival: few of them as the values of their records, large batches
as columns, which a flush or a scan takes as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.format.rows.binary_row_columns import encode_rows
from lakelet.format.rows.nested_columns import stored_columns, stored_types
from lakelet.format.wal.wal_record import PUT
from lakelet.model.arrow.arrow_types import arrow_schema
from lakelet.model.schema import TableSchema

# Smaller batches are kept as values: columns have costs of their own, however few rows they have.
LEAST_BLOCK_ROWS = 128


@dataclass(frozen=True, slots=True)
class RowBlock:
    """A batch of rows in the columns of a memtable, and the bytes that the memtable counts for it."""

    rows: pa.RecordBatch
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Arrivals:
    """What a memtable held at one moment."""

    parts: tuple[Sequence[bytes] | pa.RecordBatch, ...]

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def values(self, schema: TableSchema) -> list[bytes]:
        """The values of the records of all rows."""
        return [value for part in self.parts for value in _values(part, schema)]


def row_block(rows: pa.RecordBatch, schema: TableSchema, size_bytes: int) -> RowBlock:
    """A block of rows in a table's columns, which take so many bytes as values. It has memory of its own: a caller may change, or
    keep alive more than, what the rows came in."""
    wanted = memory_schema(schema)
    columns = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(rows.columns, wanted, strict=True)
    ]
    made = pa.RecordBatch.from_arrays(columns, schema=wanted)
    own = pa.ipc.read_record_batch(made.serialize(), wanted)
    return RowBlock(own, max(size_bytes, own.nbytes))


def memory_schema(schema: TableSchema) -> pa.Schema:
    """The columns of rows in memory: those of the table, of which each may be NULL."""
    return pa.schema([field.with_nullable(True) for field in arrow_schema(schema.fields)])


def _values(part: Sequence[bytes] | pa.RecordBatch, schema: TableSchema) -> Sequence[bytes]:
    if not isinstance(part, pa.RecordBatch):
        return part
    types = [field.type for field in schema.fields]
    encoded = encode_rows(stored_columns(part.columns, types), stored_types(types)).cast(pa.large_binary())
    prefix, separator = pa.scalar(bytes((PUT,)), pa.large_binary()), pa.scalar(b"", pa.large_binary())
    found: list[bytes] = pc.binary_join_element_wise(prefix, encoded, separator).to_pylist()
    return found
