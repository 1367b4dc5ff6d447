"""Write the files of one partition: one is open at a time, and rolled over at the target size.

    rows ─ row groups of bounded bytes and rows ─ Parquet ─ commit data once the file is closed

A file's size is known from the bytes written; the size of the next rows is estimated from the compression ratio of those
before. A file is complete once it is closed, and is not visible until it is committed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io import FileIO

from lakelet.iceberg.catalog.library_errors import lakelet_errors
from lakelet.iceberg.commit_data import CommitData
from lakelet.iceberg.write.file_statistics import ColumnPlan, NanCounts, file_statistics
from lakelet.iceberg.write.parquet_settings import ParquetSettings

_LOG = logging.getLogger(__name__)
_GUESSED_SHARE = 0.4
"""The compression ratio assumed before any row is written."""
_FULL = 0.9


@dataclass(frozen=True, slots=True)
class FileMaking:
    """Settings that all files of a task share."""

    table: str
    io: FileIO
    schema: pa.Schema
    settings: ParquetSettings
    columns: tuple[ColumnPlan, ...]
    nans: NanCounts
    target_bytes: int
    spec_id: int
    sort_order_id: int | None
    dictionary: list[str]


class DataFileWriter:
    """Writes the rows of one partition; `new_path` names the next file."""

    def __init__(self, making: FileMaking, values: tuple[Any, ...], new_path: Callable[[], str]) -> None:
        self._making = making
        self._values = values
        self._new_path = new_path
        self._open: _OpenFile | None = None
        self._made: list[CommitData] = []
        self._share = _GUESSED_SHARE

    @property
    def is_open(self) -> bool:
        """Whether a file is begun and not closed."""
        return self._open is not None

    def write(self, rows: pa.Table, size: int) -> None:
        """Takes rows, which have about that size in memory, as whole row groups."""
        settings, target = self._making.settings, self._making.target_bytes
        left, row_bytes = rows, max(1, size) / max(1, rows.num_rows)
        while left.num_rows:
            room = (target - (self._open.size if self._open else 0)) / self._share
            most = int(min(room, settings.row_group_bytes) / row_bytes)
            count = max(1, min(most, settings.row_group_rows, left.num_rows))
            if left.num_rows - count < count // 8 and left.num_rows <= settings.row_group_rows:
                count = left.num_rows
            if self._open is None:
                self._open = _OpenFile(self._making, self._new_path(), count)
            self._share = self._open.write(left.slice(0, count), row_bytes * count)
            left = left.slice(count)
            if self._open.size >= target * _FULL:
                self.finish_file()

    def finish_file(self) -> None:
        """Closes the open file, if there is one; later rows begin another."""
        if self._open is not None:
            self._made.append(self._open.close(self._values))
            self._open = None

    def close(self) -> list[CommitData]:
        """Closes the last file."""
        self.finish_file()
        return self._made

    def abandon(self) -> None:
        """Closes the open file, which is to be removed."""
        if self._open is not None:
            self._open.abandon()
            self._open = None


class _OpenFile:
    """One Parquet file."""

    def __init__(self, making: FileMaking, path: str, rows: int) -> None:
        self._making = making
        self._path = path
        self._memory_bytes = 0.0
        self._rows = 0
        self._nans: dict[int, int] = {}
        self.size = 0
        with lakelet_errors(f"table {making.table}: file {path}"):
            self._output = making.io.new_output(path)
            self._sink: Any = self._output.create(overwrite=True)
            options = making.settings.options_for(rows)
            self._writer = pq.ParquetWriter(self._sink, making.schema, use_dictionary=making.dictionary, **options)

    def write(self, rows: pa.Table, size: float) -> float:
        """Writes a row group, and returns the compression ratio of all rows so far."""
        with lakelet_errors(f"table {self._making.table}: file {self._path}"):
            self._writer.write_table(rows, row_group_size=rows.num_rows)
        for number, count in self._making.nans.of(rows).items():
            self._nans[number] = self._nans.get(number, 0) + count
        self._rows += rows.num_rows
        self._memory_bytes += size
        self.size = int(self._sink.tell())
        return max(self.size, 1) / self._memory_bytes

    def close(self, values: tuple[Any, ...]) -> CommitData:
        """Finishes the file."""
        making = self._making
        with lakelet_errors(f"table {making.table}: file {self._path}"):
            self._writer.close()
            self.size = int(self._sink.tell())
            self._sink.close()
        found = file_statistics(self._writer.writer.metadata, making.columns, self._nans)
        return CommitData(
            self._path,
            self._rows,
            self.size,
            making.spec_id,
            values,
            split_offsets=found.split_offsets,
            column_sizes=found.column_sizes,
            value_counts=found.value_counts,
            null_value_counts=found.null_value_counts,
            nan_value_counts=found.nan_value_counts,
            lower_bounds=found.lower_bounds,
            upper_bounds=found.upper_bounds,
            sort_order_id=making.sort_order_id,
        )

    def abandon(self) -> None:
        """Closes what is open; the file is removed, whatever is in it."""
        # Otherwise the writer would finish the file when it is garbage-collected.
        self._writer.is_open = False
        try:
            self._sink.close()
        except Exception as error:
            _LOG.warning("%s could not be closed and is removed: %s", self._path, error)
