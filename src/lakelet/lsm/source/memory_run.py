"""A sorted run in memory: rows of one bucket as Arrow, read by merges and lookups like a file.

The form of a memtable for readers. The rows are those at the time the run was made; later writes make another run.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakelet.errors import InvalidError
from lakelet.format.rows.binary_row_columns import encode_rows
from lakelet.lsm.key_bytes import encode_key_bytes
from lakelet.lsm.key_value_columns import SEQUENCE_NUMBER, VALUE_KIND
from lakelet.lsm.key_words import encode_keys
from lakelet.lsm.sort_fold import sort_groups
from lakelet.lsm.source.row_source import LookupKeys, Places, RowRequest
from lakelet.model.arrow.arrow_types import arrow_schema
from lakelet.model.row_arrays import Kinds, Mask
from lakelet.model.schema import TableSchema
from lakelet.model.types import DataType, Field

_SIGN = np.uint64(1 << 63)


@dataclass(frozen=True, slots=True)
class MemoryRunStats:
    """The metadata of a run; see `SourceStats`."""

    min_key: bytes
    max_key: bytes
    min_sequence: int
    max_sequence: int
    row_count: int
    delete_row_count: int
    level: int = 0
    size: int = 0


@dataclass(frozen=True)
class MemoryRun:
    """Rows in key order, those of a key by their sequence numbers. `MemoryRun.of` sorts them."""

    data: MemoryRunStats
    _rows: pa.RecordBatch
    _key: tuple[tuple[str, DataType], ...]

    @staticmethod
    def of(rows: pa.Table | pa.RecordBatch, schema: TableSchema) -> MemoryRun:
        """A run of rows with `_SEQUENCE_NUMBER`, `_VALUE_KIND` and all columns of the table's schema now, in whatever order.

        Sequence numbers say which rows are newer, also than those of files. InvalidError where there are no rows.
        """
        if not rows.num_rows:
            raise InvalidError("a run in memory needs at least one row, found none")
        key = tuple((field.name, field.type) for field in schema.trimmed_key_fields)
        own = [pa.field(SEQUENCE_NUMBER, pa.int64()), pa.field(VALUE_KIND, pa.int8())]
        target = pa.schema([*own, *(field.with_nullable(True) for field in arrow_schema(schema.fields))])
        table = rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])
        whole = pa.concat_batches(table.select(target.names).cast(target).to_batches())
        types = [data_type for _, data_type in key]
        (words,) = encode_keys([[whole.column(name) for name, _ in key]], types)
        sequences = whole.column(SEQUENCE_NUMBER).to_numpy()
        order, _ = sort_groups(words, (sequences.view(np.uint64) ^ _SIGN).reshape(-1, 1))
        ordered = whole.take(pa.array(order))
        ends = pa.array([0, ordered.num_rows - 1])
        min_key, max_key = encode_rows([ordered.column(name).take(ends) for name, _ in key], types).to_pylist()
        stats = MemoryRunStats(
            min_key,
            max_key,
            int(sequences.min()),
            int(sequences.max()),
            ordered.num_rows,
            int(np.count_nonzero(ordered.column(VALUE_KIND).to_numpy() & 1)),
        )
        return MemoryRun(stats, ordered, key)

    @cached_property
    def _keys(self) -> list[bytes]:
        columns = [self._rows.column(name) for name, _ in self._key]
        keys: list[bytes] = encode_key_bytes(columns, [data_type for _, data_type in self._key]).to_pylist()
        return keys

    def batches(self, request: RowRequest) -> Generator[pa.RecordBatch, None, None]:
        """The rows that pass the filter, in key order."""
        schema = request.schema
        needed = list(dict.fromkeys([*schema.names, *request.below.columns]))
        for start in range(0, self._rows.num_rows, request.batch_rows):
            kept = request.below.apply(self._rows.select(needed).slice(start, request.batch_rows))
            if kept.num_rows:
                yield kept.select(schema.names).cast(schema)

    def search(self, keys: LookupKeys) -> Sequence[MemoryHits]:
        """All rows of the keys."""
        bounds = [(bisect_left(self._keys, key), bisect_right(self._keys, key)) for key in keys.encoded]
        counts = np.array([end - begin for begin, end in bounds], np.int64)
        if not counts.any():
            return ()
        rows = np.concatenate([np.arange(begin, end) for begin, end in bounds])
        return (MemoryHits(self._rows, rows, np.repeat(np.arange(len(bounds)), counts)),)


@dataclass(frozen=True, slots=True)
class MemoryHits:
    """Rows of a run that a lookup found."""

    source: pa.RecordBatch
    numbers: Places
    places: Places

    @property
    def kinds(self) -> Kinds | None:
        """The row kind of each row; None where all are additions."""
        kinds: Kinds = self.source.column(VALUE_KIND).to_numpy()[self.numbers]
        return kinds if (kinds & 1).any() else None

    def keep(self, mask: Mask) -> MemoryHits:
        """Some of the rows."""
        return MemoryHits(self.source, self.numbers[mask], self.places[mask])

    def sequences(self) -> NDArray[np.int64]:
        """The sequence number of each row."""
        numbers: NDArray[np.int64] = self.source.column(SEQUENCE_NUMBER).to_numpy()[self.numbers]
        return numbers

    def rows(self, fields: Sequence[Field]) -> pa.RecordBatch:
        """Columns of the rows."""
        return self.source.select([field.name for field in fields]).take(pa.array(self.numbers))
