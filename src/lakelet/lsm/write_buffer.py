"""The write buffer of a primary-key table: rows are numbered on arrival, and sorted and merged when it is flushed.

    add       rows are numbered per bucket in the order of their arrival and held as they came, with lists of which are whose
    drain     what is held, all buckets at once, as columns of one piece each
    sorted    the rows of one bucket in key order, of each key the one that the merge engine selects or folds, with the number
              that it, or the newest of the folded rows, got when it arrived

Rows are copied once, when they are taken out in key order: until then a bucket is a list of row numbers. The rows of a
key are ordered by their `sequence.field` columns (NULL is least), and by arrival where these are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, KeysView, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakelet.format.stats.nan_columns import nan_columns
from lakelet.lsm.engine.fold import folded_batches
from lakelet.lsm.engine.key_groups import KeyGroups, key_groups
from lakelet.lsm.engine.merge_engine import SelectEngine
from lakelet.lsm.key_value_columns import SEQUENCE_NUMBER, VALUE_KIND
from lakelet.lsm.key_words import Words, encode_keys, encode_versions
from lakelet.lsm.merge_spec import MergeSpec
from lakelet.lsm.sort_fold import sort_and_fold, sort_groups
from lakelet.model.bucket_mode import Place
from lakelet.model.row_arrays import Kinds

Rows = NDArray[np.int64]

# What a row takes beside its values, and what a column of a batch takes however few rows it has.
_NUMBER_BYTES = 40
_COLUMN_BYTES = 256
_ORDER_COLUMNS = pa.schema(
    [pa.field(SEQUENCE_NUMBER, pa.int64(), nullable=False), pa.field(VALUE_KIND, pa.int8(), nullable=False)]
)


@dataclass(slots=True)
class _Bucket:
    """The rows of one bucket, by their numbers in the buffer; `first` is the sequence number of the first of them."""

    first: int
    rows: list[Rows]
    count: int = 0


class WriteBuffer:
    """Buffers rows of all buckets. `first_sequence` gives the first sequence number of a bucket that was not seen before."""

    def __init__(self, spec: MergeSpec, first_sequence: Callable[[Place], int]) -> None:
        self._spec = spec
        self._first_sequence = first_sequence
        self._next: dict[Place, int] = {}
        self._first: dict[Place, int] = {}
        self._batches: list[pa.RecordBatch] = []
        self._kinds: list[Kinds | None] = []
        self._buckets: dict[Place, _Bucket] = {}
        self._rows = 0
        self.bytes = 0

    def add(self, batch: pa.RecordBatch, kinds: Kinds | None, places: Sequence[tuple[Place, Rows | None]]) -> None:
        """Takes a batch and, for every place, the numbers of the rows that belong there, ascending; None for all."""
        if not batch.num_rows:
            return
        for place, rows in places:
            own = np.arange(batch.num_rows, dtype=np.int64) if rows is None else rows
            if place not in self._next:
                self._next[place] = self._first[place] = self._first_sequence(place)
            bucket = self._buckets.get(place)
            if bucket is None:
                bucket = self._buckets[place] = _Bucket(self._next[place], [])
            bucket.rows.append(own + self._rows)
            bucket.count += len(own)
            self._next[place] += len(own)
        self._batches.append(batch)
        self._kinds.append(kinds)
        self._rows += batch.num_rows
        self.bytes += batch.nbytes + batch.num_rows * _NUMBER_BYTES + batch.num_columns * _COLUMN_BYTES

    def taken(self, place: Place) -> int:
        """The number of rows of a bucket that have arrived so far, drained ones included."""
        return self._next[place] - self._first[place]

    def drain(self) -> BufferedRows:
        """Everything that is held; the buffer is empty afterwards and continues its numbering."""
        batches, kinds, buckets = self._batches, self._kinds, self._buckets
        self._batches, self._kinds, self._buckets = [], [], {}
        self._rows, self.bytes = 0, 0
        all_kinds = _all_kinds(kinds, batches)
        return BufferedRows(self._spec, _in_one_piece(batches), all_kinds, buckets)

    def clear(self) -> None:
        """Forgets what is held."""
        self._batches, self._kinds, self._buckets = [], [], {}
        self._rows, self.bytes = 0, 0


class BufferedRows:
    """The drained rows of a buffer, read bucket by bucket; several threads may do so."""

    def __init__(
        self, spec: MergeSpec, rows: pa.RecordBatch | None, kinds: Kinds | None, buckets: dict[Place, _Bucket]
    ) -> None:
        self._spec = spec
        self._rows = rows
        self._kinds = kinds
        self._buckets = buckets
        self.count = 0 if rows is None else rows.num_rows
        self.row_bytes = 0.0 if rows is None else rows.nbytes / rows.num_rows
        """The size of a row, on average."""

    @property
    def places(self) -> KeysView[Place]:
        """The buckets that have rows."""
        return self._buckets.keys()

    @property
    def nan_columns(self) -> frozenset[str]:
        """The columns that hold a NaN, in whatever bucket."""
        return frozenset() if self._rows is None else nan_columns(self._rows)

    def sorted(self, place: Place, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The merged rows of a bucket in key order, with their sequence numbers and kinds in front."""
        bucket = self._buckets[place]
        own = _numbers(bucket)
        engine = self._spec.engine
        if not isinstance(engine, SelectEngine):
            if len(own):
                yield from folded_batches(self._groups(own, bucket.first, batch_rows), engine, self._spec)
            return
        winners = self._winners(own, keeps_first=engine.keeps_first)
        yield from self._batches(own[winners], bucket.first + winners, batch_rows)

    def repeated(self, place: Place, most: int) -> list[dict[str, object]]:
        """Keys that have more than one row in this buffer, one for each additional row, up to a limit."""
        if place not in self._buckets:
            return []
        assert self._rows is not None
        own = _numbers(self._buckets[place])
        lost = np.setdiff1d(np.arange(len(own)), self._winners(own, keeps_first=False))[:most]
        keys = self._rows.select([name for name, _ in self._spec.key])
        found: list[dict[str, object]] = keys.take(pa.array(own[lost])).to_pylist()
        return found

    def in_order(self, place: Place, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """All rows of a bucket in key order, unmerged, those of a key oldest first, with their sequence numbers and kinds."""
        bucket = self._buckets[place]
        own = _numbers(bucket)
        order, _ = sort_groups(*self._words(own))
        yield from self._batches(own[order], bucket.first + order, batch_rows)

    def as_they_came(self, place: Place, batch_rows: int, sequence: int) -> Iterator[pa.RecordBatch]:
        """All rows of a bucket in the order of their arrival, with one sequence number for all."""
        own = _numbers(self._buckets[place])
        yield from self._batches(own, np.full(len(own), sequence, np.int64), batch_rows)

    def _winners(self, own: Rows, *, keeps_first: bool) -> Rows:
        return sort_and_fold(*self._words(own), first=keeps_first)

    def _groups(self, own: Rows, first_sequence: int, batch_rows: int) -> Iterator[KeyGroups]:
        """The rows of a bucket, grouped by key, with their sequence numbers and kinds in front."""
        assert self._rows is not None
        order, begins = sort_groups(*self._words(own))
        rows = pa.Table.from_batches(self._batches(own, first_sequence + np.arange(len(own)), len(own)))
        return key_groups(rows, order, np.flatnonzero(begins), batch_rows)

    def _words(self, own: Rows) -> tuple[Words, Words | None]:
        """The words by which the rows of a bucket are sorted: keys and versions."""
        assert self._rows is not None
        taken = pa.array(own)

        def columns(names: Sequence[str]) -> list[pa.Array]:
            assert self._rows is not None
            is_all = len(own) == self._rows.num_rows
            return [self._rows.column(name) if is_all else self._rows.column(name).take(taken) for name in names]

        spec = self._spec
        (words,) = encode_keys([columns([name for name, _ in spec.key])], [data_type for _, data_type in spec.key])
        versions = None
        if spec.versions:
            parts = [columns([name for name, _ in spec.versions])]
            types = [data_type for _, data_type in spec.versions]
            (versions,) = encode_versions(parts, types, descending=spec.descending)
        return words, versions

    def _batches(self, rows: Rows, sequences: NDArray[np.int64], batch_rows: int) -> Iterator[pa.RecordBatch]:
        assert self._rows is not None
        schema = pa.schema([*_ORDER_COLUMNS, *self._rows.schema])
        for start in range(0, len(rows), batch_rows):
            part = rows[start : start + batch_rows]
            taken = _take(self._rows, part)
            kinds = np.zeros(len(part), np.int8) if self._kinds is None else self._kinds[part]
            order = [pa.array(sequences[start : start + batch_rows]), pa.array(kinds)]
            yield pa.RecordBatch.from_arrays([*order, *taken.columns], schema=schema)


def _take(batch: pa.RecordBatch, rows: Rows) -> pa.RecordBatch:
    """The rows in this order; contiguous ones are not copied."""
    if rows[-1] - rows[0] == len(rows) - 1 and (np.diff(rows) == 1).all():
        return batch.slice(int(rows[0]), len(rows))
    return batch.take(pa.array(rows))


def _numbers(bucket: _Bucket) -> Rows:
    return bucket.rows[0] if len(bucket.rows) == 1 else np.concatenate(bucket.rows)


def _in_one_piece(batches: list[pa.RecordBatch]) -> pa.RecordBatch | None:
    """The batches as one; the list is emptied, and each column freed as soon as it is copied."""
    if len(batches) <= 1:
        return batches.pop() if batches else None
    schema = batches[0].schema
    columns = [[batch.column(index) for batch in batches] for index in range(len(schema))]
    batches.clear()
    whole = []
    while columns:
        whole.append(pa.concat_arrays(columns.pop(0)))
    return pa.RecordBatch.from_arrays(whole, schema=schema)


def _all_kinds(kinds: Sequence[Kinds | None], batches: Sequence[pa.RecordBatch]) -> Kinds | None:
    """The kinds of all rows, None if all are inserts."""
    if all(part is None for part in kinds):
        return None
    return np.concatenate(
        [
            np.zeros(batch.num_rows, np.int8) if part is None else part
            for part, batch in zip(kinds, batches, strict=True)
        ]
    )
