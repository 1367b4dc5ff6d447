"""The changes between two versions of a primary-key table.

Where snapshots have changelog files, these are the changes. Where none in the range has, the two versions are compared by
key: a row of the later one alone was inserted, one of the earlier one alone deleted, and one that differs updated.
Buckets whose files are the same in both versions are not read.

    changelog-producer    a snapshot with a changelog    one without
    none                  its changelog                  compared with the one before
    input                 its changelog                  compared with the one before
    lookup, full-         its changelog                  nothing, for the compaction that follows has the changelog;
      compaction                                         an OVERWRITE has none and is compared with the one before

A snapshot that only compacts changes no row, except where compaction is what makes rows visible (deletion vectors, first-row,
postponed buckets) or what drops them (`record-level.expire-time`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import pyarrow as pa

from lakelet.commit.metadata.manifests import read_manifest_list
from lakelet.commit.metadata.schemas import SchemaVersions
from lakelet.commit.metadata.snapshots import read_snapshot
from lakelet.model.bucket_mode import POSTPONE_BUCKET
from lakelet.model.manifest import EntryKind
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import CommitKind, Snapshot
from lakelet.model.split import Split
from lakelet.options import BUCKET, CHANGELOG_PRODUCER, RECORD_LEVEL_EXPIRE_TIME, TableOptions
from lakelet.predicate.row_filter import row_filter
from lakelet.read.changes.changelog_reader import read_changelog
from lakelet.read.changes.keyed_difference import keyed_difference
from lakelet.read.table_reader import TableReader
from lakelet.scan.plan import Planner
from lakelet.scan.tree import hides_level0
from lakelet.storage.home import TableHome

Change: TypeAlias = tuple[pa.Array, pa.RecordBatch]
_Bucket: TypeAlias = tuple[bytes, int, frozenset[object]]
_COMPACTED_LATER = ("lookup", "full-compaction")


def keyed_changes(home: TableHome, schema: TableSchema, start: int, end: int) -> Iterator[Change]:
    """Kinds and rows of snapshots (start, end]."""
    changes = _KeyedChanges(home, schema)
    snapshots = [read_snapshot(home, number) for number in range(start + 1, end + 1)]
    before = read_snapshot(home, start) if start else None
    if not any(snapshot.changelog_manifest_list for snapshot in snapshots):
        if any(changes.counts(snapshot) for snapshot in snapshots):
            yield from changes.between(before, snapshots[-1])
        return
    for snapshot in snapshots:
        if snapshot.changelog_manifest_list:
            yield from changes.logged(snapshot, snapshot.changelog_manifest_list)
        elif changes.counts(snapshot):
            yield from changes.between(before, snapshot)
        before = snapshot


class _KeyedChanges:
    def __init__(self, home: TableHome, schema: TableSchema) -> None:
        self._home = home
        self._schema = schema
        self._schema_of = SchemaVersions(home, {schema.id: schema})
        options = TableOptions(schema.options)
        self._planner = Planner(home, schema, self._schema_of, options)
        self._key = tuple((name, schema.field(name).type) for name in schema.primary_keys)

    def counts(self, snapshot: Snapshot) -> bool:
        """Whether a snapshot without a changelog changes rows that no later changelog reports."""
        if snapshot.commit_kind is CommitKind.OVERWRITE:
            return True
        # The options in effect are those of the schema under which the snapshot was made.
        options = TableOptions(self._schema_of(snapshot.schema_id).options)
        if options.get(CHANGELOG_PRODUCER) in _COMPACTED_LATER:
            return False
        shows = hides_level0(options) or options.get(BUCKET) == POSTPONE_BUCKET
        drops = options.get(RECORD_LEVEL_EXPIRE_TIME) is not None
        return snapshot.commit_kind is CommitKind.APPEND or shows or drops

    def logged(self, snapshot: Snapshot, changelog: str) -> Iterator[Change]:
        """The changes in a snapshot's changelog files."""
        manifests = read_manifest_list(self._home, changelog)
        splits = self._planner.plan_entries(snapshot, manifests, EntryKind.ADD)
        return read_changelog(self._home, self._schema, self._schema_of, splits)

    def between(self, before: Snapshot | None, after: Snapshot) -> Iterator[Change]:
        """The differences between two versions."""
        old = self._planner.plan(before).splits if before is not None else ()
        new = self._planner.plan(after).splits
        same = _buckets(old) & _buckets(new)
        return keyed_difference(self._rows(old, same), self._rows(new, same), self._key)

    def _rows(self, splits: Sequence[Split], same: set[_Bucket]) -> pa.RecordBatchReader:
        schema = self._schema
        reader = TableReader(self._home, schema, schema.names, row_filter(None, schema.fields), self._schema_of)
        skipped = {(partition, bucket) for partition, bucket, _ in same}
        left = [split for split in splits if (split.partition, split.bucket) not in skipped]
        return pa.RecordBatchReader.from_batches(reader.schema, reader.batches(left))


def _buckets(splits: Sequence[Split]) -> set[_Bucket]:
    """Buckets with everything that determines their rows: the files and the places of their deletion vectors."""
    found: dict[tuple[bytes, int], set[object]] = {}
    for split in splits:
        pairs = zip(split.files, split.deletion_vectors, strict=True)
        found.setdefault((split.partition, split.bucket), set()).update((file.name, vector) for file, vector in pairs)
    return {(partition, bucket, frozenset(files)) for (partition, bucket), files in found.items()}
