"""Rewrite files of one bucket of an append table: the same rows, without the deleted ones, in fewer files.

    files ─ SplitReader: in the newest schema, without deleted rows ─ BucketWriter ─ new files of level 0

Rows keep their order. In a table with buckets the new files take over the sequence numbers of the old ones, and so their place
in that order; without buckets files count from 0 each.

    old    [0..9][10..14][15..39]    next [40..]
    new    [0..29][30..39]           next [40..]

Numbers only order files, no row stores its own. Memory is a row group and what the reader has in flight, whatever the size of
the files. Nothing here commits: a crash leaves orphan files, and after an error there are none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from lakelet.compact.known_nans import known_nan_columns
from lakelet.compact.progress import Watch
from lakelet.compact.task import CompactionTask
from lakelet.format.data.new_files import NewFiles
from lakelet.format.partition_folders import PartitionFolders
from lakelet.model.bucket_mode import BucketMode, bucket_mode
from lakelet.model.commit_message import CommitMessage
from lakelet.model.data_file import FILE_SOURCE_COMPACT, DataFile
from lakelet.model.schema import TableSchema
from lakelet.model.split import Split
from lakelet.predicate.row_filter import row_filter
from lakelet.read.split_reader import SplitReader
from lakelet.sink.write.append_writer import BucketWriter
from lakelet.sink.write.one_commit import OneCommit
from lakelet.sink.write.settings import SinkSettings
from lakelet.storage.home import TableHome


class AppendRewriter:
    """Runs tasks of one table in its newest schema, one after the other or in threads."""

    def __init__(self, home: TableHome, schema: TableSchema, schema_of: Callable[[int], TableSchema]) -> None:
        self._home = home
        self._schema = schema
        self._schema_of = schema_of
        self._settings = SinkSettings.of(schema)
        self._folders = PartitionFolders(home.paths, schema)
        self._keeps_order = bucket_mode(schema) is BucketMode.HASH_FIXED

    def rewrite(self, task: CompactionTask, watch: Watch) -> CommitMessage:
        """The message of a compaction that is done but not committed. After an error there are no new files."""
        files = NewFiles(self._home, self._settings.files)
        try:
            with OneCommit(self._home).all_or_nothing():
                written = self._written(task, files, watch)
        except BaseException:
            files.remove()
            raise
        return CommitMessage(
            task.partition,
            task.bucket,
            task.total_buckets,
            _numbered(written, task.files) if self._keeps_order else written,
            task.files,
            base_snapshot=task.snapshot_id,
            old_vectors=tuple(sorted({vector.index_name for vector in task.vectors.values()})),
        )

    def _written(self, task: CompactionTask, files: NewFiles, watch: Watch) -> tuple[DataFile, ...]:
        folder = self._folders.bucket_folder(task.partition, task.bucket)
        reader = SplitReader(
            self._home, self._schema.fields, self._schema.names, row_filter(None, self._schema.fields), self._schema_of
        )
        writer = BucketWriter(
            files,
            self._home,
            self._schema,
            self._settings,
            folder,
            FILE_SOURCE_COMPACT,
            nan_columns=known_nan_columns(task.files, self._schema, self._schema_of),
        )
        done = 0
        for batch in reader.batches([_split(task, folder)]):
            watch.check()
            writer.add(batch)
            done += batch.num_rows
            watch.advance(rows=batch.num_rows, size=task.size * batch.num_rows // max(task.row_count, 1))
        written = writer.finish()
        # Rows that are deleted have been read as well.
        watch.advance(
            rows=max(task.row_count - done, 0),
            size=task.size - task.size * done // max(task.row_count, 1),
            written=sum(file.size for file in written),
        )
        return written


def _split(task: CompactionTask, folder: str) -> Split:
    return Split(
        task.snapshot_id,
        task.partition,
        task.bucket,
        task.total_buckets,
        task.files,
        tuple(f"{folder}/{file.name}" for file in task.files),
        tuple(task.vectors.get(file.name) for file in task.files),
    )


def _numbered(new: Sequence[DataFile], old: Sequence[DataFile]) -> tuple[DataFile, ...]:
    """The new files with the sequence numbers of the old ones, in order.

    Where two writers wrote at once, there are more rows than numbers; then each file gets its share of them.
    """
    low, high = min(file.min_sequence for file in old), max(file.max_sequence for file in old)
    rows, span = sum(file.row_count for file in new), high - low + 1
    numbered: list[DataFile] = []
    before = 0
    for file in new:
        start, end = before, before + file.row_count
        if rows > span:
            start = start * span // rows
            end = max(end * span // rows, start + 1)
        numbered.append(replace(file, min_sequence=low + start, max_sequence=low + end - 1))
        before += file.row_count
    return tuple(numbered)
