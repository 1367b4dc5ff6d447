"""Compaction of a table with postponed buckets: assign postponed rows to buckets.

    bucket-postpone/   files in the order they were written ─┬─ hash of the bucket key ─ KeyValueWriter ─ level-0 files
    bucket-0, 1, …     what is there stays as it is          │                              of bucket-0, 1, …
                                                             └─ all of a partition in one commit, which removes the files it read

A partition that has buckets keeps their number; the first compaction of one gives it `postpone.default-bucket-num` of them.
Waiting rows are read in the order in which their files were committed, and get the sequence numbers that follow those of their
bucket, so that of two rows of a key the later commit's wins. (Java orders files by their creation time, and so by the
clocks and time zones of their writers.) The new files are of level 0: whether they are merged with others is decided by the
compaction that follows.

Rows that are written concurrently stay postponed. Where a concurrent commit assigned rows of a partition first, the work on it
is discarded and cleaned up. A crash before the commit leaves orphan files. Memory is bounded by `write-buffer-size` and
the bytes of a waiting file, for each partition in progress.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

import numpy as np
import pyarrow as pa

from lakelet.commit.committed_files import remove_files
from lakelet.commit.metadata.missing_file import SnapshotExpiredError
from lakelet.commit.metadata.schemas import SchemaVersions, latest_schema
from lakelet.commit.metadata.snapshots import latest_snapshot
from lakelet.commit.metadata.table_identity import table_uuid
from lakelet.commit.request import CommitRequest
from lakelet.compact.all_or_nothing import run_all_or_nothing
from lakelet.compact.compaction import THREADS, Scope, check_compactable, scope_entries
from lakelet.compact.partition_commit import MOST_LOSSES, Group, commit_partitions
from lakelet.compact.progress import Cancel, CompactionCancelled, Progress, Watch
from lakelet.errors import ConflictError, CorruptionError
from lakelet.format.partition_folders import PartitionFolders
from lakelet.lsm.key_value_columns import VALUE_KIND
from lakelet.model.arrow.arrow_types import arrow_schema
from lakelet.model.bucket_mode import POSTPONE_BUCKET
from lakelet.model.commit_message import CommitMessage
from lakelet.model.data_file import FILE_SOURCE_COMPACT, DataFile
from lakelet.model.manifest import ManifestEntry
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.options import BUCKET, POSTPONE_DEFAULT_BUCKET_NUM, TableOptions
from lakelet.predicate.row_filter import row_filter
from lakelet.read.merge.key_value_files import KeyValueFiles
from lakelet.read.split_files import SplitFile
from lakelet.sink.write.key_value_writer import KeyValueWriter
from lakelet.storage.home import TableHome

_BATCH_ROWS = 65_536
_BUFFER_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class WaitingTask:
    """The postponed rows of one partition, to be assigned to buckets. Picklable.

    `files` are in the order in which their rows arrived. `first_sequences` are the first free sequence numbers of the
    partition's buckets in the version `sequenced_at` (its id and delta manifest list); a bucket that is not named is empty.
    """

    partition: bytes
    total_buckets: int
    files: tuple[DataFile, ...]
    first_sequences: Mapping[int, int]
    sequenced_at: tuple[int, str]

    @property
    def size(self) -> int:
        """Bytes of the files."""
        return sum(file.size for file in self.files)

    @property
    def row_count(self) -> int:
        """Rows of the files."""
        return sum(file.row_count for file in self.files)


@dataclass(frozen=True, slots=True)
class PostponedCompaction:
    """Assigns the postponed rows of a table to buckets, in its newest schema. `elsewhere` runs tasks on other machines."""

    home: TableHome
    schema: TableSchema
    scope: Scope = field(default_factory=Scope)
    progress: Progress | None = None
    cancel: Cancel | None = None
    threads: int = THREADS
    elsewhere: Callable[[TableSchema, Sequence[WaitingTask]], list[Group]] | None = None

    def run(self) -> Snapshot | None:
        """The last snapshot made, None where no rows waited, or the caller cancelled."""
        made: Snapshot | None = None
        for attempt in count(1):
            snapshot = latest_snapshot(self.home)
            newest = self._in_newest_schema()
            try:
                tasks = [] if snapshot is None else newest.plan(snapshot)
                if not tasks:
                    return made
                groups = newest.rewrite(tasks) if self.elsewhere is None else self.elsewhere(newest.schema, tasks)
            except CompactionCancelled:
                return made
            except SnapshotExpiredError:
                if attempt == MOST_LOSSES:
                    raise
                continue
            committed, whole = commit_waiting(self.home, groups)
            made = committed or made
            if whole:
                return made
            if attempt == MOST_LOSSES:
                raise ConflictError(
                    f"{self.home.where(self.home.paths.branch_root)}: gave up after {attempt} attempts, each time others had "
                    "given the same rows their buckets first, or rescaled a partition"
                )
        return made

    def _in_newest_schema(self) -> PostponedCompaction:
        """The same after the snapshot was read: a schema read later knows every column of its files."""
        schema = latest_schema(self.home)
        check_compactable(schema)
        return replace(self, schema=schema)

    def plan(self, snapshot: Snapshot) -> list[WaitingTask]:
        """The partitions with waiting rows."""
        return waiting_tasks(scope_entries(self.home, self.schema, snapshot, self.scope), self.schema, snapshot)

    def rewrite(self, tasks: Sequence[WaitingTask]) -> list[Group]:
        """Run the tasks; after an error or when cancelled there are no new files."""
        rows, size = sum(task.row_count for task in tasks), sum(task.size for task in tasks)
        watch = Watch(len(tasks), rows, size, self.progress, self.cancel)
        rewriter = WaitingRewriter(
            self.home.deferring(), self.schema, SchemaVersions(self.home, {self.schema.id: self.schema})
        )

        def undo(groups: Sequence[Group]) -> None:
            remove_files(self.home, self.schema, [message for group in groups for message in group])

        largest_first = sorted(tasks, key=lambda task: -task.size)
        return run_all_or_nothing(
            largest_first, lambda task: rewriter.rewrite(task, watch), threads=self.threads, undo=undo
        )


def waiting_tasks(entries: Sequence[ManifestEntry], schema: TableSchema, snapshot: Snapshot) -> list[WaitingTask]:
    """The tasks of these live entries of a snapshot: all of each partition, in the order of their commits."""
    default = TableOptions(schema.options).get(POSTPONE_DEFAULT_BUCKET_NUM)
    waiting: dict[bytes, list[DataFile]] = {}
    totals: dict[bytes, set[int]] = {}
    free: dict[bytes, dict[int, int]] = {}
    for entry in entries:
        if entry.bucket == POSTPONE_BUCKET:
            waiting.setdefault(entry.partition, []).append(entry.file)
            continue
        totals.setdefault(entry.partition, set()).add(entry.total_buckets)
        own = free.setdefault(entry.partition, {})
        own[entry.bucket] = max(own.get(entry.bucket, 0), entry.file.max_sequence + 1)
    tasks: list[WaitingTask] = []
    for partition, files in waiting.items():
        numbers = totals.get(partition, {default})
        if len(numbers) > 1:
            raise CorruptionError(
                f"files of one partition say that it has {' and '.join(map(str, sorted(numbers)))} buckets"
            )
        at = (snapshot.id, snapshot.delta_manifest_list)
        tasks.append(WaitingTask(partition, min(numbers), tuple(files), free.get(partition, {}), at))
    return tasks


class WaitingRewriter:
    """Runs tasks of one table in its newest schema, one after the other or in threads."""

    def __init__(self, home: TableHome, schema: TableSchema, schema_of: Callable[[int], TableSchema]) -> None:
        self._home = home
        self._schema = schema
        self._schema_of = schema_of
        self._table_uuid = table_uuid(home)
        self._columns = arrow_schema(schema.fields)

    def rewrite(self, task: WaitingTask, watch: Watch) -> Group:
        """The messages of a partition that is done but not committed. After an error there are no new files."""
        watch.check()
        writer = KeyValueWriter(
            self._home,
            with_buckets(self._schema, task.total_buckets),
            first_sequence=lambda place: task.first_sequences.get(place[1], 0),
            source=FILE_SOURCE_COMPACT,
        )
        told = 0
        try:
            for batch in self._rows(task):
                watch.check()
                kinds = batch.column(VALUE_KIND).to_numpy().astype(np.int8)
                columns = [batch.column(name) for name in self._columns.names]
                writer.write(pa.RecordBatch.from_arrays(columns, schema=self._columns), kinds)
                size = task.size * batch.num_rows // max(task.row_count, 1)
                watch.advance(rows=batch.num_rows, size=size)
                told += size
            added = writer.prepare_commit()
        except BaseException:
            writer.abort()
            raise
        written = sum(file.size for message in added for file in message.new_files)
        watch.advance(tasks=1, size=task.size - told, written=written)
        gone = CommitMessage(
            task.partition, POSTPONE_BUCKET, POSTPONE_BUCKET, (), task.files, base_snapshot=task.sequenced_at[0]
        )
        return tuple(
            replace(message, table_uuid=self._table_uuid, sequenced_at=task.sequenced_at) for message in (gone, *added)
        )

    def _rows(self, task: WaitingTask) -> Iterator[pa.RecordBatch]:
        """The postponed rows in arrival order, in the table's current columns, with their kinds."""
        folder = PartitionFolders(self._home.paths, self._schema).bucket_folder(task.partition, POSTPONE_BUCKET)
        reader = KeyValueFiles(
            self._home,
            self._schema.trimmed_primary_keys,
            self._schema.fields,
            row_filter(None, self._schema.fields),
            self._schema_of,
        )
        files = [
            SplitFile(file, f"{folder}/{file.name}", None, task.sequenced_at[0], task.partition) for file in task.files
        ]
        return reader.stream(files, sequences=False, kinds=True, batch_rows=_BATCH_ROWS, buffer_bytes=_BUFFER_BYTES)


def commit_waiting(home: TableHome, groups: Sequence[Group]) -> tuple[Snapshot | None, bool]:
    """Commits partitions whose rows got buckets; the snapshot made, and whether all partitions were in it."""
    user = home.ids.uuid()
    return commit_partitions(home, groups, lambda messages: CommitRequest(user, messages, compacts=True))


def with_buckets(schema: TableSchema, buckets: int) -> TableSchema:
    """The same version of a schema with another bucket count, for files of that count."""
    return replace(schema, options={**schema.options, BUCKET.name: str(buckets)})
