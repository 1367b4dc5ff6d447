"""HASH_DYNAMIC: assign buckets by an index of key hashes; a partition gets new buckets as its keys grow in number.

    key hash ──► known in the partition ──► its bucket, permanently
            └──► new ──► the assigner of the hash ──► `bucket_room`: a bucket of that assigner with room

A hash belongs to one of `assigners`, and so does a bucket, so that several assigners of one partition never give a
key two buckets; one process may run all of them or just one. There are as many as `dynamic-bucket.initial-buckets` says, else
`dynamic-bucket.assigner-parallelism`, else one, but never more than `dynamic-bucket.max-buckets`.

The assignment is a function of the snapshot's indexes and of the arrival order of distinct hashes, independent of batch
boundaries. A caller that has all hashes of a write calls `announce` first; then it is independent of the order too, a function
of the snapshot and the set of keys alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakelet.errors import InvalidError
from lakelet.format.index.hash_index import ascending
from lakelet.model.bucket_mode import Place
from lakelet.model.commit_message import CommitMessage
from lakelet.model.row_arrays import Kinds
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.options import (
    DYNAMIC_BUCKET_ASSIGNER_PARALLELISM,
    DYNAMIC_BUCKET_INITIAL_BUCKETS,
    DYNAMIC_BUCKET_MAX_BUCKETS,
    DYNAMIC_BUCKET_TARGET_ROW_NUM,
    TableOptions,
)
from lakelet.sink.bucket.bucket_room import MOST_BUCKETS, UNBOUNDED, BucketRoom
from lakelet.sink.bucket.channels import partition_hashes, select_assigners
from lakelet.sink.bucket.extractors import DynamicBucketRowKeyExtractor, Extracted
from lakelet.sink.bucket.hash_indexes import BucketHashes, HashIndexes
from lakelet.sink.bucket.placers import Placed
from lakelet.sink.bucket.sorted_tiers import ABSENT, SortedTiers
from lakelet.storage.home import TableHome

Hashes = NDArray[np.int32]
Buckets = NDArray[np.int32]
_SEARCHES = 2
_ROW_BITS = 32


@dataclass(frozen=True, slots=True)
class AssignerSettings:
    """The target number of keys per bucket, the maximum number of buckets, and the number of assigners that share them."""

    target: int
    most: int = UNBOUNDED
    assigners: int = 1

    @staticmethod
    def of(schema: TableSchema, assigners: int | None = None) -> AssignerSettings:
        """The settings of a table's options; `assigners` overrides their number."""
        options = TableOptions(schema.options)
        most = options.get(DYNAMIC_BUCKET_MAX_BUCKETS)
        asked = options.get(DYNAMIC_BUCKET_INITIAL_BUCKETS) or options.get(DYNAMIC_BUCKET_ASSIGNER_PARALLELISM)
        count = min(assigners or asked or 1, MOST_BUCKETS)
        return AssignerSettings(
            options.get(DYNAMIC_BUCKET_TARGET_ROW_NUM), most, count if most == UNBOUNDED else min(count, most)
        )

    def room(self, counts: dict[int, int], assigner: int) -> BucketRoom:
        """The buckets of one assigner."""
        return BucketRoom(counts, target=self.target, most=self.most, first=assigner, step=self.assigners)


@dataclass(slots=True)
class _Partition:
    """The index of one partition: sorted hashes of each bucket in the snapshot, and those added by this write."""

    hash: np.int32
    counts: dict[int, int] = field(default_factory=dict)
    indexed: list[tuple[int, Hashes]] = field(default_factory=list)
    added_hashes: SortedTiers = field(default_factory=SortedTiers)
    rooms: dict[int, BucketRoom] = field(default_factory=dict)
    owners: set[int] = field(default_factory=set)
    added: dict[int, list[Hashes]] = field(default_factory=dict)

    def find(self, hashes: Hashes) -> NDArray[np.int64]:
        """The buckets of hashes, which are ascending; ABSENT for new ones."""
        found = self.added_hashes.find(hashes)
        # numpy releases the GIL while it searches.
        with ThreadPoolExecutor(_SEARCHES) as pool:
            hits = pool.map(lambda one: _members(one[1], hashes), self.indexed)
            for (bucket, _), hit in zip(self.indexed, hits, strict=True):
                found[hit] = bucket
        return found


class DynamicBucketAssigner:
    """Assigns the rows of one write. `fresh` ignores existing keys, for a write that replaces its partitions.

    A distributed task need not read the indexes of whole partitions in two cases. Where known keys were looked up before the
    shuffle, an assigner gets new ones alone: `counts` gives the key counts of the buckets, and no index is read to assign them.
    Where the table is `aligned`, every key being in a bucket of its own assigner, only the buckets of assigners with incoming
    rows are read.
    """

    def __init__(
        self,
        home: TableHome,
        schema: TableSchema,
        snapshot: Snapshot | None,
        *,
        live: Collection[Place] = (),
        keys_of: BucketHashes | None = None,
        assigner: int | None = None,
        assigners: int | None = None,
        fresh: bool = False,
        counts: Mapping[Place, int] | None = None,
        aligned: bool = False,
    ) -> None:
        self._settings = AssignerSettings.of(schema, assigners)
        if assigner is not None and not 0 <= assigner < self._settings.assigners:
            raise InvalidError(f"assigner {assigner}: there are {self._settings.assigners}, counted from 0")
        self._extractor = DynamicBucketRowKeyExtractor(schema)
        self._assigner = assigner
        self._fresh = fresh
        self._indexes = HashIndexes(home, None if fresh else snapshot, live=() if fresh else live, keys_of=keys_of)
        self._partitions: dict[bytes, _Partition] = {}
        self._counts = None if counts is None else by_partition(counts)
        self._aligned = aligned

    @property
    def total_buckets(self) -> int:
        """What manifests record as the number of buckets."""
        return self._extractor.total_buckets

    def place(self, batch: pa.RecordBatch, kinds: Kinds | None) -> Iterator[Placed]:
        """All rows, in the buckets assigned to them."""
        yield Placed(batch, kinds, self.assign(self._extractor.extract(batch)))

    @property
    def assigners(self) -> int:
        """The number of assigners that share the buckets of a partition."""
        return self._settings.assigners

    def assign(self, extracted: Extracted) -> Extracted:
        """The rows with their buckets."""
        hashes, codes = extracted.key_hashes, extracted.partition_codes
        if len(extracted.partitions) == 1:
            return extracted.assigned(self._assign(extracted.partitions[0], hashes))
        buckets = np.empty(len(hashes), np.int32)
        order = np.argsort(codes, kind="stable")
        edges = np.searchsorted(codes[order], np.arange(len(extracted.partitions) + 1))
        for code, partition in enumerate(extracted.partitions):
            own = order[edges[code] : edges[code + 1]]
            if len(own):
                buckets[own] = self._assign(partition, hashes[own])
        return extracted.assigned(buckets)

    def announce(self, partition: bytes, hashes: Hashes) -> None:
        """Assign hashes before their rows arrive, in ascending order, so that the result does not depend on arrival order."""
        self._assign(partition, ascending(hashes))

    def complete(self, messages: Sequence[CommitMessage]) -> tuple[CommitMessage, ...]:
        """The messages of the rows assigned, with the indexes of their buckets."""
        added = {
            (partition, bucket): np.concatenate(parts)
            for partition, state in self._partitions.items()
            for bucket, parts in state.added.items()
        }
        return self._indexes.complete(messages, added, fresh=self._fresh)

    def abort(self) -> None:
        """Removes the indexes written."""
        self._indexes.abort()

    def _assign(self, partition: bytes, hashes: Hashes) -> Buckets:
        state = self._partitions.get(partition)
        if state is None:
            state = self._partitions[partition] = self._load(partition)
        # Sorted together with their rows, equal hashes are adjacent, the first arrival in front.
        packed = np.sort(hashes.astype(np.int64) << _ROW_BITS | np.arange(len(hashes)))
        ordered, rows = (packed >> _ROW_BITS).astype(np.int32), packed & ((1 << _ROW_BITS) - 1)
        heads = np.ones(len(hashes), bool)
        heads[1:] = ordered[1:] != ordered[:-1]
        distinct = ordered[heads]
        if self._assigner is not None:
            self._check_own(state, distinct)
        if self._aligned:
            self._load_owners(partition, state, distinct)
        buckets = state.find(distinct)
        new = np.flatnonzero(buckets == ABSENT)
        if len(new):
            arrival = new[_ranking(rows[heads][new], len(hashes))]
            buckets[arrival] = self._place(state, distinct[arrival])
            state.added_hashes.add(distinct[new], buckets[new].astype(np.int32))
        assigned = np.empty(len(hashes), np.int32)
        assigned[rows] = buckets[np.cumsum(heads) - 1]
        return assigned

    def _place(self, state: _Partition, hashes: Hashes) -> Buckets:
        """Buckets for new hashes, in their order."""
        owners = self._owners(state, hashes)
        buckets = np.empty(len(hashes), np.int32)
        for assigner in np.flatnonzero(np.bincount(owners)).tolist():
            own = np.flatnonzero(owners == assigner)
            room = state.rooms.get(assigner)
            if room is None:
                room = state.rooms[assigner] = self._settings.room(state.counts, assigner)
            buckets[own] = room.take(len(own))
        # Numbers of two bytes are sorted by counting.
        order = np.argsort(buckets.astype(np.uint16), kind="stable")
        starts = np.flatnonzero(np.diff(buckets[order])) + 1
        for part in np.split(order, starts):
            state.added.setdefault(int(buckets[part[0]]), []).append(hashes[part])
        return buckets

    def _owners(self, state: _Partition, hashes: Hashes) -> NDArray[np.int32]:
        count = self._settings.assigners
        if count == 1:
            return np.zeros(len(hashes), np.int32)
        return select_assigners(np.full(len(hashes), state.hash), hashes, channels=count, assigners=count)

    def _load_owners(self, partition: bytes, state: _Partition, hashes: Hashes) -> None:
        """Read the buckets of assigners that get their first keys."""
        new = set(np.unique(self._owners(state, hashes)).tolist()) - state.owners
        for bucket in self._indexes.buckets(partition) if new else ():
            if bucket % self._settings.assigners in new:
                known = ascending(self._indexes.load_bucket(partition, bucket))
                state.counts[bucket] = len(known)
                state.indexed.append((bucket, known))
        state.owners |= new

    def _check_own(self, state: _Partition, hashes: Hashes) -> None:
        others = np.flatnonzero(self._owners(state, hashes) != self._assigner)
        if len(others):
            raise InvalidError(
                f"{len(others)} of {len(hashes)} keys are not for assigner {self._assigner} of {self.assigners}: "
                "rows must be spread over assigners by select_assigners"
            )

    def _load(self, partition: bytes) -> _Partition:
        state = _Partition(partition_hashes([partition])[0])
        if self._counts is not None:
            state.counts = dict(self._counts.get(partition, {}))
            return state
        if self._aligned:
            return state
        loaded = self._indexes.load(partition)
        state.counts = {bucket: len(hashes) for bucket, hashes in loaded.buckets.items()}
        # The least bucket wins, should a hash be in two.
        state.indexed = [(bucket, ascending(loaded.buckets[bucket])) for bucket in sorted(loaded.buckets, reverse=True)]
        return state


def is_aligned(partition: bytes, bucket: int, hashes: Hashes, assigners: int) -> bool:
    """Whether all keys of a bucket belong to the bucket's own assigner, among `assigners`."""
    owners = select_assigners(
        np.full(len(hashes), partition_hashes([partition])[0]), hashes, channels=assigners, assigners=assigners
    )
    return bool((owners == bucket % assigners).all())


def by_partition(counts: Mapping[Place, int]) -> dict[bytes, dict[int, int]]:
    """Group counts by partition, then by bucket."""
    found: dict[bytes, dict[int, int]] = {}
    for (partition, bucket), count in counts.items():
        found.setdefault(partition, {})[bucket] = count
    return found


def _ranking(rows: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """The argsort of distinct row numbers below `count`, in linear time."""
    marked = np.zeros(count, bool)
    marked[rows] = True
    ranking = np.empty(len(rows), np.int64)
    ranking[np.cumsum(marked)[rows] - 1] = np.arange(len(rows))
    return ranking


def _members(known: Hashes, hashes: Hashes) -> NDArray[np.bool_]:
    """A mask of the ascending hashes that are among the known ones."""
    if not len(known):
        return np.zeros(len(hashes), np.bool_)
    places = np.searchsorted(known, hashes)
    places[places == len(known)] = 0
    found: NDArray[np.bool_] = known[places] == hashes
    return found
