"""Rewrite files of one bucket of a primary-key table onto a level: of every key the merged row, in key order.

    files ─ sections in key order ─┬─ a large file of its own       moves to the level as it is
                                   └─ all others, neighbours joined ─ MergeReader ─ row groups ─ SortedFileWriter

A file that moves is named twice in the message, as removed from its level and as added to the other. Files with deletes do not
move to where deletes are dropped, nor do files in another format than the level's, nor those for which it is unknown whether
they hold deletes. Memory is that of the reader and a row group, whatever the size of the bucket. Nothing here commits, and the
caller removes the files if the commit fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pyarrow as pa

from lakelet.compact.keyed.superseded_rows import SupersededRows
from lakelet.compact.keyed.task_changelog import TaskChangelog
from lakelet.compact.known_nans import known_nan_columns
from lakelet.compact.progress import Watch
from lakelet.compact.row_expiry import RowExpiry
from lakelet.compact.task import CompactionTask
from lakelet.format.data.file_settings import FileSettings
from lakelet.format.data.new_files import NewFiles
from lakelet.format.partition_folders import PartitionFolders
from lakelet.format.stats.nan_columns import nan_columns
from lakelet.lsm.key_value_columns import VALUE_KIND
from lakelet.lsm.merge_spec import MergeSpec
from lakelet.lsm.sections import Section, may_hold_retracts, sections
from lakelet.lsm.sorted_file import SortedFileSpec, SortedFileWriter
from lakelet.model.commit_message import CommitMessage
from lakelet.model.data_file import FILE_SOURCE_COMPACT, DataFile
from lakelet.model.schema import TableSchema
from lakelet.model.split import Split
from lakelet.options import ROWKIND_FIELD, TableOptions
from lakelet.predicate.row_filter import row_filter
from lakelet.read.merge.merge_reader import MergeReader
from lakelet.scan.tree import hides_level0
from lakelet.sink.write.changelog_files import changelog_spec
from lakelet.sink.write.one_commit import OneCommit
from lakelet.sink.write.row_groups import ahead, row_groups
from lakelet.sink.write.settings import SinkSettings
from lakelet.storage.home import TableHome

# What is merged at once: as fast as four times as much, and row writers compact beside the memtables that they hold.
_BUDGET_BYTES = 64 << 20
# A file of at least this share of the target size is not worth rewriting only to make it larger.
_LARGE_SHARE = 0.7


class KeyedRewriter:
    """Runs tasks of one table in its newest schema, one after the other or in threads."""

    def __init__(
        self,
        home: TableHome,
        schema: TableSchema,
        schema_of: Callable[[int], TableSchema],
        *,
        budget_bytes: int = _BUDGET_BYTES,
    ) -> None:
        self._home = home
        self._schema = schema
        self._schema_of = schema_of
        self._budget = budget_bytes
        self._folders = PartitionFolders(home.paths, schema)
        self._hides = hides_level0(TableOptions(schema.options))
        self._has_versions = bool(MergeSpec.of(schema).versions)
        self._expiry = RowExpiry.of(schema, home.clock.now_ms())
        self._key_types = [field.type for field in schema.trimmed_key_fields]
        self._counts_deletes = TableOptions(schema.options).get(ROWKIND_FIELD) is None

    def rewrite(self, task: CompactionTask, watch: Watch) -> CommitMessage:
        """The message of a compaction that is done but not committed. After an error there are no new files."""
        settings = FileSettings.of(self._schema, level=task.output_level)
        spec = SortedFileSpec.of(self._schema, settings, level=task.output_level, source=FILE_SOURCE_COMPACT)
        files = NewFiles(self._home, spec.settings)
        log_spec = changelog_spec(self._schema, level=task.output_level)
        logs = NewFiles(self._home, log_spec.settings)
        try:
            with OneCommit(self._home).all_or_nothing():
                message = self._rewritten(task, spec, files, watch)
                if not task.reported_level:
                    return message
                folder = self._folders.bucket_folder(task.partition, task.bucket)
                changelog = TaskChangelog(self._home, self._schema, self._schema_of, task, folder, self._budget)
                return replace(message, changelog_files=changelog.write(log_spec, logs, watch))
        except BaseException:
            logs.remove()
            files.remove()
            raise

    def _rewritten(self, task: CompactionTask, spec: SortedFileSpec, files: NewFiles, watch: Watch) -> CommitMessage:
        gone: list[DataFile] = []
        come: list[DataFile] = []
        moved: list[DataFile] = []
        folder = self._folders.bucket_folder(task.partition, task.bucket)
        superseded = SupersededRows(self._home, self._schema, self._schema_of, self._compared(task), folder, watch)
        for group in self._groups(task, spec.settings):
            watch.check()
            if isinstance(group, DataFile):
                watch.advance(rows=group.row_count, size=group.size)
                moved.append(group)
                if group.level != task.output_level:
                    gone.append(group)
                    come.append(replace(group, level=task.output_level))
                continue
            gone.extend(group)
            come.extend(self._merged(task, group, spec, files, watch, superseded))
        message = CommitMessage(
            task.partition,
            task.bucket,
            task.total_buckets,
            tuple(come),
            tuple(gone),
            base_snapshot=task.snapshot_id,
        )
        return self._settled(message, task, superseded, moved) if self._hides else message

    def _compared(self, task: CompactionTask) -> CompactionTask:
        """The task with the files that its rows are compared with, since they may lose against rows there.

        Where compaction looks up old rows, Java reads of the levels above 0 only the lowest that has a key: a row that an older
        one wins against, by its `sequence.field`, must not rise to a level below that one's.
        """
        return replace(task, beside=task.older) if task.older and self._has_versions else task

    def _settled(
        self, message: CommitMessage, task: CompactionTask, superseded: SupersededRows, moved: Sequence[DataFile]
    ) -> CommitMessage:
        """The message with the files that the superseded rows were decided from, and with the new deletion vectors."""
        return replace(
            message,
            settled=frozenset(file.name for file in (*task.files, *task.beside) if file.level > 0),
            old_vectors=tuple(sorted({vector.index_name for vector in task.vectors.values()})),
            new_vectors=superseded.new_vectors(moved),
        )

    def _groups(self, task: CompactionTask, settings: FileSettings) -> Iterator[DataFile | list[DataFile]]:
        """Single files that stay or move as they are, and lists of files to merge, all in key order."""
        waiting: list[DataFile] = []
        for section in sections(task.files, self._key_types):
            members = [task.files[place] for place in section.places]
            may_move = not task.rewrites_each and self._may_move(task, section, settings)
            if may_move and members[0].size >= settings.target_bytes * _LARGE_SHARE:
                yield from self._waited(task, waiting, settings)
                waiting = []
                yield members[0]
            else:
                waiting += members
        yield from self._waited(task, waiting, settings)

    def _waited(
        self, task: CompactionTask, waiting: list[DataFile], settings: FileSettings
    ) -> Iterator[DataFile | list[DataFile]]:
        if not waiting:
            return
        alone = len(waiting) == 1 and not task.rewrites_each
        if alone and self._may_move(task, Section(((task.files.index(waiting[0]),),)), settings):
            yield waiting[0]
        else:
            yield waiting

    def _may_move(self, task: CompactionTask, section: Section, settings: FileSettings) -> bool:
        """Whether nothing in a section has to change but its level."""
        if len(section.places) > 1:
            return False
        file = task.files[section.places[0]]
        if not file.name.endswith(f".{settings.file_format}") or file.name in task.vectors:
            return False
        # Readers rely on the delete counts of files above level 0.
        if file.delete_row_count == 0 and may_hold_retracts(file, counts_deletes=self._counts_deletes):
            return False
        if task.drop_deletes and self._expiry is not None and self._expiry.may_hold_expired(file, self._schema_of):
            return False
        # Rows of level 0 may supersede some in files beside them, which is found out as they are merged.
        supersedes = bool(self._compared(task).beside) and file.level == 0
        return not supersedes and not (task.drop_deletes and file.delete_row_count != 0)

    def _merged(
        self,
        task: CompactionTask,
        group: Sequence[DataFile],
        spec: SortedFileSpec,
        files: NewFiles,
        watch: Watch,
        superseded: SupersededRows,
    ) -> tuple[DataFile, ...]:
        folder = self._folders.bucket_folder(task.partition, task.bucket)
        writer = SortedFileWriter(
            spec, self._home, files, folder, nan_columns=known_nan_columns(group, self._schema, self._schema_of)
        )
        split = Split(
            task.snapshot_id,
            task.partition,
            task.bucket,
            task.total_buckets,
            tuple(group),
            tuple(f"{folder}/{file.name}" for file in group),
            tuple(task.vectors.get(file.name) for file in group),
            needs_merge=True,
        )
        batches = self._batches(task, group, split, superseded)
        rows, size = sum(file.row_count for file in group), sum(file.size for file in group)
        told = 0
        with ThreadPoolExecutor(1, "lakelet-compact") as pool:
            for rows_of_group in ahead(self._row_groups(batches, spec), pool):
                watch.check()
                writer.expect_nans(nan_columns(rows_of_group))
                writer.write(rows_of_group)
                told += rows_of_group.num_rows
                watch.advance(rows=rows_of_group.num_rows, size=size * rows_of_group.num_rows // max(rows, 1))
        written = writer.finish()
        # Rows that were merged away have been read as well.
        rest = max(rows - told, 0)
        watch.advance(rows=rest, size=size - size * told // max(rows, 1), written=sum(file.size for file in written))
        return written

    def _batches(
        self, task: CompactionTask, group: Sequence[DataFile], split: Split, superseded: SupersededRows
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a group that are to be written."""
        expiry = self._expiry if task.drop_deletes else None
        for batch in self._winners(task, group, split, superseded):
            kept = batch if expiry is None else expiry.kept(batch)
            if kept.num_rows:
                yield kept

    def _winners(
        self, task: CompactionTask, group: Sequence[DataFile], split: Split, superseded: SupersededRows
    ) -> Iterator[pa.RecordBatch]:
        """The winning row of every key."""
        if not superseded.task.beside:
            yield from self._reader(self._schema.names, drop_deletes=task.drop_deletes).batches([split])
            return
        deciding = self._reader(superseded.columns, drop_deletes=False).batches([split])
        winning = superseded.winning(group, deciding)
        at = 0
        for batch in self._reader(self._schema.names, drop_deletes=False).batches([split]):
            keep = np.ones(batch.num_rows, np.bool_) if winning is None else winning[at : at + batch.num_rows]
            at += batch.num_rows
            if self._hides:
                # A delete is not needed any longer once the rows that it supersedes are in deletion vectors.
                keep &= batch.column(VALUE_KIND).to_numpy() & 1 == 0
            kept = batch.filter(pa.array(keep))
            if kept.num_rows:
                yield kept

    def _reader(self, columns: Sequence[str], *, drop_deletes: bool) -> MergeReader:
        return MergeReader(
            self._home,
            self._schema,
            columns,
            row_filter(None, self._schema.fields),
            self._schema_of,
            ordered=True,
            budget_bytes=self._budget,
            versions=True,
            drop_deletes=drop_deletes,
        )

    def _row_groups(self, batches: Iterator[pa.RecordBatch], spec: SortedFileSpec) -> Iterator[pa.Table]:
        first = next(batches, None)
        if first is None:
            return
        settings = SinkSettings.keyed(self._schema)
        rows = replace(settings, files=spec.settings).group_rows(first.nbytes / first.num_rows)
        yield from row_groups(_chained(first, batches), rows)


def _chained(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest
