"""The first free sequence number of each bucket.

In a table with fixed buckets or a primary key the files of a bucket are ordered by sequence number, so a writer continues after
what is committed. Bucket-unaware tables have no such order; their files count from 0 each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.commit.metadata.manifests import ManifestSettings, live_entries, snapshot_manifests
from lakelet.commit.metadata.missing_file import SnapshotExpiredError
from lakelet.commit.metadata.snapshots import latest_snapshot
from lakelet.errors import InvalidError
from lakelet.format.partition_folders import PartitionFolders
from lakelet.model.bucket_mode import Place
from lakelet.model.manifest import ManifestFile
from lakelet.model.schema import TableSchema
from lakelet.options import BUCKET, TableOptions
from lakelet.storage.home import TableHome

# After this many partitions were looked up one by one, the rest of the table is read at once.
_SINGLE_LOOKUPS = 4
# Fewer files are grouped in less time than Arrow takes to begin.
_FEW_FILES = 256


class CommittedSequences:
    """First free sequence numbers, looked up when a partition is first used: in these manifests of a snapshot, else in
    the newest one.

    Where buckets are fixed in number, rows of a partition with another number would end up in other buckets than rows of the
    same key. Such a partition is refused, unless the write `replaces` it.
    """

    def __init__(
        self,
        home: TableHome,
        schema: TableSchema,
        manifests: Sequence[ManifestFile] | None = None,
        *,
        replaces: bool = False,
    ) -> None:
        self._home = home
        self._schema = schema
        self._manifests = manifests
        self._known: dict[bytes, dict[int, int]] = {}
        self._totals: dict[bytes, set[int]] = {}
        self._runs: dict[Place, int] = {}
        buckets = TableOptions(schema.options).get(BUCKET)
        self._fixed = buckets if buckets > 0 and not replaces else None
        self._has_all = buckets <= 0 and not schema.primary_keys

    @staticmethod
    def all_of(
        home: TableHome, schema: TableSchema, manifests: Sequence[ManifestFile], *, replaces: bool = False
    ) -> CommittedSequences:
        """The numbers of all buckets, read now, to be pickled for writers, which then read no manifests."""
        found = CommittedSequences(home, schema, manifests, replaces=replaces)
        if not found._has_all:
            found._read(None)
            found._has_all = True
        found._manifests = ()
        return found

    def first_free(self, place: Place) -> int:
        """The first free sequence number of a bucket, 0 if it has no files."""
        partition, bucket = place
        if partition not in self._known and not self._has_all:
            self._look_up(partition)
        if self._fixed is not None:
            self._check_buckets(partition, self._fixed)
        return self._known.get(partition, {}).get(bucket, 0)

    def runs(self, place: Place) -> int:
        """The number of sorted runs of a bucket that was looked up: its files of level 0, and the levels above."""
        return self._runs.get(place, 0)

    def _look_up(self, partition: bytes) -> None:
        if self._manifests is None:
            self._manifests = _latest_manifests(self._home)
        self._has_all = not self._schema.partition_keys or len(self._known) >= _SINGLE_LOOKUPS
        self._known.setdefault(partition, {})
        self._read(None if self._has_all else partition)

    def _read(self, partition: bytes | None) -> None:
        """Reads the numbers of one partition, or of all."""

        def keep(entries: pa.Table) -> pa.Table:
            return entries.filter(pc.equal(entries.column("_PARTITION"), pa.scalar(partition, pa.binary())))

        def read() -> pa.Table:
            return live_entries(
                self._home,
                self._manifests or (),
                columns=["_TOTAL_BUCKETS", "_MAX_SEQUENCE_NUMBER"],
                keep=None if partition is None else keep,
                threads=ManifestSettings.of(TableOptions(self._schema.options)).threads,
            )

        if not self._manifests:
            return
        try:
            entries = read()
        except SnapshotExpiredError:
            # Numbers after those of a newer version are valid too: the commit compares them with the newest snapshot.
            self._manifests = _latest_manifests(self._home)
            entries = read()
        keys, number = ("_PARTITION", "_BUCKET", "_TOTAL_BUCKETS"), "_MAX_SEQUENCE_NUMBER"
        greatest = entries
        if entries.num_rows > _FEW_FILES:
            greatest, number = entries.group_by(list(keys)).aggregate([(number, "max")]), f"{number}_max"
        columns = (greatest.column(name).to_pylist() for name in (*keys, number))
        for own, bucket, total, last in zip(*columns, strict=True):
            known = self._known.setdefault(own, {})
            known[bucket] = max(known.get(bucket, 0), last + 1)
            self._totals.setdefault(own, set()).add(total)
        if self._schema.primary_keys:
            self._count_runs(entries)

    def _count_runs(self, entries: pa.Table) -> None:
        runs: Counter[Place] = Counter()
        for (partition, bucket, level), count in _files_by_level(entries).items():
            runs[partition, bucket] += count if level == 0 else 1
        # Reading all partitions reads those again that were looked up before.
        self._runs.update(runs)

    def _check_buckets(self, partition: bytes, fixed: int) -> None:
        others = self._totals.get(partition, set()) - {fixed}
        if others:
            folder = PartitionFolders(self._home.paths, self._schema).partition_path(partition)
            raise InvalidError(
                f"the table has {fixed} buckets, but rows of {folder or 'it'} were written for {min(others)}: rows of one key "
                "would be in two buckets; rescale or overwrite them first"
            )


def _files_by_level(entries: pa.Table) -> Mapping[tuple[bytes, int, int], int]:
    """How many files each level of each bucket has."""
    keys = ["_PARTITION", "_BUCKET", "_LEVEL"]
    if entries.num_rows <= _FEW_FILES:
        return Counter(zip(*(entries.column(name).to_pylist() for name in keys), strict=True))
    files = entries.group_by(keys).aggregate([([], "count_all")])
    counts = files.column("count_all").to_pylist()
    return dict(zip(zip(*(files.column(name).to_pylist() for name in keys), strict=True), counts, strict=True))


def _latest_manifests(home: TableHome) -> list[ManifestFile]:
    while True:
        snapshot = latest_snapshot(home)
        try:
            return [] if snapshot is None else snapshot_manifests(home, snapshot)
        except SnapshotExpiredError:
            continue
