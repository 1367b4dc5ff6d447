"""A scan through a writer: the rows of a snapshot without those that memtables replace, and the rows of the memtables.

A memtable's row of a key is newer than every committed one, for it is committed later. So the rows of the table are those of
the snapshot whose key no memtable has, and of each key in memory the newest row, unless that deletes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.lsm.key_bytes import encode_key_bytes
from lakelet.model.row_arrays import Kinds
from lakelet.model.schema import TableSchema
from lakelet.predicate.row_filter import row_filter
from lakelet.read.evolve import evolve_batch
from lakelet.realtime.memtable import decode_values
from lakelet.table.read.table_scan import TableScan


@dataclass(frozen=True, slots=True)
class MemtableRows:
    """The values of a memtable when the scan was made."""

    schema: TableSchema
    values: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class WriterScan:
    """Rows of the table as the writer sees them at one moment. `memory` is what memtables held, oldest first."""

    scan: TableScan
    memory: tuple[MemtableRows, ...]

    @property
    def arrow_schema(self) -> pa.Schema:
        """The schema of the results."""
        return self.scan.arrow_schema

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, batch by batch."""
        left = self.scan.limit
        for batch in self._rows():
            part = batch if left is None else batch.slice(0, left)
            if part.num_rows:
                yield part
            if left is not None:
                left -= part.num_rows
                if left <= 0:
                    return

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as an Arrow stream."""
        return pa.RecordBatchReader.from_batches(self.arrow_schema, self.to_batches())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows for any library that takes Arrow streams."""
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> pa.Table:
        """All rows as an Arrow table."""
        return pa.Table.from_batches(self.to_batches(), self.arrow_schema)

    def count(self) -> int:
        """The number of rows."""
        return sum(batch.num_rows for batch in self.to_batches())

    def _rows(self) -> Iterator[pa.RecordBatch]:
        schema, wanted = self.scan.schema, self.arrow_schema
        key = schema.primary_keys
        recent, keys = self._in_memory()
        needed = tuple(dict.fromkeys([*self.scan.columns, *key]))
        limit = None if keys is not None else self.scan.limit
        for batch in replace(self.scan, columns=needed, limit=limit).to_batches():
            replaced = None if keys is None else pc.is_in(_keys(batch, schema), value_set=keys)
            yield _projected(batch if replaced is None else batch.filter(pc.invert(replaced)), wanted)
        condition = row_filter(self.scan.where, schema.fields)
        for rows, kinds in recent:
            kept = rows if kinds is None else rows.filter(pa.array(kinds & 1 == 0))
            yield _projected(condition.apply(kept), wanted)

    def _in_memory(self) -> tuple[list[tuple[pa.RecordBatch, Kinds | None]], pa.Array | None]:
        """The newest row of each key in memory with its kind, and all keys; without a primary key all rows, in their order."""
        schema = self.scan.schema
        found: list[tuple[pa.RecordBatch, Kinds | None]] = []
        keys: pa.Array | None = None
        for part in reversed(self.memory):
            rows, kinds = decode_values(part.values, part.schema)
            if part.schema.id != schema.id:
                rows = evolve_batch(rows, part.schema.fields, schema.fields)
            if schema.primary_keys:
                own = _keys(rows, schema)
                if keys is not None:
                    stays = pc.invert(pc.is_in(own, value_set=keys))
                    rows, own = rows.filter(stays), own.filter(stays)
                    kinds = None if kinds is None else kinds[stays.to_numpy(zero_copy_only=False)]
                keys = own if keys is None else pa.concat_arrays([keys, own])
            found.append((rows, kinds))
        return found[::-1], keys


def _keys(rows: pa.RecordBatch, schema: TableSchema) -> pa.Array:
    names = schema.primary_keys
    return encode_key_bytes([rows.column(name) for name in names], [schema.field(name).type for name in names])


def _projected(rows: pa.RecordBatch, wanted: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([rows.column(name) for name in wanted.names], schema=wanted)
