"""Read data files in batches, in their stored columns.

A Parquet file is read by the indexes of its leaf columns, never by names, which may be duplicate or contain dots. An ORC
file is read stripe by stripe. Avro data files are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc

from lakelet.errors import InvalidError
from lakelet.iceberg.scan.evolution import Stored

BATCH_ROWS = 65_536
# The message of Arrow's ORC reader about timestamps that do not fit 64 bits of nanoseconds.
_TOO_FAR = "out of range for nanosecond resolution"


class OpenedFile(Protocol):
    """A data file that is open."""

    @property
    def schema(self) -> pa.Schema:
        """Its columns, with their ids in the metadata of fields."""
        ...

    def batches(self, columns: Sequence[Stored], rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """All rows in order, up to `rows` of them at a time, in these top-level columns, which are in the file's order."""
        ...


def open_file(stream: Any, file_format: str, path: str) -> OpenedFile:
    """A data file in an open stream."""
    match file_format:
        case "PARQUET":
            return _Parquet(stream)
        case "ORC":
            return _Orc(stream, path)
    raise InvalidError(f"{path}: data files of format {file_format} are not read, only PARQUET and ORC")


class _Parquet:
    def __init__(self, stream: Any) -> None:
        self._file = pq.ParquetFile(stream, pre_buffer=True)
        self.schema: pa.Schema = self._file.schema_arrow

    def batches(self, columns: Sequence[Stored], rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        if not columns:
            yield from _without_columns(self._file.metadata.num_rows)
            return
        starts = [0]
        for field in self.schema:
            starts.append(starts[-1] + _leaves(field.type))
        leaves = [leaf for one in columns for leaf in range(starts[one.place], starts[one.place + 1])]
        groups = list(range(self._file.metadata.num_row_groups))
        yield from self._file.reader.iter_batches(
            rows, row_groups=groups, column_indices=leaves, use_threads=len(leaves) > 1
        )


class _Orc:
    def __init__(self, stream: Any, path: str) -> None:
        self._file = orc.ORCFile(stream)
        self._path = path
        self.schema: pa.Schema = self._file.schema

    def batches(self, columns: Sequence[Stored], rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        if not columns:
            yield from _without_columns(self._file.nrows)
            return
        names = [one.name for one in columns]
        for stripe in range(self._file.nstripes):
            yield self._stripe(stripe, names)

    def _stripe(self, number: int, names: list[str]) -> pa.RecordBatch:
        try:
            return self._file.read_stripe(number, columns=names)
        except pa.ArrowInvalid as error:
            if _TOO_FAR not in str(error):
                raise
            raise InvalidError(
                f"{self._path}: moments before 1677 or after 2262 are not read from ORC files: {error}"
            ) from error


def _without_columns(count: int) -> Iterator[pa.RecordBatch]:
    """Rows of which only the number is known."""
    for start in range(0, count, BATCH_ROWS):
        size = min(BATCH_ROWS, count - start)
        yield pa.RecordBatch.from_arrays([pa.nulls(size)], names=["none"])


def _leaves(kind: pa.DataType) -> int:
    """How many columns of a Parquet file a type takes."""
    if isinstance(kind, pa.BaseExtensionType):
        return _leaves(kind.storage_type)
    return sum(_leaves(kind.field(place).type) for place in range(kind.num_fields)) if kind.num_fields else 1
