"""Write the rows of one task into files of their partitions.

    batch ─ fitted to the schema ─ collected ─ grouped by transformed partition ─ files ─ commit data of every file
                                                             │  memory full           ▲
                                                             ├ large partitions ── row groups
                                                             └ small ones ── runs on local disk, read back at the end

As long as memory holds all rows, every partition is written once, at the end. When it is full, partitions with enough rows for a
decent row group get an open file, of which there are at most `most_open`; the rows of all others wait on local disk. So a task
writes one file for each partition, or as many as the target size asks for, however many partitions there are. Where the table has
a sort order, a file is sorted as a whole and written at once.

Files have the job's id in their names. They are not visible until the driver commits them.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count

import pyarrow as pa

from lakelet.iceberg.commit.removal import remove_paths
from lakelet.iceberg.commit_data import CommitData
from lakelet.iceberg.schema.file_schema import leaf_columns
from lakelet.iceberg.write.data_file_writer import DataFileWriter, FileMaking
from lakelet.iceberg.write.dictionary_choice import SAMPLE_ROWS, dictionary_columns
from lakelet.iceberg.write.file_statistics import NanCounts, statistics_plan
from lakelet.iceberg.write.parquet_settings import parquet_settings
from lakelet.iceberg.write.partition_folder import KnownPartition
from lakelet.iceberg.write.partition_groups import GroupedRows, PartitionGroups, partition_columns
from lakelet.iceberg.write.row_fit import RowFit
from lakelet.iceberg.write.row_order import row_order
from lakelet.iceberg.write.spilled_partitions import HeldRows, SpilledPartitions, ready
from lakelet.iceberg.write.write_plan import WritePlan

MEMORY_BYTES = 256 << 20
MOST_OPEN = 64
_MOST_THREADS = 4
# The size of a batch that is sorted at once, and of a part of a partition that is worth a row group of its own.
_CHUNK_SHARE, _DIRECT_SHARE = 16, 16
_CHUNK_BYTES, _DIRECT_BYTES = 8 << 20, 16 << 20


class TableWriter:
    """Writes the rows of one task; `task` is a name that no other writer of the job has. `memory` bounds the rows that are held,
    in bytes; `threads` is how many files are encoded side by side."""

    def __init__(
        self,
        plan: WritePlan,
        task: str,
        *,
        memory: int = MEMORY_BYTES,
        most_open: int = MOST_OPEN,
        threads: int | None = None,
    ) -> None:
        self._plan = plan
        self._task = task
        self._most_open = most_open
        self._most_held = memory // 2
        self._chunk_bytes = min(_CHUNK_BYTES, memory // _CHUNK_SHARE)
        self._direct_bytes = min(_DIRECT_BYTES, memory // _DIRECT_SHARE)
        self._threads = threads or min(_MOST_THREADS, os.cpu_count() or 1)
        self._fit = RowFit(plan.schema)
        self._order = row_order(plan.sort_order, plan.schema)
        self._columns = partition_columns(plan.spec, plan.schema)
        self._groups = PartitionGroups(self._columns)
        self._leaves = leaf_columns(plan.schema)
        self._settings = parquet_settings(plan.properties, self._leaves)
        self._making: FileMaking | None = None
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = 0
        self._held: dict[int, HeldRows] = {}
        self._held_bytes = 0
        self._spilled = SpilledPartitions(self._fit.schema)
        self._writers: dict[int, DataFileWriter] = {}
        self._folders: dict[int, KnownPartition] = {}
        self._numbers = count()
        self._paths: list[str] = []
        self._pool = ThreadPoolExecutor(self._threads)
        self._sorting: deque[Future[pa.RecordBatch]] = deque()
        self._spilling: Future[None] | None = None

    def write(self, batch: pa.RecordBatch) -> None:
        """Adds rows; columns are matched by name and converted to the table's types. InvalidError for rows that do not fit."""
        if not batch.num_rows:
            self._fit.check_schema(batch.schema)
            return
        for part in _parts(batch, 4 * self._chunk_bytes):
            fitted = self._fit.fit(part)
            self._waiting.append(fitted)
            self._waiting_bytes += fitted.nbytes
            if self._waiting_bytes >= self._chunk_bytes:
                self._group()
            if self._held_bytes >= self._most_held:
                self._make_room()

    def close(self) -> list[CommitData]:
        """Finishes all files. Where it fails, `abort` removes them."""
        self._group()
        self._wait_for_disk()
        partitions = list(dict.fromkeys([*self._writers, *self._held, *self._spilled.partitions]))
        made: list[CommitData] = []
        running: deque[Future[list[CommitData]]] = deque()
        for partition in partitions:
            writer, rest = self._writer(partition), self._rest_of(partition)
            if self._spilled.bytes_of(partition) <= self._direct_bytes:
                running.append(self._pool.submit(self._finish, writer, list(rest)))
                # Rows that wait for a thread are held in memory.
                while len(running) > 2 * self._threads:
                    made += running.popleft().result()
            else:
                made += self._finish(writer, rest)
        for future in running:
            made += future.result()
        self._pool.shutdown()
        self._spilled.close()
        self._writers.clear()
        return made

    def abort(self) -> None:
        """Removes all files."""
        # Nothing may go on writing, or a file would come back.
        self._pool.shutdown(cancel_futures=True)
        for writer in self._writers.values():
            writer.abandon()
        self._writers.clear()
        self._waiting, self._held = [], {}
        self._spilled.close()
        remove_paths(self._plan.io, self._paths)
        self._paths = []

    def _group(self) -> None:
        """Adds the collected rows to those of their partitions."""
        if not self._waiting:
            return
        batch = self._waiting[0] if len(self._waiting) == 1 else pa.concat_batches(self._waiting)
        self._waiting, self._waiting_bytes = [], 0
        size = batch.nbytes
        grouped = self._groups.group(batch)
        rows = self._sorted(grouped)
        starts = grouped.starts.tolist()
        for index, partition in enumerate(grouped.partitions.tolist()):
            count = starts[index + 1] - starts[index]
            if partition not in self._held:
                self._held[partition] = HeldRows()
            self._held[partition].add(rows, starts[index], count, size * count // batch.num_rows)
        self._held_bytes += size
        if self._making is None:
            self._making = self._new_making()

    def _sorted(self, grouped: GroupedRows) -> Future[pa.RecordBatch]:
        """The rows in the order of their partitions, sorted in a thread while the next ones arrive."""
        if self._threads == 1:
            return ready(grouped.rows())
        self._sorting.append(self._pool.submit(grouped.rows))
        while len(self._sorting) > self._threads:
            self._sorting.popleft().result()
        return self._sorting[-1]

    def _make_room(self) -> None:
        """Frees memory: writes partitions that are large enough, and spills the others."""
        least = self._direct_bytes if self._order is None else self._most_held // 2
        direct: dict[int, HeldRows] = {}
        spilled: dict[int, HeldRows] = {}
        for number, rows in sorted(self._held.items(), key=lambda held: -held[1].size):
            large = rows.size >= least and (self._order is not None or self._may_open(number, direct))
            (direct if large else spilled)[number] = rows
        self._held, self._held_bytes = {}, 0
        writing = [
            self._pool.submit(self._write_part, self._writer(number), rows.table(), rows.size)
            for number, rows in direct.items()
        ]
        for future in writing:
            future.result()
        self._wait_for_disk()
        self._spilling = self._pool.submit(self._spilled.add, spilled)

    def _wait_for_disk(self) -> None:
        """Rows are spilled while the next ones arrive: those of one run are held until the next run is due."""
        if self._spilling is not None:
            self._spilling.result()
            self._spilling = None

    def _may_open(self, number: int, direct: dict[int, HeldRows]) -> bool:
        opened = {other for other, writer in self._writers.items() if writer.is_open} | set(direct)
        return number in opened or len(opened) < self._most_open

    def _write_part(self, writer: DataFileWriter, rows: pa.Table, size: int) -> None:
        if self._order is None:
            writer.write(rows, size)
        else:
            writer.write(self._order.sorted(rows.combine_chunks()), size)
            writer.finish_file()

    def _rest_of(self, partition: int) -> Iterator[HeldRows]:
        """The remaining rows of a partition, in portions of a row group or, sorted, of a file."""
        most = self._most_held if self._order is not None else min(self._most_held, self._settings.row_group_bytes)
        collected = HeldRows()
        for batch in self._spilled.rows_of(partition):
            collected.add(ready(batch), 0, batch.num_rows, batch.nbytes)
            if collected.size >= most:
                yield collected
                collected = HeldRows()
        held = self._held.pop(partition, HeldRows())
        collected.places += held.places
        collected.size += held.size
        if collected.places:
            yield collected

    def _finish(self, writer: DataFileWriter, rest: Iterable[HeldRows]) -> list[CommitData]:
        """Writes the last rows of a partition and closes its file."""
        for rows in rest:
            self._write_part(writer, rows.table(), rows.size)
        return writer.close()

    def _new_making(self) -> FileMaking:
        """The settings that files share; the first rows decide on dictionaries."""
        plan, order = self._plan, self._order
        columns = statistics_plan(self._leaves, plan.properties)
        batch, start, count = max(self._held.values(), key=lambda rows: rows.size).places[0]
        sample = batch.result().slice(start, min(count, SAMPLE_ROWS))
        return FileMaking(
            plan.table,
            plan.io,
            self._fit.schema,
            self._settings,
            columns,
            NanCounts(columns),
            plan.target_file_size,
            plan.partition_spec_id,
            None if order is None else order.order_id,
            dictionary_columns(self._leaves, sample),
        )

    def _writer(self, partition: int) -> DataFileWriter:
        assert self._making is not None, "there were rows"
        if partition not in self._writers:
            self._writers[partition] = DataFileWriter(
                self._making, self._groups.values[partition], lambda: self._new_path(partition)
            )
        return self._writers[partition]

    def _new_path(self, partition: int) -> str:
        plan = self._plan
        if self._columns and partition not in self._folders:
            values = self._groups.values[partition]
            self._folders[partition] = KnownPartition(plan.spec, plan.schema, self._columns, values)
        name = f"{plan.job}-{self._task}-{next(self._numbers):05d}.parquet"
        path = plan.locations.new_data_location(name, self._folders.get(partition))
        # Recorded before it exists, so that `abort` finds it.
        self._paths.append(path)
        return path


def _parts(batch: pa.RecordBatch, most_bytes: int) -> Iterator[pa.RecordBatch]:
    """The batch, in parts of about that size once no column is encoded."""
    size = sum(_plain_bytes(column) for column in batch.columns)
    rows = max(1, int(batch.num_rows * most_bytes / max(1, size)))
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def _plain_bytes(column: pa.Array) -> int:
    """About how many bytes a column has when each row has its own value: a dictionary, or a run, has one for many rows."""
    if pa.types.is_dictionary(column.type):
        values = column.dictionary
    elif pa.types.is_run_end_encoded(column.type):
        values = column.values
    else:
        return int(column.nbytes)
    return int(column.nbytes) + len(column) * int(values.nbytes) // max(1, len(values))
