"""Continue a plan by the files that later commits added: buckets without new files keep their splits.

Making splits of a hundred thousand files takes seconds, reading what a commit added some milliseconds. The result is the plan
that all files would give, split for split. A bucket that got files is packed anew. Files of a table without buckets are packed
in the order in which they were added, so that only the last split can grow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelet.model.bucket_mode import BucketMode, bucket_mode
from lakelet.model.schema import TableSchema
from lakelet.model.split import Split

Bucket = tuple[bytes, int]
_LOW = (1 << 32) - 1
Pack = Callable[[pa.Table], tuple[Split, ...]]


@dataclass(frozen=True, slots=True)
class ContinuedPlan:
    """The splits of an earlier version, the entries since that may match the condition, and all live entries."""

    schema: TableSchema
    snapshot_id: int
    before: Sequence[Split]
    added: pa.Table
    entries: pa.Table

    def splits(self, pack: Pack) -> tuple[Split, ...]:
        """The splits of all entries; `pack` makes those of some, less the ones that cannot match."""
        kept = [replace(split, snapshot_id=self.snapshot_id) for split in self.before]
        if not self.added.num_rows:
            return tuple(kept)
        if self.schema.primary_keys or bucket_mode(self.schema) is BucketMode.HASH_FIXED:
            return self._by_bucket(kept, pack)
        return self._at_the_end(kept, pack)

    def _by_bucket(self, kept: Sequence[Split], pack: Pack) -> tuple[Split, ...]:
        by_bucket = {bucket: list(splits) for bucket, splits in groupby(kept, key=_bucket)}
        touched = _buckets(self.added)
        for bucket in touched:
            by_bucket[bucket] = []
        for split in pack(_of_buckets(self.entries, touched)):
            by_bucket[_bucket(split)].append(split)
        order: Iterable[Bucket]
        if self.schema.primary_keys:
            order = sorted(by_bucket)
        else:
            # Partitions come in the order of their first files, which later files do not change.
            places = {partition: place for place, partition in enumerate(dict.fromkeys(one for one, _ in by_bucket))}
            order = sorted(by_bucket, key=lambda bucket: (places[bucket[0]], bucket[1]))
        return tuple(split for bucket in order for split in by_bucket[bucket])

    def _at_the_end(self, kept: list[Split], pack: Pack) -> tuple[Split, ...]:
        if not kept:
            return pack(self.added)
        # A split takes files until the next one would make it too large, which only those behind it decide.
        last = kept.pop()
        near = _of_buckets(self.entries, [_bucket(last)])
        names = pa.array([file.name for file in last.files], near.column("_FILE_NAME").type)
        again = near.filter(pc.is_in(near.column("_FILE_NAME"), names))
        return (*kept, *pack(pa.concat_tables([again, self.added.select(again.column_names)])))


def _bucket(split: Split) -> Bucket:
    return split.partition, split.bucket


def _buckets(entries: pa.Table) -> list[Bucket]:
    """The buckets of entries, in the order of their first ones."""
    partitions = entries.column("_PARTITION").to_pylist()
    return list(dict.fromkeys(zip(partitions, entries.column("_BUCKET").to_pylist(), strict=True)))


def _of_buckets(entries: pa.Table, buckets: Sequence[Bucket]) -> pa.Table:
    """The entries of some buckets, in their order."""
    column = entries.column("_PARTITION")
    partitions = pa.array(list(dict.fromkeys(partition for partition, _ in buckets)), column.type)
    near = entries.filter(pc.is_in(column, partitions))
    codes = pc.index_in(near.column("_PARTITION"), partitions).to_numpy().astype(np.int64)
    numbers = near.column("_BUCKET").to_numpy().astype(np.int64)
    chosen = pa.array([partition for partition, _ in buckets], column.type)
    wanted = pc.index_in(chosen, partitions).to_numpy().astype(np.int64)
    pairs = np.array([bucket for _, bucket in buckets], np.int64)
    return near.filter(pa.array(np.isin(codes << 32 | numbers & _LOW, wanted << 32 | pairs & _LOW)))
