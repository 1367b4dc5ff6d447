"""Equality deletes: a row is deleted where it equals a row of the delete file in the fields that this names.

    deleted   id  v        values of id: [5, 7]     (5 a) (7 b) (7 a)  ->  codes 0 0, 1 1, 1 0  ->  pairs 0, 3, 2: known [0, 2, 3]
              5   a        values of v:  [a, b]
              7   b
              7   a        a row (7, a) is 1 0, pair 2, known: deleted;  (5, b) is pair 1, not known;  (6, a) has no code at all

NULL equals NULL, NaN equals NaN, and the two zeros differ, as Iceberg's Java library compares; a column that the data file does
not have counts as what reading it gives. Values are looked up column by column, never row by row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Codes = NDArray[np.int64]
_ABSENT = -1


@dataclass(frozen=True, slots=True)
class _Column:
    """The values of a column, and the pairs of (rows of the columns before, value) that there are, ascending."""

    values: pa.Array
    pairs: Codes


@dataclass(frozen=True, slots=True)
class DeletedValues:
    """Rows of delete files, indexed for look-ups."""

    columns: tuple[_Column, ...]
    count: int

    def keeps(self, rows: pa.RecordBatch) -> pa.Array:
        """Which rows equal none of them; the columns are the same, by their places."""
        found = np.zeros(rows.num_rows, np.int64)
        for column, given in zip(self.columns, rows.columns, strict=True):
            codes = _codes(_plain(given), column.values)
            present = (codes != _ABSENT) & (found != _ABSENT)
            found = _numbered(found * len(column.values) + codes, column.pairs)
            found[~present] = _ABSENT
        return pa.array(found == _ABSENT)


def deleted_values(tables: Sequence[pa.Table]) -> DeletedValues:
    """The deleted values of delete files that compare the same fields."""
    table = pa.concat_tables(tables)
    found = np.zeros(table.num_rows, np.int64)
    columns = []
    for column in table.columns:
        given = _plain(_one(column))
        values = given.unique()
        combined = found * len(values) + _codes(given, values)
        pairs = np.unique(combined)
        found = _numbered(combined, pairs)
        columns.append(_Column(values, pairs))
    return DeletedValues(tuple(columns), table.num_rows)


def _one(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)


def _plain(array: pa.Array) -> pa.Array:
    return array.storage if isinstance(array, pa.ExtensionArray) else array


def _codes(array: pa.Array, values: pa.Array) -> Codes:
    """The place of each value among some, or that it is not there; NULL is a value too."""
    places = pc.index_in(array, value_set=values, skip_nulls=False)
    found: Codes = places.fill_null(_ABSENT).to_numpy(zero_copy_only=False).astype(np.int64)
    return found


def _numbered(combined: Codes, pairs: Codes) -> Codes:
    """The place of each pair among those that there are, or that it is not there."""
    if not len(pairs):
        return np.full(len(combined), _ABSENT, np.int64)
    places = np.minimum(np.searchsorted(pairs, combined), len(pairs) - 1)
    found: Codes = np.where(pairs[places] == combined, places, _ABSENT)
    return found
