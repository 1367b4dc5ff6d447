"""Writing the files of an append table: batches in, commit messages out.

Rows are routed to (partition, bucket), gathered there, and written as row groups once enough are together. Memory is
bounded whatever the input: a bucket writes when it holds a row group's worth, and when all buckets together
hold more than the budget the fullest write first. A file is closed at its target size and the next one begun.
Files that are not committed are nobody's: `abort` removes them, a crash leaves them to orphan removal.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.errors import InvalidError, LakeletError, UnavailableError
from lakelet.format.data_file_format import FormatWriter
from lakelet.format.data_files import data_file_format
from lakelet.format.manifest_columns import EMPTY_ROW, NO_STATS
from lakelet.format.partition_folders import PartitionFolders
from lakelet.format.statistics import StatsCollector
from lakelet.model.commit_message import CommitMessage
from lakelet.model.data_file import FILE_SOURCE_APPEND, DataFile
from lakelet.model.schema import TableSchema
from lakelet.sink.routing import Router
from lakelet.sink.sequences import next_sequences
from lakelet.sink.settings import SinkSettings
from lakelet.storage.home import TableHome
from lakelet.storage.store import OutputFile

_LOG = logging.getLogger(__name__)
# Chunks smaller than this on average are put together before they are encoded and measured.
_SMALL_CHUNK_ROWS = 8192


@dataclass(slots=True)
class _OpenFile:
    name: str
    path: str
    output: OutputFile
    writer: FormatWriter
    stats: StatsCollector
    rows: int = 0


class AppendWriter:
    """Collects rows for one commit. `write` as often as needed, then `prepare_commit` once or `abort`."""

    def __init__(self, home: TableHome, schema: TableSchema, *, source: int = FILE_SOURCE_APPEND) -> None:
        self._home = home
        self._schema = schema
        self._source = source
        self._settings = SinkSettings.of(schema)
        self._router = Router(schema)
        self._folders = PartitionFolders(home.paths, schema)
        self._buckets: dict[tuple[bytes, int], _BucketWriter] = {}
        self._sequences = next_sequences(home, schema)
        self._buffered = 0
        self._prefix = f"{self._settings.file_prefix}{home.ids.uuid()}"
        self._files = 0
        self._over: str | None = None

    def write(self, batch: pa.RecordBatch) -> None:
        """Takes rows in the table's columns."""
        self._check_usable()
        with self._all_or_nothing():
            for routed in self._router.route(batch):
                bucket = self._bucket(routed.partition, routed.bucket)
                self._buffered += bucket.add(routed.rows)
            while self._buffered > self._settings.memory_bytes:
                fullest = max(self._buckets.values(), key=lambda bucket: bucket.buffered)
                self._buffered -= fullest.flush()
            self._limit_open_files()

    def prepare_commit(self) -> tuple[CommitMessage, ...]:
        """Closes all files and says what was written."""
        self._check_usable()
        messages = []
        for (partition, bucket), writer in self._buckets.items():
            with self._all_or_nothing():
                files = writer.finish()
            if files:
                messages.append(CommitMessage(partition, bucket, self._router.total_buckets, files))
        self._over = "it has prepared its commit"
        return tuple(messages)

    def abort(self) -> None:
        """Removes everything written."""
        self._over = "it was aborted"
        for writer in self._buckets.values():
            writer.abort()

    def _check_usable(self) -> None:
        if self._over is not None:
            raise InvalidError(f"this writer cannot go on, for {self._over}; start a new one")

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """After an error rows may be missing from what was written, so that nothing but an abort may follow."""
        try:
            yield
        except OSError as error:
            # What Arrow's writers meet comes out as it is: a full disk, a closed connection.
            self._over = "writing failed"
            where = self._home.where(self._home.paths.root)
            raise UnavailableError(f"writing below {where} failed: {error}") from error
        except BaseException:
            self._over = "writing failed"
            raise

    def next_file_name(self) -> str:
        """A name no other file has."""
        self._files += 1
        return f"{self._prefix}-{self._files - 1}{self._settings.file_suffix}"

    def _bucket(self, partition: bytes, bucket: int) -> _BucketWriter:
        found = self._buckets.get((partition, bucket))
        if found is None:
            folder = self._folders.bucket_folder(partition, bucket)
            found = self._buckets[partition, bucket] = _BucketWriter(
                self, self._home, self._schema, self._settings, folder, self._source
            )
            found.next_sequence = self._sequences.get((partition, bucket), 0)
        return found

    def _limit_open_files(self) -> None:
        opened = [bucket for bucket in self._buckets.values() if bucket.is_open]
        for bucket in opened[: max(0, len(opened) - self._settings.max_open_files)]:
            self._buffered -= bucket.flush()
            bucket.roll()


class _BucketWriter:
    """The files of one bucket of one partition."""

    def __init__(
        self,
        owner: AppendWriter,
        home: TableHome,
        schema: TableSchema,
        settings: SinkSettings,
        folder: str,
        source: int,
    ) -> None:
        self._owner = owner
        self._home = home
        self._schema = schema
        self._settings = settings
        self._folder = folder
        self._source = source
        self._buffer: list[pa.RecordBatch] = []
        self.buffered = 0
        self._open: _OpenFile | None = None
        self._finished: list[DataFile] = []
        self._paths: list[str] = []
        self._nan_columns: frozenset[str] = frozenset()
        self.next_sequence = 0

    @property
    def is_open(self) -> bool:
        """Whether a file is being written."""
        return self._open is not None

    def add(self, rows: pa.RecordBatch) -> int:
        """Buffers rows, writing row groups as they fill up; returns by how much the buffer grew."""
        before = self.buffered
        for part in _pieces(rows, self._settings.row_group_bytes):
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
        nan_columns = _nan_columns(table) - self._nan_columns
        if nan_columns:
            # A footer cannot take back its minima and maxima, so the rows with the first NaN begin a new file.
            self.roll()
            self._nan_columns |= nan_columns
        file = self._open or self._begin()
        file.writer.write(table)
        for batch in table.to_batches():
            file.stats.update(batch)
        file.rows += table.num_rows
        if file.writer.size() >= self._settings.target_file_bytes:
            self.roll()
        return freed

    def roll(self) -> None:
        """Closes the open file."""
        file = self._open
        if file is None:
            return
        file.writer.close()
        size = file.output.tell()
        file.output.close()
        self._open = None
        value_stats, columns = file.stats.finish()
        self._finished.append(
            DataFile(
                name=file.name,
                size=size,
                row_count=file.rows,
                min_key=EMPTY_ROW,
                max_key=EMPTY_ROW,
                key_stats=NO_STATS,
                value_stats=value_stats,
                min_sequence=self.next_sequence,
                max_sequence=self.next_sequence + file.rows - 1,
                schema_id=self._schema.id,
                level=0,
                creation_ms=self._home.clock.now_ms(),
                delete_row_count=0,
                source=self._source,
                value_stats_columns=columns,
            )
        )
        self.next_sequence += file.rows

    def finish(self) -> tuple[DataFile, ...]:
        """Writes what is left and closes the last file."""
        self.flush()
        self.roll()
        return tuple(self._finished)

    def abort(self) -> None:
        """Removes the files of this bucket."""
        self._buffer, self.buffered = [], 0
        if self._open is not None:
            self._discard(self._open)
        try:
            self._home.store.delete(self._paths)
        except LakeletError as error:
            _LOG.warning("%d uncommitted files stay behind in %s: %s", len(self._paths), self._folder, error)

    def _begin(self) -> _OpenFile:
        name = self._owner.next_file_name()
        path = f"{self._folder}/{name}"
        output = self._home.store.open_output(path)
        try:
            writer = data_file_format(self._settings.file_format).open_writer(
                output, self._schema.fields, self._settings.encoding, without_ranges=self._nan_columns
            )
        except Exception:
            output.abort()
            raise
        self._paths.append(path)
        self._open = _OpenFile(name, path, output, writer, self._settings.collector(self._schema.fields))
        return self._open

    def _discard(self, file: _OpenFile) -> None:
        self._open = None
        self._paths.remove(file.path)
        file.output.abort()


def _nan_columns(table: pa.Table) -> frozenset[str]:
    """The floating-point columns that hold a NaN."""
    floats = [field.name for field in table.schema if pa.types.is_floating(field.type)]
    return frozenset(name for name in floats if pc.any(pc.is_nan(table.column(name))).as_py())


def _pieces(rows: pa.RecordBatch, limit: int) -> Iterator[pa.RecordBatch]:
    """The rows in slices of at most about `limit` bytes."""
    count = max(1, -(-rows.nbytes // limit))
    step = max(1, -(-rows.num_rows // count))
    for start in range(0, rows.num_rows, step):
        yield rows.slice(start, step)
