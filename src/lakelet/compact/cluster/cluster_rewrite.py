"""Rewrite the files of a partition of an append table in the order of a clustering, in bounded memory.

    files ─ SplitReader ─┬─ rows that fit: sorted in memory ──────────────────────────────────────────────── BucketWriter
                         └─ others: a sample of the ordering columns ─ up to 64 ranges on local disk ─ each in turn ─┘

    <temporary folder>/<n>.arrow        the rows of range n, in Arrow's IPC format, LZ4

A range that does not fit either is divided again; rows that no bound divides are equal and need no order. Nothing here commits:
a crash leaves orphan files, and after an error there are none.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain

import numpy as np
import pyarrow as pa

from lakelet.compact.cluster.chosen_order import RowOrdering
from lakelet.compact.cluster.cluster_order import SAMPLE_ROWS, ClusterOrder, Numbers, in_order
from lakelet.compact.known_nans import known_nan_columns
from lakelet.compact.progress import Watch
from lakelet.compact.task import CompactionTask
from lakelet.format.data.new_files import NewFiles
from lakelet.format.partition_folders import PartitionFolders
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
from lakelet.storage.spill_folder import SpillFolder

# Sorting holds the rows twice.
HELD_BYTES = 96 << 20
_MOST_RANGES = 64
_BATCH_ROWS = 1 << 16
_BATCH_BYTES = 16 << 20
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")

Batches = Iterable[pa.RecordBatch]


class ClusterRewriter:
    """Runs tasks of one table in its newest schema, one after the other or in threads."""

    def __init__(
        self,
        home: TableHome,
        schema: TableSchema,
        schema_of: Callable[[int], TableSchema],
        ordering: RowOrdering,
        held_bytes: int = HELD_BYTES,
    ) -> None:
        self._home = home
        self._schema = schema
        self._schema_of = schema_of
        self._ordering = ordering
        self._held_bytes = held_bytes
        self._settings = SinkSettings.of(schema)
        self._folders = PartitionFolders(home.paths, schema)

    def rewrite(self, task: CompactionTask, watch: Watch) -> CommitMessage:
        """The message of a clustering that is done but not committed. After an error there are no new files."""
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
            written,
            task.files,
            base_snapshot=task.snapshot_id,
            old_vectors=tuple(sorted({vector.index_name for vector in task.vectors.values()})),
        )

    def _written(self, task: CompactionTask, files: NewFiles, watch: Watch) -> tuple[DataFile, ...]:
        folder = self._folders.bucket_folder(task.partition, task.bucket)
        nans = known_nan_columns(task.files, self._schema, self._schema_of)
        writer = BucketWriter(
            files, self._home, self._schema, self._settings, folder, FILE_SOURCE_COMPACT, nan_columns=nans
        )
        split = _split(task, folder)

        def sampled() -> pa.Table:
            step = max(1, task.row_count // SAMPLE_ROWS)
            return _every(self._rows(split, self._ordering.columns), step)

        for batch in self._ordered(self._watched(split, task, watch), sampled):
            watch.check()
            writer.add(batch)
        written = writer.finish()
        watch.advance(written=sum(file.size for file in written))
        return written

    def _rows(self, split: Split, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
        everything = row_filter(None, self._schema.fields)
        return SplitReader(self._home, self._schema.fields, columns, everything, self._schema_of).batches([split])

    def _watched(self, split: Split, task: CompactionTask, watch: Watch) -> Iterator[pa.RecordBatch]:
        done, told = 0, 0
        for batch in self._rows(split, tuple(self._schema.names)):
            watch.check()
            size = task.size * batch.num_rows // max(task.row_count, 1)
            done, told = done + batch.num_rows, told + size
            watch.advance(rows=batch.num_rows, size=size)
            yield batch
        # Rows that are deleted have been read as well.
        watch.advance(rows=max(task.row_count - done, 0), size=task.size - told)

    def _ordered(self, batches: Iterator[pa.RecordBatch], sampled: Callable[[], pa.Table]) -> Iterator[pa.RecordBatch]:
        """The rows in order: sorted in memory if they fit, else range by range."""
        held: list[pa.RecordBatch] = []
        size = 0
        for batch in batches:
            held.append(batch)
            size += batch.nbytes
            if size > self._held_bytes:
                yield from self._by_ranges(chain(held, batches), sampled())
                return
        if held:
            rows = pa.Table.from_batches(held)
            order = ClusterOrder.of(self._ordering, self._schema, rows)
            yield from in_order(rows, order.permutation(rows), _BATCH_ROWS)

    def _by_ranges(self, batches: Batches, sample: pa.Table) -> Iterator[pa.RecordBatch]:
        order = ClusterOrder.of(self._ordering, self._schema, sample)
        bounds = order.bounds(_MOST_RANGES)
        with SpillFolder("lakelet-cluster-") as folder:
            counts = _spill(folder, batches, lambda rows: order.ranges(rows, bounds))
            for number in sorted(counts):
                path = os.path.join(folder, f"{number}.arrow")
                if counts[number] == sum(counts.values()):
                    # No bound divides these rows.
                    yield from _read(path)
                    continue
                step = max(1, counts[number] // SAMPLE_ROWS)
                yield from self._ordered(_read(path), partial(_sample_of, path, step))
                os.remove(path)


def _spill(folder: str, batches: Batches, ranges: Callable[[pa.Table], Numbers]) -> dict[int, int]:
    """Writes the rows of each range into a file of its own; how many there are."""
    writers: dict[int, pa.ipc.RecordBatchStreamWriter] = {}
    counts: dict[int, int] = {}
    try:
        for rows in _larger(batches):
            numbers = ranges(rows)
            sorted_rows = rows.take(pa.array(np.argsort(numbers, kind="stable")))
            found, sizes = np.unique(numbers, return_counts=True)
            start = 0
            for number, size in zip(found.tolist(), sizes.tolist(), strict=True):
                if number not in writers:
                    path = os.path.join(folder, f"{number}.arrow")
                    writers[number] = pa.ipc.new_stream(path, rows.schema, options=_OPTIONS)
                writers[number].write_table(sorted_rows.slice(start, size))
                counts[number] = counts.get(number, 0) + size
                start += size
    finally:
        for writer in writers.values():
            writer.close()
    return counts


def _larger(batches: Batches) -> Iterator[pa.Table]:
    """Small batches together, for each costs a search for the ranges of its rows and a write into every file."""
    held: list[pa.RecordBatch] = []
    rows, size = 0, 0
    for batch in batches:
        held.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= _BATCH_ROWS or size >= _BATCH_BYTES:
            yield pa.Table.from_batches(held)
            held, rows, size = [], 0, 0
    if held:
        yield pa.Table.from_batches(held)


def _read(path: str) -> Iterator[pa.RecordBatch]:
    with pa.OSFile(path) as source, pa.ipc.open_stream(source) as reader:
        yield from reader


def _sample_of(path: str, step: int) -> pa.Table:
    return _every(_read(path), step)


def _every(batches: Batches, step: int) -> pa.Table:
    """Every n-th row."""
    taken: list[pa.RecordBatch] = []
    first, schema = 0, None
    for batch in batches:
        schema = batch.schema
        taken.append(batch.take(pa.array(np.arange(first, batch.num_rows, step))))
        first = (first - batch.num_rows) % step
    return pa.Table.from_batches(taken, schema)


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
