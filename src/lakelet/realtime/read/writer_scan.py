"""A scan through a writer: the rows of a snapshot without those that memtables replace, and the rows of the memtables.

A memtable's row of a key is newer than every committed one, for it is committed later. So the rows of the table are those of
the snapshot whose key no memtable has, and of each key in memory the newest row, unless that deletes it. A `first-row` table is
the other way round: of each key in memory the oldest row, unless the snapshot has one. Where a table has a `sequence.field`,
sequences decide which row of a key counts, of all memtables and the snapshot (`sequenced_memory`). Where its engine folds, the
row of each key in memory is made of all its versions and of what files hold (`folded_memory`).

A range of keys comes in the order of keys: buckets and memory are merged, a batch of each at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelet.lsm.key_bytes import encode_key_bytes
from lakelet.model.row_arrays import Kinds
from lakelet.model.schema import TableSchema
from lakelet.predicate.row_filter import row_filter
from lakelet.predicate.tree import Predicate, conjunction
from lakelet.read.evolve import evolve_batch
from lakelet.realtime.memtable import HeldRows, decode_held, folds, is_sequenced, keeps_first
from lakelet.realtime.read.folded_memory import folded_rows
from lakelet.realtime.read.key_order import merge_in_order
from lakelet.realtime.read.sequenced_memory import MemoryPart, winning_parts
from lakelet.scan.plan import Where
from lakelet.table.read.key_range import KeyRange
from lakelet.table.read.point_read import find_rows
from lakelet.table.read.table_scan import TableScan


@dataclass(frozen=True, slots=True)
class MemtableRows:
    """The rows of a memtable when the scan was made."""

    schema: TableSchema
    values: HeldRows


@dataclass(frozen=True, slots=True)
class WriterScan:
    """Rows of the table as the writer sees them at one moment. `memory` is what memtables held, oldest first; with `keys`, only
    the rows with keys in that range."""

    scan: TableScan
    memory: tuple[MemtableRows, ...]
    keys: KeyRange | None = None

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

    def overlay(self) -> tuple[pa.Table, pa.Table]:
        """The rows in memory that win against all others of their keys, deletions left out, and the primary keys of all that win:
        the committed rows with these keys are superseded. Not for tables that keep the first row of a key."""
        schema = self.scan.schema
        if folds(schema):
            parts = self._parts()
            rows, _ = folded_rows(parts, self.scan.home, schema, self.scan.snapshot)
            return rows, pa.Table.from_batches([part.rows.select(list(schema.primary_keys)) for part in parts])
        if is_sequenced(schema):
            winners = self._sequenced()
            rows = pa.Table.from_batches([part.rows for part in winners])
            shown = [batch for part in winners for _, batch in part.present()]
            return pa.Table.from_batches(shown, rows.schema), rows.select(list(schema.primary_keys))
        found: list[pa.RecordBatch] = []
        replaced: list[pa.RecordBatch] = []
        keys: pa.Array | None = None
        for part in reversed(self.memory):
            rows, kinds, keys = self._unseen(part, keys)
            replaced.append(rows.select(list(schema.primary_keys)))
            found.append(rows if kinds is None else rows.filter(pa.array(kinds & 1 == 0)))
        return pa.Table.from_batches(found[::-1]), pa.Table.from_batches(replaced)

    def _rows(self) -> Iterator[pa.RecordBatch]:
        schema, wanted = self.scan.schema, self.arrow_schema
        recent, keys = self._in_memory()
        columns = tuple(dict.fromkeys([*self.scan.columns, *schema.primary_keys]))
        scan = replace(self.scan, columns=columns, limit=self.scan.limit if keys is None else None)
        if self.keys is None:
            for batch in scan.to_batches():
                yield _projected(self._without(batch, keys), wanted)
            for rows in recent:
                yield _projected(rows, wanted)
            return
        scan = replace(scan, where=_both(self.keys.condition, scan.where), limit=None, ordered=True)
        streams = [self._in_range(scan.read(split), keys) for split in scan.plan().splits]
        held = [rows.select(list(columns)) for rows in recent]
        merged = merge_in_order([*streams, self._sorted(held)], lambda rows: _keys(rows, schema))
        for batch in merged:
            yield _projected(batch, wanted)

    def _in_range(self, batches: Iterator[pa.RecordBatch], replaced: pa.Array | None) -> Iterator[pa.RecordBatch]:
        assert self.keys is not None
        for batch in batches:
            inside = self.keys.mask(_keys(batch, self.scan.schema))
            yield self._without(batch.filter(inside), replaced)

    def _sorted(self, held: Sequence[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows in memory that are in the range, in the order of their keys."""
        found = [batch for batch in self._in_range(iter(held), None) if batch.num_rows]
        if found:
            (rows,) = pa.Table.from_batches(found).combine_chunks().to_batches()
            yield rows.take(pc.sort_indices(_keys(rows, self.scan.schema)))

    def _without(self, rows: pa.RecordBatch, replaced: pa.Array | None) -> pa.RecordBatch:
        if replaced is None:
            return rows
        return rows.filter(pc.invert(pc.is_in(_keys(rows, self.scan.schema), value_set=replaced)))

    def _in_memory(self) -> tuple[list[pa.RecordBatch], pa.Array | None]:
        """The rows in memory that count and match the condition, and the keys whose rows of the snapshot they replace; without a
        primary key all rows, in their order."""
        first = keeps_first(self.scan.schema)
        condition = row_filter(self.scan.where, self.scan.schema.fields)
        if folds(self.scan.schema):
            parts = self._parts()
            if not parts:
                return [], None
            folded, _ = folded_rows(parts, self.scan.home, self.scan.schema, self.scan.snapshot)
            every = pa.concat_arrays([_keys(part.rows, self.scan.schema) for part in parts])
            return [condition.apply(batch) for batch in folded.combine_chunks().to_batches()], every
        if is_sequenced(self.scan.schema):
            winners = self._sequenced()
            replaced = [_keys(part.rows, self.scan.schema) for part in winners]
            shown = [condition.apply(rows) for part in winners for _, rows in part.present()]
            return shown, pa.concat_arrays(replaced) if replaced else None
        found: list[pa.RecordBatch] = []
        keys: pa.Array | None = None
        for part in self.memory if first else reversed(self.memory):
            rows, kinds, keys = self._unseen(part, keys)
            kept = rows if kinds is None else rows.filter(pa.array(kinds & 1 == 0))
            found.append(condition.apply(self._not_stored(kept) if first else kept))
        return found if first else found[::-1], None if first else keys

    def _sequenced(self) -> list[MemoryPart]:
        """The rows in memory that win against all others of their keys."""
        parts = self._parts()
        return winning_parts(parts, self.scan.home, self.scan.schema, self.scan.snapshot) if parts else []

    def _parts(self) -> list[MemoryPart]:
        """The rows of each memtable, with the numbers of their keys."""
        schema = self.scan.schema
        decoded = [(part.schema, *decode_held(part.values, part.schema)) for part in self.memory]
        parts = [
            (rows if held.id == schema.id else evolve_batch(rows, held.fields, schema.fields), kinds)
            for held, rows, kinds in decoded
        ]
        if not parts:
            return []
        numbers = pa.chunked_array([_keys(rows, schema) for rows, _ in parts]).combine_chunks().dictionary_encode()
        places = numbers.indices.to_numpy().astype(np.int64)
        starts = np.cumsum([0, *(rows.num_rows for rows, _ in parts)])
        return [
            MemoryPart(rows, kinds, places[start : start + rows.num_rows])
            for (rows, kinds), start in zip(parts, starts[:-1], strict=True)
        ]

    def _unseen(
        self, part: MemtableRows, seen: pa.Array | None
    ) -> tuple[pa.RecordBatch, Kinds | None, pa.Array | None]:
        """The rows of a memtable whose keys were not seen before, what they do, and all keys that were seen."""
        schema = self.scan.schema
        rows, kinds = decode_held(part.values, part.schema)
        if part.schema.id != schema.id:
            rows = evolve_batch(rows, part.schema.fields, schema.fields)
        if not schema.primary_keys:
            return rows, kinds, None
        own = _keys(rows, schema)
        if seen is not None:
            stays = pc.invert(pc.is_in(own, value_set=seen))
            rows, own = rows.filter(stays), own.filter(stays)
            kinds = None if kinds is None else kinds[stays.to_numpy(zero_copy_only=False)]
        return rows, kinds, own if seen is None else pa.concat_arrays([seen, own])

    def _not_stored(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows whose keys the snapshot does not have."""
        scan, names = self.scan, list(self.scan.schema.primary_keys)
        _, places = find_rows(
            scan.home, scan.schema, scan.snapshot, pa.Table.from_batches([rows.select(names)]), names[:1]
        )
        stays = np.ones(rows.num_rows, bool)
        stays[places] = False
        return rows.filter(pa.array(stays))


def _both(condition: Predicate | None, where: Where) -> Where:
    """A condition that prunes, beside the caller's; beside an expression of pyarrow it is left out."""
    if condition is None or isinstance(where, pc.Expression):
        return where
    return condition if where is None else conjunction([condition, where])


def _keys(rows: pa.RecordBatch, schema: TableSchema) -> pa.Array:
    names = schema.primary_keys
    return encode_key_bytes([rows.column(name) for name in names], [schema.field(name).type for name in names])


def _projected(rows: pa.RecordBatch, wanted: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([rows.column(name) for name in wanted.names], schema=wanted)
