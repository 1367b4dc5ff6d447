"""Ranges and sort order of the rows of one clustering, from a sample of them.

Ranks of a curve are quantiles of the sample, not values: columns of different ranges, types and skew count alike.
Rows are compared by `lsm/key_words`, whose words hold within one call: bounds are encoded together with the rows that they bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakelet.compact.cluster.chosen_order import HILBERT, ORDER, RowOrdering
from lakelet.compact.cluster.space_curve import POSITION_BITS, Ranks, hilbert_positions, zorder_positions
from lakelet.lsm.key_words import Words, encode_versions
from lakelet.model.schema import TableSchema
from lakelet.model.types import DataType

SAMPLE_ROWS = 1 << 16
_QUANTILE_BITS = 12

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ClusterOrder:
    """Orders rows of tables that hold the columns of an ordering. `sample` holds some rows of them, in these columns alone;
    `quantiles` are evenly spaced values of each column of it, for the ranks of a curve."""

    ordering: RowOrdering
    types: tuple[DataType, ...]
    sample: pa.Table
    quantiles: tuple[pa.ChunkedArray, ...]

    @staticmethod
    def of(ordering: RowOrdering, schema: TableSchema, sample: pa.Table) -> ClusterOrder:
        """The order of a table's rows; of a sample that is too large every n-th row is taken."""
        rows = sample.select(list(ordering.columns))
        step = -(-rows.num_rows // SAMPLE_ROWS)
        if step > 1:
            rows = rows.take(pa.array(np.arange(0, rows.num_rows, step)))
        types = tuple(schema.field(name).type for name in ordering.columns)
        columns = rows.columns if ordering.strategy != ORDER else []
        most = (1 << _bits(len(types))) - 1
        quantiles = tuple(_quantiles(column, kind, most) for column, kind in zip(columns, types, strict=False))
        return ClusterOrder(ordering, types, rows.combine_chunks(), quantiles)

    def permutation(self, rows: pa.Table) -> Numbers:
        """The rows in order; equal ones keep theirs."""
        if self.ordering.strategy == ORDER:
            words = encode_versions([self._columns(rows)], self.types, descending=False)[0]
            return np.lexsort(words.T[::-1]).astype(np.int64)
        return np.argsort(self._positions(rows), kind="stable").astype(np.int64)

    def bounds(self, count: int) -> pa.Table | Ranks:
        """At most `count` - 1 bounds that divide the sample into ranges of about equal size."""
        places = np.unique(np.arange(1, count) * self.sample.num_rows // count)
        order = self.permutation(self.sample)[places]
        if self.ordering.strategy == ORDER:
            return self.sample.take(pa.array(order))
        return np.unique(self._positions(self.sample)[order])

    def ranges(self, rows: pa.Table, bounds: pa.Table | Ranks) -> Numbers:
        """The number of the range of each row: how many bounds are not greater."""
        if isinstance(bounds, pa.Table):
            parts = [self._columns(bounds), self._columns(rows)]
            encoded, words = encode_versions(parts, self.types, descending=False)
            return _not_greater(encoded, words)
        return np.searchsorted(bounds, self._positions(rows), side="right").astype(np.int64)

    def _columns(self, rows: pa.Table) -> list[pa.ChunkedArray]:
        return [rows.column(name) for name in self.ordering.columns]

    def _positions(self, rows: pa.Table) -> Ranks:
        bits = _bits(len(self.types))
        ranks = [
            _ranks(quantiles, column, data_type, bits)
            for quantiles, column, data_type in zip(self.quantiles, self._columns(rows), self.types, strict=True)
        ]
        return (hilbert_positions if self.ordering.strategy == HILBERT else zorder_positions)(ranks, bits)


def _bits(columns: int) -> int:
    return min(_QUANTILE_BITS, POSITION_BITS // columns)


def _quantiles(sample: pa.ChunkedArray, data_type: DataType, most: int) -> pa.ChunkedArray:
    """Evenly spaced values of a sorted sample, `most` of them at most."""
    words = encode_versions([[sample]], [data_type], descending=False)[0]
    count = min(len(sample), most)
    places = np.lexsort(words.T[::-1])[np.arange(count) * len(sample) // max(count, 1)]
    return sample.take(pa.array(places))


def _ranks(quantiles: pa.ChunkedArray, column: pa.ChunkedArray, data_type: DataType, bits: int) -> Ranks:
    """The quantile of every value in a number of bits."""
    encoded, words = encode_versions([[quantiles], [column]], [data_type], descending=False)
    # Of equal quantiles the first counts, so that values that are frequent lie as far apart as their shares.
    found = _not_greater(encoded, words, strictly=True).astype(np.uint64)
    return found * np.uint64(1 << bits) // np.uint64(len(quantiles) + 1)


def _not_greater(bounds: Words, words: Words, *, strictly: bool = False) -> Numbers:
    """For each row how many of the sorted bounds are not greater, or `strictly` less: a binary search over all rows at once."""
    if words.shape[1] == 1:
        found = np.searchsorted(bounds[:, 0], words[:, 0], side="left" if strictly else "right")
        return found.astype(np.int64)
    low = np.zeros(len(words), np.int64)
    high = np.full(len(words), len(bounds), np.int64)
    while (open_rows := low < high).any():
        middle = (low + high) // 2
        compared = bounds[np.minimum(middle, len(bounds) - 1)]
        less, equal = _compared(compared, words)
        right = (less if strictly else less | equal) & open_rows
        low = np.where(right, middle + 1, low)
        high = np.where(open_rows & ~right, middle, high)
    return low


def _compared(one: Words, other: Words) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Whether rows of words are less than others, and whether they are equal."""
    less = np.zeros(len(one), np.bool_)
    equal = np.ones(len(one), np.bool_)
    for place in range(one.shape[1]):
        less |= equal & (one[:, place] < other[:, place])
        equal &= one[:, place] == other[:, place]
    return less, equal


def in_order(rows: pa.Table, order: Sequence[int] | Numbers, most: int) -> list[pa.RecordBatch]:
    """The rows of a permutation in batches of at most a number of rows."""
    found: list[pa.RecordBatch] = []
    for start in range(0, len(order), most):
        found.extend(rows.take(pa.array(order[start : start + most])).combine_chunks().to_batches())
    return found
