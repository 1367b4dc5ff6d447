"""KEY_DYNAMIC: assign buckets by keys that are unique across partitions.

    the key exists …        deduplicate                            partial-update, aggregation        first-row
    nowhere                 a bucket with room                     a bucket with room                 a bucket with room
    in the same partition   its bucket                             its bucket                         its bucket
    in another partition    -D there, then a bucket with room      the old partition and bucket       the row is left out

The -D is the new row with the partition columns of the old place. Rows are applied in arrival order, several of one key in one
batch included: a key's rows are processed together, in their order, and all keys at once. (Schemas allow no `sequence.field`
here: nothing would supersede an older row in another partition.)

The place of a key is looked up once per distinct key: the table's keys, as of the base snapshot, are streamed and probed
against the incoming keys, so that memory grows with the write and not with the table. Each call of `assign` that brings new
keys costs a pass over the table's keys: a caller that can iterate over the rows twice gives all of them to `announce` first,
which takes one pass; a caller that cannot should use large batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakelet.errors import InvalidError
from lakelet.format.rows.binary_row_columns import decode_rows, encode_rows
from lakelet.model.bucket_mode import Place
from lakelet.model.commit_message import CommitMessage
from lakelet.model.row_arrays import Kinds, Mask
from lakelet.model.row_kind import RowKind
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.options import IGNORE_DELETE, MERGE_ENGINE, TableOptions
from lakelet.sink.bucket.bucket_room import BucketRoom
from lakelet.sink.bucket.dynamic_buckets import AssignerSettings
from lakelet.sink.bucket.extractors import Extracted, RowPartitionAllPrimaryKeyExtractor
from lakelet.sink.bucket.placers import Placed
from lakelet.sink.bucket.seen_keys import SeenKeys
from lakelet.sink.bucket.sorted_tiers import ABSENT
from lakelet.storage.home import TableHome

Longs = NDArray[np.int64]
Ints = NDArray[np.int32]


class Crossing(Enum):
    """What happens to a row whose key exists in another partition."""

    MOVES = "deduplicate"
    STAYS = "partial-update, aggregation"
    SKIPS = "first-row"

    @staticmethod
    def of(schema: TableSchema) -> Crossing:
        """The behaviour of the table's merge engine; InvalidError where its options contradict it."""
        options = TableOptions(schema.options)
        engine = str(options.get(MERGE_ENGINE))
        found = next((crossing for crossing in Crossing if engine in crossing.value.split(", ")), Crossing.SKIPS)
        if found is Crossing.MOVES and options.get(IGNORE_DELETE):
            raise InvalidError(
                "option 'ignore-delete' keeps a row in its old partition when its key moves to another: it cannot be used where "
                "the primary key lacks partition columns"
            )
        return found


@dataclass(frozen=True, slots=True)
class LiveKeys:
    """Some visible rows of one bucket in a snapshot, in the columns of the primary key."""

    partition: bytes
    bucket: int
    keys: pa.RecordBatch


KeyScan = Callable[[pa.Table], Iterator[LiveKeys]]
"""Given keys, as columns of the primary key: the rows of the base snapshot with these keys, and whatever others are at hand."""


@dataclass(frozen=True, slots=True)
class _Grouped:
    """The rows of a batch grouped by key, in their order within a key. `order` maps back to the batch."""

    order: Longs
    keys: Longs
    partitions: Ints
    is_first: Mask
    is_last: Mask


class CrossPartitionAssigner:
    """Assigns the rows of one write on top of `snapshot`.

    `scan` gives the visible keys of the snapshot. A `fresh` assigner ignores existing rows, for a write that replaces
    them. `counts` gives the approximate row counts of the table's buckets, so that new keys are assigned where there is room.
    """

    def __init__(
        self,
        home: TableHome,
        schema: TableSchema,
        snapshot: Snapshot | None,
        *,
        scan: KeyScan | None = None,
        counts: Mapping[Place, int] | None = None,
        fresh: bool = False,
    ) -> None:
        self._crossing = Crossing.of(schema)
        self._name = home.ids.uuid()
        self._assigned_at = 0 if snapshot is None else snapshot.id
        self._schema = schema
        self._fresh = fresh
        self._scan = None if fresh or snapshot is None else scan
        self._extractor = RowPartitionAllPrimaryKeyExtractor(schema)
        self._key_types = [schema.field(name).type for name in schema.primary_keys]
        self._settings = AssignerSettings.of(schema)
        self._counts: dict[bytes, dict[int, int]] = {}
        for (partition, bucket), count in (counts or {}).items():
            self._counts.setdefault(partition, {})[bucket] = count
        self._rooms: dict[int, BucketRoom] = {}
        self._numbers: dict[bytes, int] = {}
        self._partitions: list[bytes] = []
        self._seen = SeenKeys()
        self._at_partition = np.empty(0, np.int32)
        self._at_bucket = np.empty(0, np.int32)
        self._written: set[int] = set()

    @property
    def total_buckets(self) -> int:
        """What manifests record as the number of buckets."""
        return self._extractor.total_buckets

    @property
    def written_partitions(self) -> frozenset[bytes]:
        """The partitions that rows were written to, which a dynamic overwrite replaces; those that only lost rows are not."""
        return frozenset(self._partitions[number] for number in self._written)

    def assign(self, batch: pa.RecordBatch, kinds: Kinds | None = None) -> Placed:
        """The rows of a batch with their places, and the deletes that moving keys needs."""
        extracted = self._extractor.extract(batch)
        if not len(extracted):
            return Placed(batch, kinds, extracted.assigned(np.empty(0, np.int32)))
        keys = self._number(batch, extracted)
        own = np.array([self._partition(partition) for partition in extracted.partitions], np.int32)
        rows = _grouped(keys, own[extracted.partition_codes])
        if self._crossing is Crossing.MOVES:
            return self._moved(batch, rows, kinds)
        return self._stayed(batch, rows, kinds)

    def place(self, batch: pa.RecordBatch, kinds: Kinds | None) -> Iterator[Placed]:
        """The same, as `Placed`."""
        yield self.assign(batch, kinds)

    def complete(self, messages: tuple[CommitMessage, ...]) -> tuple[CommitMessage, ...]:
        """The messages with the snapshot in which keys were looked up, and the assigner of their rows."""
        if self._fresh:
            return messages
        return tuple(replace(message, assigned_at=self._assigned_at, assigner=self._name) for message in messages)

    def abort(self) -> None:
        """Nothing was written."""

    def announce(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Look up the keys of all these batches in one pass over the table; only the columns of the primary key are needed."""
        before = len(self._seen)
        new: list[pa.RecordBatch] = []
        for batch in batches:
            columns = batch.select(list(self._schema.primary_keys))
            known = len(self._seen)
            new.append(self._new_keys(columns, self._seen.number(self._encoded(columns)), known))
        self._look_up(new, before)

    def _number(self, batch: pa.RecordBatch, extracted: Extracted) -> Longs:
        """The number of each row's key; looks up the places of keys that are new to this write."""
        before = len(self._seen)
        keys = self._seen.number(extracted.primary_keys)
        if len(self._seen) > before:
            columns = batch.select(list(self._schema.primary_keys))
            self._look_up([self._new_keys(columns, keys, before)], before)
        return keys

    def _new_keys(self, columns: pa.RecordBatch, keys: Longs, before: int) -> pa.RecordBatch:
        """One row of each key that was first seen in these rows."""
        first = np.empty(len(self._seen) - before, np.int64)
        rows = np.flatnonzero(keys >= before)[::-1]
        # Written backwards, so that one row of each key is left, the first.
        first[keys[rows] - before] = rows
        return columns.take(pa.array(first))

    def _look_up(self, wanted: Sequence[pa.RecordBatch], before: int) -> None:
        """Look up the places of the keys that were numbered from `before` on."""
        count = len(self._seen) - before
        if not count:
            return
        self._at_partition = np.concatenate([self._at_partition, np.full(count, ABSENT, np.int32)])
        self._at_bucket = np.concatenate([self._at_bucket, np.full(count, ABSENT, np.int32)])
        if self._scan is not None:
            for live in self._scan(pa.Table.from_batches(wanted)):
                self._meet(live, before)

    def _encoded(self, columns: pa.RecordBatch) -> pa.Array:
        return encode_rows([columns.column(name) for name in self._schema.primary_keys], self._key_types)

    def _meet(self, live: LiveKeys, before: int) -> None:
        numbers = self._seen.find(self._encoded(live.keys))
        # The places that this write assigned to earlier keys are newer than those of the snapshot.
        numbers = numbers[numbers >= before]
        if len(numbers):
            self._at_partition[numbers] = self._partition(live.partition)
            self._at_bucket[numbers] = live.bucket

    def _moved(self, batch: pa.RecordBatch, rows: _Grouped, kinds: Kinds | None) -> Placed:
        """Move each key with its row, and delete it at its old place. A stay is a run of rows of a key in one partition."""
        previous = np.concatenate([[ABSENT], rows.partitions[:-1]]).astype(np.int32)
        previous[rows.is_first] = self._at_partition[rows.keys[rows.is_first]]
        moves = previous != rows.partitions
        begins = rows.is_first | moves
        stay = np.cumsum(begins) - 1
        buckets_of_stays = np.empty(int(stay[-1]) + 1, np.int32)
        found = rows.is_first & ~moves
        buckets_of_stays[stay[found]] = self._at_bucket[rows.keys[found]]
        buckets_of_stays[stay[moves]] = self._open(rows, moves)
        buckets = buckets_of_stays[stay]
        left = np.flatnonzero(moves & (previous != ABSENT))
        left_buckets = buckets[left - 1]
        at_first = rows.is_first[left]
        left_buckets[at_first] = self._at_bucket[rows.keys[left[at_first]]]
        self._remember(rows, rows.partitions, buckets)
        self._written.update(np.unique(rows.partitions).tolist())
        if not len(left):
            return self._result(batch, rows.order, rows.partitions, buckets, kinds, replaced=False)
        # A delete comes right before the row that caused it.
        source = np.concatenate([rows.order[left], rows.order])
        turn = np.concatenate([rows.order[left] * 2, rows.order * 2 + 1])
        given = np.zeros(batch.num_rows, np.int8) if kinds is None else kinds
        every = np.concatenate([np.full(len(left), RowKind.DELETE, np.int8), given[rows.order]])
        places = np.concatenate([previous[left], rows.partitions]), np.concatenate([left_buckets, buckets])
        order = np.argsort(turn)
        moved = self._in_partitions(batch.take(pa.array(source[order])), places[0][order])
        return Placed(moved, every[order], self._places(places[0][order], places[1][order]))

    def _stayed(self, batch: pa.RecordBatch, rows: _Grouped, kinds: Kinds | None) -> Placed:
        """Keep each key at its first place: rows for another partition are redirected there, or dropped."""
        group = np.cumsum(rows.is_first) - 1
        first_keys = rows.keys[rows.is_first]
        partitions, buckets = self._at_partition[first_keys], self._at_bucket[first_keys]
        new = partitions == ABSENT
        partitions[new] = rows.partitions[rows.is_first][new]
        opening = rows.is_first.copy()
        opening[rows.is_first] = new
        buckets[new] = self._open(rows, opening)
        at_partition, at_bucket = partitions[group], buckets[group]
        self._remember(rows, at_partition, at_bucket)
        self._written.update(np.unique(rows.partitions).tolist())
        if self._crossing is Crossing.STAYS:
            elsewhere = bool((at_partition != rows.partitions).any())
            return self._result(batch, rows.order, at_partition, at_bucket, kinds, replaced=elsewhere)
        kept = at_partition == rows.partitions
        return self._result(batch, rows.order[kept], at_partition[kept], at_bucket[kept], kinds, replaced=False)

    def _result(
        self,
        batch: pa.RecordBatch,
        order: Longs,
        partitions: Ints,
        buckets: Ints,
        kinds: Kinds | None,
        *,
        replaced: bool,
    ) -> Placed:
        """The rows in arrival order, with their places."""
        back = np.argsort(order)
        order = order[back]
        whole = len(order) == batch.num_rows
        rows = batch if whole else batch.take(pa.array(order))
        if replaced:
            rows = self._in_partitions(rows, partitions[back])
        own_kinds = None if kinds is None else kinds[order]
        return Placed(rows, own_kinds, self._places(partitions[back], buckets[back]))

    def _places(self, partitions: Ints, buckets: Ints) -> Extracted:
        return Extracted(self._partitions, partitions.astype(np.int64), buckets)

    def _in_partitions(self, rows: pa.RecordBatch, partitions: Ints) -> pa.RecordBatch:
        """The rows with the partition columns of the places they go to."""
        used, codes = np.unique(partitions, return_inverse=True)
        distinct = pa.array([self._partitions[number] for number in used.tolist()], pa.binary())
        values = decode_rows(distinct, self._schema.partition_types)
        for name, column in zip(self._schema.partition_keys, values, strict=True):
            index = rows.schema.get_field_index(name)
            field = rows.schema.field(index)
            rows = rows.set_column(index, field, column.cast(field.type).take(pa.array(codes)))
        return rows

    def _open(self, rows: _Grouped, opening: Mask) -> Ints:
        """Assign buckets to the rows that start a stay in a partition, in arrival order."""
        at = np.flatnonzero(opening)
        buckets = np.empty(len(at), np.int32)
        partitions = rows.partitions[at]
        arrival = np.argsort(rows.order[at])
        for number in np.unique(partitions).tolist():
            own = arrival[partitions[arrival] == number]
            buckets[own] = self._room(number).take(len(own))
        return buckets

    def _room(self, number: int) -> BucketRoom:
        room = self._rooms.get(number)
        if room is None:
            counts = self._counts.get(self._partitions[number], {})
            room = self._rooms[number] = BucketRoom(counts, target=self._settings.target, most=self._settings.most)
        return room

    def _remember(self, rows: _Grouped, partitions: Ints, buckets: Ints) -> None:
        self._at_partition[rows.keys[rows.is_last]] = partitions[rows.is_last]
        self._at_bucket[rows.keys[rows.is_last]] = buckets[rows.is_last]

    def _partition(self, partition: bytes) -> int:
        number = self._numbers.get(partition)
        if number is None:
            number = self._numbers[partition] = len(self._partitions)
            self._partitions.append(partition)
        return number


def _grouped(keys: Longs, partitions: Ints) -> _Grouped:
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    is_first = np.ones(len(keys), bool)
    is_first[1:] = ordered[1:] != ordered[:-1]
    is_last = np.ones(len(keys), bool)
    is_last[:-1] = is_first[1:]
    return _Grouped(order, ordered, partitions[order], is_first, is_last)
