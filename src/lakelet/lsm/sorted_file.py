"""Write sorted rows of one bucket as data files of a primary-key table, on any level.

    rows (_SEQUENCE_NUMBER, _VALUE_KIND, <column> ...)  ──►  files, closed at their target size  ──►  DataFile

The layout of a file is that of `key_value_columns`; the `_KEY_` columns are added here. The metadata of every file has what
readers prune by: first and last key, statistics of the key and of all columns, the range of sequence
numbers and how many rows are retracts. The rows come in key order, each key once; this is not checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakelet.format.data.data_file_format import KeyedRows
from lakelet.format.data.file_settings import KEY_STATS_MODE, FileSettings
from lakelet.format.data.new_files import NewFile, NewFiles
from lakelet.format.data.sst_file import NAME as SST
from lakelet.format.index.file.writer import FileIndexWriter
from lakelet.format.rows.binary_row_columns import encode_rows
from lakelet.format.stats.file_statistics import StatsCollector
from lakelet.lsm.key_bytes import encode_key_bytes
from lakelet.lsm.key_value_columns import SEQUENCE_NUMBER, VALUE_KIND, file_fields, key_fields
from lakelet.model.data_file import FILE_SOURCE_APPEND, DataFile
from lakelet.model.schema import KEY_PREFIX, TableSchema
from lakelet.model.types import Field
from lakelet.options import DATA_FILE_THIN_MODE, TableOptions
from lakelet.storage.home import TableHome


@dataclass(frozen=True, slots=True)
class SortedFileSpec:
    """The settings of the sorted files of one writer. `keeps_key_stats` is false where no column has statistics."""

    schema: TableSchema
    settings: FileSettings
    thin: bool
    level: int = 0
    source: int = FILE_SOURCE_APPEND
    keeps_key_stats: bool = True

    @staticmethod
    def of(
        schema: TableSchema, settings: FileSettings, *, level: int = 0, source: int = FILE_SOURCE_APPEND
    ) -> SortedFileSpec:
        """The specification of a table's options."""
        # The entries of an SST file have the key beside the columns, in bytes.
        thin = TableOptions(schema.options).get(DATA_FILE_THIN_MODE) or settings.file_format == SST
        first = schema.trimmed_primary_keys[0]
        close = frozenset((SEQUENCE_NUMBER, first, f"{KEY_PREFIX}{first}"))
        keyed = KeyedRows(schema.id, partial(_key_bytes, schema.trimmed_key_fields))
        encoding = replace(settings.encoding, sorted_columns=close, keyed=keyed)
        return SortedFileSpec(schema, replace(settings, encoding=encoding), thin, level, source)

    def value_stats(self) -> StatsCollector:
        """A collector for the table's columns; keys that a file stores once have their bounds here as well."""
        keys = self.schema.trimmed_primary_keys if self.thin and self.keeps_key_stats else ()
        return self.settings.collector(self.schema.fields, keys=keys)

    def key_stats(self) -> StatsCollector:
        """A collector for the key columns."""
        mode = KEY_STATS_MODE if self.keeps_key_stats else "none"
        return StatsCollector(key_fields(self.schema), mode, dense=False)


@dataclass(slots=True)
class _OpenFile:
    file: NewFile
    value_stats: StatsCollector
    key_stats: StatsCollector
    index: FileIndexWriter | None
    first_key: list[pa.Array]
    last_key: list[pa.Array] = field(default_factory=list)
    rows: int = 0
    retracts: int = 0
    min_sequence: int = 2**63 - 1
    max_sequence: int = -(2**63)


class SortedFileWriter:
    """The files of one bucket. `write` in key order, then `finish`."""

    def __init__(
        self,
        spec: SortedFileSpec,
        home: TableHome,
        files: NewFiles,
        folder: str,
        *,
        nan_columns: frozenset[str] = frozenset(),
    ) -> None:
        self._spec = spec
        self._home = home
        self._files = files
        self._folder = folder
        self._keys = spec.schema.trimmed_primary_keys
        self._key_types = [key.type for key in spec.schema.trimmed_key_fields]
        self._fields = file_fields(spec.schema, thin=spec.thin)
        self._value_names = [column.name for column in spec.schema.fields]
        self._without_ranges: frozenset[str] = frozenset()
        self._open: _OpenFile | None = None
        self._finished: list[DataFile] = []
        self.expect_nans(nan_columns)

    def expect_nans(self, columns: frozenset[str]) -> None:
        """Declare that these columns may hold NaN from now on: a footer cannot drop ranges, so that a new file begins."""
        without_ranges = columns | {f"{KEY_PREFIX}{name}" for name in columns}
        if not without_ranges <= self._without_ranges:
            self.roll()
            self._without_ranges |= without_ranges

    @property
    def is_open(self) -> bool:
        """Whether a file is being written."""
        return self._open is not None

    def write(self, rows: pa.Table) -> None:
        """Writes rows as a row group of their own."""
        if not rows.num_rows:
            return
        keys = [rows.column(name) for name in self._keys]
        opened = self._open or self._begin(keys)
        opened.file.write(self._stored(rows, keys))
        for batch in rows.select(self._value_names).to_batches():
            opened.value_stats.update(batch)
        if opened.index is not None:
            opened.index.update(rows)
        for batch in pa.Table.from_arrays(keys, names=self._keys).to_batches():
            opened.key_stats.update(batch)
        opened.last_key = [_value(column, rows.num_rows - 1) for column in keys]
        opened.rows += rows.num_rows
        opened.retracts += int(np.count_nonzero(_numbers(rows, VALUE_KIND) & 1))
        sequences = _numbers(rows, SEQUENCE_NUMBER)
        opened.min_sequence = min(opened.min_sequence, int(sequences.min()))
        opened.max_sequence = max(opened.max_sequence, int(sequences.max()))
        if opened.file.size() >= self._spec.settings.target_bytes:
            self.roll()

    def roll(self) -> None:
        """Closes the open file."""
        opened = self._open
        if opened is None:
            return
        size = opened.file.close()
        self._open = None
        value_stats, columns = opened.value_stats.finish()
        key_stats, _ = opened.key_stats.finish()
        embedded, beside = opened.file.put_index(opened.index, self._spec.settings.embedded_index_bytes)
        ends = [pa.concat_arrays(pair) for pair in zip(opened.first_key, opened.last_key, strict=True)]
        min_key, max_key = encode_rows(ends, self._key_types).to_pylist()
        self._finished.append(
            DataFile(
                name=opened.file.name,
                size=size,
                row_count=opened.rows,
                min_key=min_key,
                max_key=max_key,
                key_stats=key_stats,
                value_stats=value_stats,
                min_sequence=opened.min_sequence,
                max_sequence=opened.max_sequence,
                schema_id=self._spec.schema.id,
                level=self._spec.level,
                creation_ms=self._home.clock.now_ms(),
                delete_row_count=opened.retracts,
                source=self._spec.source,
                value_stats_columns=columns,
                extra_files=beside,
                embedded_index=embedded,
            )
        )

    def finish(self) -> tuple[DataFile, ...]:
        """Closes the last file; all files, in key order."""
        self.roll()
        return tuple(self._finished)

    def _begin(self, keys: Sequence[pa.ChunkedArray]) -> _OpenFile:
        file = self._files.begin(self._folder, self._fields, without_ranges=self._without_ranges)
        first = [_value(column, 0) for column in keys]
        self._open = _OpenFile(
            file, self._spec.value_stats(), self._spec.key_stats(), self._spec.settings.index_writer(), first
        )
        return self._open

    def _stored(self, rows: pa.Table, keys: Sequence[pa.ChunkedArray]) -> pa.Table:
        """The rows in the columns of the file."""
        by_name = {f"{KEY_PREFIX}{name}": column for name, column in zip(self._keys, keys, strict=True)}
        names = [column.name for column in self._fields]
        # A table may have a column whose own name begins like that of a key's copy.
        copies = 0 if self._spec.thin else len(self._keys)
        columns = [*(by_name[name] for name in names[:copies]), *(rows.column(name) for name in names[copies:])]
        return pa.Table.from_arrays(columns, names=names)


def _key_bytes(key: Sequence[Field], rows: pa.RecordBatch) -> pa.Array:
    return encode_key_bytes([rows.column(field.name) for field in key], [field.type for field in key])


def _value(column: pa.ChunkedArray, row: int) -> pa.Array:
    """One value as an array of its own, which does not keep its neighbours in memory."""
    return column.slice(row, 1).combine_chunks().take(pa.array([0]))


def _numbers(rows: pa.Table, name: str) -> NDArray[np.int64]:
    numbers: NDArray[np.int64] = rows.column(name).to_numpy()
    return numbers
