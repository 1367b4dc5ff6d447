"""Encode and decode a few rows of the commonest types one at a time.

Place in the data path: inside `binary_row_columns`, which lays columns out with numpy. For the two rows of a small file's
statistics, or the one key of a small write, that takes fifteen times as long as the rows themselves. The bytes are the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lakelet.format.rows.binary_row import decode_row, encode_row
from lakelet.model.arrow.arrow_types import to_arrow
from lakelet.model.types import INTEGERS, STRINGS, Atomic, DataType, Kind

MOST_ROWS = 4
# The types all of whose values Python has too, bit by bit: a float may be another NaN there, a date beyond the year 9999 is none.
_EXACT = frozenset({Kind.BOOLEAN, *INTEGERS, *STRINGS})


def encode_few_rows(columns: Sequence[pa.Array | pa.ChunkedArray], types: Sequence[DataType]) -> list[bytes] | None:
    """The rows with their arity in front; None where there are many, or columns that are not as simple as that."""
    if len(columns) != len(types) or not columns or any(len(column) > MOST_ROWS for column in columns):
        return None
    for column, data_type in zip(columns, types, strict=True):
        is_exact = isinstance(data_type, Atomic) and data_type.kind in _EXACT
        if not is_exact or column.type != to_arrow(data_type) or len(column) != len(columns[0]):
            return None
    try:
        values = [column.to_pylist() for column in columns]
    except UnicodeDecodeError:
        return None
    return [encode_row(row, types) for row in zip(*values, strict=True)]


def decode_few_rows(rows: Sequence[bytes], types: Sequence[DataType], *, where: str = "") -> list[pa.Array] | None:
    """The columns of rows with their arity in front, as `decode_rows` gives them; None where there are many or other types."""
    if len(rows) > MOST_ROWS or any(not isinstance(one, Atomic) or one.kind not in _EXACT for one in types):
        return None
    decoded = [decode_row(row, types, where=where) for row in rows]
    return [pa.array([row[place] for row in decoded], to_arrow(one)) for place, one in enumerate(types)]
