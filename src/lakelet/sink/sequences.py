"""Where sequence numbers of a bucket go on.

In a table with fixed buckets or a primary key the files of a bucket are ordered by sequence number, so a writer continues after
what is committed. Bucket-unaware tables have no such order; their files count from 0 each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.commit.manifests import ManifestSettings, live_entries, snapshot_manifests
from lakelet.commit.snapshots import latest_snapshot
from lakelet.model.manifest import ManifestFile
from lakelet.model.schema import TableSchema
from lakelet.options import BUCKET, TableOptions
from lakelet.storage.home import TableHome

Place = tuple[bytes, int]
# After so many partitions were looked up one by one, the rest of the table is read at once.
_SINGLE_LOOKUPS = 4


def next_sequences(home: TableHome, schema: TableSchema) -> dict[Place, int]:
    """The first free sequence number of each bucket that has files, by partition and bucket."""
    if TableOptions(schema.options).get(BUCKET) <= 0 and not schema.primary_keys:
        return {}
    return _next_sequences(home, schema, _latest_manifests(home), keep=None)


class CommittedSequences:
    """The same, looked up when a partition is first asked for: in these manifests of a snapshot, else in the newest one."""

    def __init__(self, home: TableHome, schema: TableSchema, manifests: Sequence[ManifestFile] | None = None) -> None:
        self._home = home
        self._schema = schema
        self._manifests = manifests
        self._known: dict[bytes, dict[int, int]] = {}
        self._has_all = False

    def first_free(self, place: Place) -> int:
        """The first free sequence number of a bucket, 0 if it has no files."""
        partition, bucket = place
        if partition not in self._known and not self._has_all:
            self._look_up(partition)
        return self._known.get(partition, {}).get(bucket, 0)

    def _look_up(self, partition: bytes) -> None:
        if self._manifests is None:
            self._manifests = _latest_manifests(self._home)
        self._has_all = not self._schema.partition_keys or len(self._known) >= _SINGLE_LOOKUPS
        self._known.setdefault(partition, {})

        def keep(entries: pa.Table) -> pa.Table:
            return entries.filter(pc.equal(entries.column("_PARTITION"), pa.scalar(partition, pa.binary())))

        found = _next_sequences(self._home, self._schema, self._manifests, keep=None if self._has_all else keep)
        for (own, bucket), number in found.items():
            self._known.setdefault(own, {})[bucket] = number


def _latest_manifests(home: TableHome) -> list[ManifestFile]:
    snapshot = latest_snapshot(home)
    return [] if snapshot is None else snapshot_manifests(home, snapshot)


def _next_sequences(
    home: TableHome,
    schema: TableSchema,
    manifests: Sequence[ManifestFile],
    *,
    keep: Callable[[pa.Table], pa.Table] | None,
) -> dict[Place, int]:
    if not manifests:
        return {}
    threads = ManifestSettings.of(TableOptions(schema.options)).threads
    entries = live_entries(home, manifests, columns=["_MAX_SEQUENCE_NUMBER"], keep=keep, threads=threads)
    greatest = entries.group_by(["_PARTITION", "_BUCKET"]).aggregate([("_MAX_SEQUENCE_NUMBER", "max")])
    places = zip(greatest.column("_PARTITION").to_pylist(), greatest.column("_BUCKET").to_pylist(), strict=True)
    numbers = greatest.column("_MAX_SEQUENCE_NUMBER_max").to_pylist()
    return {place: number + 1 for place, number in zip(places, numbers, strict=True)}
