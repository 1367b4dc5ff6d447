"""Write the files of an append table: batches in, commit messages out.

Rows are routed to (partition, bucket), buffered there, and written as row groups once there are enough. Memory is
bounded whatever the input: a bucket writes when it holds a row group's worth, and when all buckets together
hold more than the budget the fullest write first. A file is closed at its target size and the next one begun.
Uncommitted files are invisible: `abort` removes them, a crash leaves them to orphan removal.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from lakelet.format.data.new_files import NewFile, NewFiles
from lakelet.format.index.file.writer import FileIndexWriter
from lakelet.format.manifest.manifest_columns import EMPTY_ROW, NO_STATS
from lakelet.format.partition_folders import PartitionFolders
from lakelet.format.stats.file_statistics import StatsCollector
from lakelet.format.stats.nan_columns import nan_columns
from lakelet.model.commit_message import CommitMessage
from lakelet.model.data_file import FILE_SOURCE_APPEND, DataFile
from lakelet.model.schema import TableSchema
from lakelet.sink.bucket.router import Router
from lakelet.sink.rows.batch_slices import pieces
from lakelet.sink.write.one_commit import OneCommit
from lakelet.sink.write.sequences import CommittedSequences
from lakelet.sink.write.settings import SinkSettings
from lakelet.storage.home import TableHome

# Chunks smaller than this on average are concatenated before they are encoded and measured.
_SMALL_CHUNK_ROWS = 8192


@dataclass(slots=True)
class _OpenFile:
    file: NewFile
    stats: StatsCollector
    index: FileIndexWriter | None
    rows: int = 0


class AppendWriter:
    """Collects rows for one commit. `write` as often as needed, then `prepare_commit` once or `abort`."""

    def __init__(
        self,
        home: TableHome,
        schema: TableSchema,
        *,
        source: int = FILE_SOURCE_APPEND,
        replaces: bool = False,
        sequences: CommittedSequences | None = None,
    ) -> None:
        self._home = home
        self._schema = schema
        self._source = source
        self._settings = SinkSettings.of(schema)
        self._router = Router(schema)
        self._folders = PartitionFolders(home.paths, schema)
        self._buckets: dict[tuple[bytes, int], BucketWriter] = {}
        self._sequences = sequences or CommittedSequences(home, schema)
        # Rows that replace all others continue no sequence.
        self._replaces = replaces
        self._buffered = 0
        self._files = NewFiles(home, self._settings.files)
        self._life = OneCommit(home)

    def write(self, batch: pa.RecordBatch) -> None:
        """Takes rows in the table's columns."""
        self._life.check()
        with self._life.all_or_nothing():
            for routed in self._router.route(batch):
                bucket = self._bucket(routed.partition, routed.bucket)
                self._buffered += bucket.add(routed.rows)
            while self._buffered > self._settings.memory_bytes:
                fullest = max(self._buckets.values(), key=lambda bucket: bucket.buffered)
                self._buffered -= fullest.flush()
            self._limit_open_files()

    def prepare_commit(self) -> tuple[CommitMessage, ...]:
        """Close all files and return their commit messages."""
        self._life.check()
        messages = []
        for (partition, bucket), writer in self._buckets.items():
            with self._life.all_or_nothing():
                files = writer.finish()
            if files:
                messages.append(CommitMessage(partition, bucket, self._router.total_buckets, files))
        self._life.end("it has prepared its commit")
        return tuple(messages)

    def abort(self) -> None:
        """Removes everything written."""
        self._life.end("it was aborted")
        self._buckets.clear()
        self._files.remove()

    def _bucket(self, partition: bytes, bucket: int) -> BucketWriter:
        found = self._buckets.get((partition, bucket))
        if found is None:
            folder = self._folders.bucket_folder(partition, bucket)
            found = self._buckets[partition, bucket] = BucketWriter(
                self._files, self._home, self._schema, self._settings, folder, self._source
            )
            found.next_sequence = 0 if self._replaces else self._sequences.first_free((partition, bucket))
        return found

    def _limit_open_files(self) -> None:
        opened = [bucket for bucket in self._buckets.values() if bucket.is_open]
        for bucket in opened[: max(0, len(opened) - self._settings.max_open_files)]:
            self._buffered -= bucket.flush()
            bucket.roll()


class BucketWriter:
    """The files of one bucket of one partition. `add` rows, then `finish`.

    A caller that knows of NaN in some `nan_columns` says so at the start, so that no file is closed because of the first NaN.
    """

    def __init__(
        self,
        files: NewFiles,
        home: TableHome,
        schema: TableSchema,
        settings: SinkSettings,
        folder: str,
        source: int,
        *,
        nan_columns: frozenset[str] = frozenset(),
    ) -> None:
        self._files = files
        self._home = home
        self._schema = schema
        self._settings = settings
        self._folder = folder
        self._source = source
        self._buffer: list[pa.RecordBatch] = []
        self.buffered = 0
        self._open: _OpenFile | None = None
        self._finished: list[DataFile] = []
        self._nan_columns = nan_columns
        self.next_sequence = 0

    @property
    def is_open(self) -> bool:
        """Whether a file is being written."""
        return self._open is not None

    def add(self, rows: pa.RecordBatch) -> int:
        """Buffers rows, writing row groups as they fill up; returns by how much the buffer grew."""
        before = self.buffered
        for part in pieces(rows, self._settings.row_group_bytes):
            self._buffer.append(part)
            self.buffered += part.nbytes
            if self.buffered >= self._settings.row_group_bytes:
                self.flush()
        return self.buffered - before

    def flush(self) -> int:
        """Writes the buffer as one row group; returns the bytes it held."""
        freed, self.buffered = self.buffered, 0
        if not self._buffer:
            return freed
        table = pa.Table.from_batches(self._buffer)
        if table.num_rows < _SMALL_CHUNK_ROWS * len(self._buffer):
            table = table.combine_chunks()
        self._buffer = []
        new_nans = nan_columns(table) - self._nan_columns
        if new_nans:
            # A footer cannot take back its minima and maxima, so the rows with the first NaN begin a new file.
            self.roll()
            self._nan_columns |= new_nans
        opened = self._open or self._begin()
        opened.file.write(table)
        for batch in table.to_batches():
            opened.stats.update(batch)
        if opened.index is not None:
            opened.index.update(table)
        opened.rows += table.num_rows
        if opened.file.size() >= self._settings.files.target_bytes:
            self.roll()
        return freed

    def roll(self) -> None:
        """Closes the open file."""
        opened = self._open
        if opened is None:
            return
        size = opened.file.close()
        self._open = None
        value_stats, columns = opened.stats.finish()
        embedded, beside = opened.file.put_index(opened.index, self._settings.files.embedded_index_bytes)
        self._finished.append(
            DataFile(
                name=opened.file.name,
                size=size,
                row_count=opened.rows,
                min_key=EMPTY_ROW,
                max_key=EMPTY_ROW,
                key_stats=NO_STATS,
                value_stats=value_stats,
                min_sequence=self.next_sequence,
                max_sequence=self.next_sequence + opened.rows - 1,
                schema_id=self._schema.id,
                level=0,
                creation_ms=self._home.clock.now_ms(),
                delete_row_count=0,
                source=self._source,
                value_stats_columns=columns,
                extra_files=beside,
                embedded_index=embedded,
            )
        )
        self.next_sequence += opened.rows

    def finish(self) -> tuple[DataFile, ...]:
        """Writes what is left and closes the last file."""
        self.flush()
        self.roll()
        return tuple(self._finished)

    def _begin(self) -> _OpenFile:
        file = self._files.begin(self._folder, self._schema.fields, without_ranges=self._nan_columns)
        self._open = _OpenFile(
            file, self._settings.files.collector(self._schema.fields), self._settings.files.index_writer()
        )
        return self._open
