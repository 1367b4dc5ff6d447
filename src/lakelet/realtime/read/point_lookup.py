"""Look up keys through a writer: the newest row in memory, else that of the snapshot.

Memory is looked at before the snapshot: what is flushed in between is in both. A `first-row` table is the other way round: the
snapshot's row of a key came first, and of the rows in memory the oldest one counts. Where a table has a `sequence.field`, rows of
a key in all memtables and in the snapshot are compared (`sequenced_memory`), and where its engine folds they are folded
(`folded_memory`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakelet.commit.metadata.snapshots import latest_snapshot
from lakelet.errors import InvalidError
from lakelet.format.wal.wal_record import DELETE
from lakelet.lsm.key_bytes import encode_key_bytes
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.read.evolve import evolve_batch
from lakelet.realtime.flush import is_in_snapshot
from lakelet.realtime.memtable import Memtable, decode_values, folds, is_sequenced, keeps_first
from lakelet.realtime.memtables import Memtables, SeenKeys
from lakelet.realtime.plain_row import PlainRows
from lakelet.realtime.read.folded_memory import folded_rows
from lakelet.realtime.read.known_version import KnownVersion
from lakelet.realtime.read.sequenced_memory import MemoryPart, winning_parts
from lakelet.storage.home import TableHome
from lakelet.table.read.kept_lookup import KeptLookup, find_kept_list, find_kept_row, find_kept_rows, kept_lookup

Hit = tuple[Memtable, bytes]


@dataclass(frozen=True, slots=True)
class FoundRows:
    """Rows of keys in all columns of the table, in parts: the places of their keys, and the rows. `seen` is what memory held."""

    parts: tuple[tuple[Sequence[int], pa.RecordBatch], ...]
    seen: SeenKeys

    def first(self) -> pa.RecordBatch | None:
        """The row of the only key."""
        return self.parts[0][1] if self.parts else None

    def in_places(self, count: int, columns: Sequence[str]) -> list[dict[str, Any] | None]:
        """Each key's row as a dict, None where there is none."""
        found: list[dict[str, Any] | None] = [None] * count
        for places, rows in self.parts:
            for place, row in zip(places, rows.select(list(columns)).to_pylist(), strict=True):
                found[place] = row
        return found


@dataclass(frozen=True, slots=True)
class PointLookup:
    """Lookups in the memtables of a writer, and in the newest snapshot of its table."""

    home: TableHome
    user: str
    memtables: Memtables

    def find(self, keys: pa.Table, schema: TableSchema) -> FoundRows:
        """The rows with these primary keys."""
        types = [schema.field(name).type for name in schema.primary_keys]
        columns = [keys.column(name).combine_chunks() for name in schema.primary_keys]
        encoded = encode_key_bytes(columns, types).to_pylist()
        with self.memtables.changed:
            for memtable in self.memtables.all:
                check_key(memtable.schema, schema)
            hits = [self.memtables.find(key) for key in encoded]
            seen = self.memtables.seen(encoded, hits)
            compares = is_sequenced(schema) or folds(schema)
            each = [self.memtables.find_each(key) for key in encoded] if compares else []
        if folds(schema):
            return FoundRows(self._folded_rows(keys, schema, each), seen)
        if is_sequenced(schema):
            return FoundRows(self._sequenced_rows(keys, schema, each), seen)
        if keeps_first(schema):
            return FoundRows(self._first_rows(keys, schema, hits), seen)
        return FoundRows(self._newest_rows(keys, schema, hits), seen)

    def find_recent(self, key: bytes, schema: TableSchema) -> bytes | None:
        """The value of a key that is surely the newest row, and of that schema: one in memory whose flush has not begun; `b""`
        where memory holds nothing of the key, so that the newest snapshot decides; None where the long way does."""
        with self.memtables.changed:
            for memtable in reversed(self.memtables.all):
                if memtable.schema.id != schema.id:
                    return None
                value = memtable.get(key)
                if value is not None:
                    is_settled = memtable.flush_base is None and not memtable.depends_on_others
                    return value if is_settled else None
        return b""

    def stored_row(
        self, key: Mapping[str, Any], schema: TableSchema, columns: Sequence[str] | None
    ) -> tuple[dict[str, Any] | None, KeptLookup | None]:
        """The newest snapshot's row of a key of which memory holds nothing, and what has its rows."""
        snapshot = latest_snapshot(self.home)
        row = find_kept_row(self.home, schema, snapshot, key, columns)
        return row, None if snapshot is None else kept_lookup(self.home, schema, snapshot)

    def known_row(self, key: dict[str, Any], known: KnownVersion) -> tuple[dict[str, Any] | None] | None:
        """The row of a key, or None for no row, in a tuple, where the known version is still the newest; else None."""
        encoded = known.plain.encode_key(key)
        if encoded is None:
            return None
        recent = self.find_recent(encoded, known.schema)
        # After memory, whose rows may have been committed and dropped meanwhile.
        if recent is None or not known.moment.is_now:
            return None
        if not recent:
            return known.rows.get_encoded(encoded) or known.rows.get(key, None)
        return (None if recent[0] == DELETE else known.plain.decode(recent[1:]),)

    def stored_rows(
        self, keys: Any, plain: PlainRows, schema: TableSchema, columns: Sequence[str] | None
    ) -> list[dict[str, Any] | None] | None:
        """The newest snapshot's rows of keys in a list of dicts, of none of which memory holds anything; None where the long way
        decides."""
        if any(len(one) for one in self.memtables.all):
            encoded = plain.encode_keys(keys)
            if encoded is None:
                return None
            with self.memtables.changed:
                if any(one.schema.id != schema.id or one.holds_any(encoded) for one in self.memtables.all):
                    return None
        return find_kept_list(self.home, schema, latest_snapshot(self.home), keys, columns)

    def _newest_rows(
        self, keys: pa.Table, schema: TableSchema, hits: Sequence[Hit | None]
    ) -> tuple[tuple[Sequence[int], pa.RecordBatch], ...]:
        # A flush that has not begun is in no snapshot.
        settled = all(hit is not None and hit[0].flush_base is None for hit in hits)
        snapshot = None if settled else latest_snapshot(self.home)
        held = {hit[0].sequence_number: hit[0] for hit in hits if hit is not None}
        committed = {
            number for number, one in held.items() if is_in_snapshot(self.home, self.user, one, snapshot, schema)
        }
        recent = {
            place: hit for place, hit in enumerate(hits) if hit is not None and hit[0].sequence_number not in committed
        }
        rest = np.array([place for place in range(len(hits)) if place not in recent], np.int64)
        parts = _decoded(recent, schema)
        if len(rest):
            rows, places = find_kept_rows(self.home, schema, snapshot, keys.take(rest), schema.names)
            parts += _parts(rows, rest[places])
        return tuple(parts)

    def _sequenced_rows(
        self, keys: pa.Table, schema: TableSchema, each: Sequence[Sequence[Hit]]
    ) -> tuple[tuple[Sequence[int], pa.RecordBatch], ...]:
        snapshot = latest_snapshot(self.home)
        winners = winning_parts(self._memory_parts(each, schema, snapshot), self.home, schema, snapshot)
        taken = {place for part in winners for place in part.places.tolist()}
        found_rows = [shown for part in winners for shown in part.present()]
        return (*found_rows, *self._stored(keys, schema, snapshot, taken))

    def _folded_rows(
        self, keys: pa.Table, schema: TableSchema, each: Sequence[Sequence[Hit]]
    ) -> tuple[tuple[Sequence[int], pa.RecordBatch], ...]:
        snapshot = latest_snapshot(self.home)
        parts = self._memory_parts(each, schema, snapshot)
        rows, places = folded_rows(parts, self.home, schema, snapshot)
        taken = {place for part in parts for place in part.places.tolist()}
        return (*_parts(rows, places), *self._stored(keys, schema, snapshot, taken))

    def _memory_parts(
        self, each: Sequence[Sequence[Hit]], schema: TableSchema, snapshot: Snapshot | None
    ) -> list[MemoryPart]:
        """What memtables that are not in the snapshot hold of keys."""
        held = {one.sequence_number: one for hits in each for one, _ in hits}
        parts: list[MemoryPart] = []
        for _, memtable in sorted(held.items()):
            if is_in_snapshot(self.home, self.user, memtable, snapshot, schema):
                continue
            found = [(place, value) for place, hits in enumerate(each) for one, value in hits if one is memtable]
            rows, kinds = decode_values([value for _, value in found], memtable.schema)
            if memtable.schema.id != schema.id:
                rows = evolve_batch(rows, memtable.schema.fields, schema.fields)
            parts.append(MemoryPart(rows, kinds, np.array([place for place, _ in found], np.int64)))
        return parts

    def _stored(
        self, keys: pa.Table, schema: TableSchema, snapshot: Snapshot | None, taken: Collection[int]
    ) -> list[tuple[Sequence[int], pa.RecordBatch]]:
        """The snapshot's rows of the keys that memory has not decided."""
        rest = np.array([place for place in range(keys.num_rows) if place not in taken], np.int64)
        if not len(rest):
            return []
        rows, places = find_kept_rows(self.home, schema, snapshot, keys.take(rest), schema.names)
        return _parts(rows, rest[places])

    def _first_rows(
        self, keys: pa.Table, schema: TableSchema, hits: Sequence[Hit | None]
    ) -> tuple[tuple[Sequence[int], pa.RecordBatch], ...]:
        rows, places = find_kept_rows(self.home, schema, latest_snapshot(self.home), keys, schema.names)
        stored = set(places.tolist())
        recent = {place: hit for place, hit in enumerate(hits) if hit is not None and place not in stored}
        return (*_parts(rows, places), *_decoded(recent, schema))


def check_key(held: TableSchema, schema: TableSchema) -> None:
    """InvalidError where rows in memory have another key than the newest schema."""
    if held.id == schema.id:
        return
    old = [held.field(name).type for name in held.primary_keys]
    if old != [schema.field(name).type for name in schema.primary_keys]:
        raise InvalidError("the type of the primary key was changed: flush the writer before it reads rows by key")


def _decoded(hits: dict[int, Hit], schema: TableSchema) -> list[tuple[Sequence[int], pa.RecordBatch]]:
    """The rows of hits in the columns of a schema; those that delete are none."""
    parts: list[tuple[Sequence[int], pa.RecordBatch]] = []
    grouped: dict[int, list[int]] = {}
    for place, (memtable, value) in hits.items():
        if value[0] != DELETE:
            grouped.setdefault(memtable.sequence_number, []).append(place)
    for places in grouped.values():
        held = hits[places[0]][0].schema
        rows, _ = decode_values([hits[place][1] for place in places], held)
        parts.append((places, rows if held.id == schema.id else evolve_batch(rows, held.fields, schema.fields)))
    return parts


def _parts(rows: pa.Table, places: NDArray[np.int64]) -> list[tuple[Sequence[int], pa.RecordBatch]]:
    return [(places.tolist(), rows.combine_chunks().to_batches()[0])] if rows.num_rows else []
