"""The row kinds of incoming rows: from a column of the data, or from a parallel list.

Spellings are those of change streams, in either case: `I` `+I`, `-U`, `U` `+U`, `D` `-D`. They become the numbers that data
files store.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelet.errors import InvalidError
from lakelet.model.arrow.arrow_kinds import is_text
from lakelet.model.row_arrays import Kinds
from lakelet.model.row_kind import RowKind
from lakelet.model.schema import TableSchema
from lakelet.model.types import STRINGS, Atomic
from lakelet.options import ROWKIND_FIELD, TableOptions

SPELLINGS: dict[str, RowKind] = {
    "I": RowKind.INSERT,
    "+I": RowKind.INSERT,
    "-U": RowKind.UPDATE_BEFORE,
    "U": RowKind.UPDATE_AFTER,
    "+U": RowKind.UPDATE_AFTER,
    "D": RowKind.DELETE,
    "-D": RowKind.DELETE,
}
_KNOWN = ", ".join(SPELLINGS)


class RowKindGenerator:
    """Reads the kinds of rows out of the column that `rowkind.field` names."""

    def __init__(self, field: str) -> None:
        self.field = field

    @staticmethod
    def create(schema: TableSchema) -> RowKindGenerator | None:
        """The generator of a table, None for one without the option."""
        check_row_kind_field(schema)
        name = TableOptions(schema.options).get(ROWKIND_FIELD)
        return None if name is None else RowKindGenerator(name)

    def kinds(self, batch: pa.RecordBatch, *, first_row: int = 0) -> Kinds:
        """The row kind of each row of a batch; rows are counted from `first_row` in errors."""
        return _spelled(batch.column(self.field), f"column {self.field!r}", first_row)


def check_row_kind_field(schema: TableSchema) -> None:
    """Raises InvalidError unless `rowkind.field`, where it is set, names a text column."""
    name = TableOptions(schema.options).get(ROWKIND_FIELD)
    if name is None:
        return
    if name not in schema.names:
        raise InvalidError(f"option 'rowkind.field': {name!r} is not a column; there are {', '.join(schema.names)}")
    data_type = schema.field(name).type
    if not isinstance(data_type, Atomic) or data_type.kind not in STRINGS:
        raise InvalidError(f"option 'rowkind.field': column {name!r} is {data_type}, expected text")


def kinds_of(kinds: Any, rows: int | None = None, *, first_row: int = 0) -> Kinds:
    """The kinds of rows, given as spellings, RowKinds or their numbers in a list, an Arrow or a numpy array; one for each of
    `rows`, where their number is known."""
    array = _as_array(kinds)
    if rows is not None and len(array) != rows:
        raise InvalidError(f"kinds: expected one for each of {rows} rows, found {len(array)}")
    if pa.types.is_null(array.type) and not len(array):
        return np.empty(0, np.int8)
    if is_text(array.type):
        return _spelled(array, "kinds", first_row)
    if not pa.types.is_integer(array.type):
        raise InvalidError(f"kinds: expected {_KNOWN} or the numbers 0 to 3, found {array.type}")
    wrong = pc.fill_null(pc.or_(pc.less(array, 0), pc.greater(array, 3)), True)
    _refuse(array, wrong, "kinds", first_row)
    return np.asarray(array.cast(pa.int8()).to_numpy(zero_copy_only=False), np.int8)


def _as_array(kinds: Any) -> pa.Array:
    if isinstance(kinds, str) or not isinstance(kinds, (Iterable, pa.Array, pa.ChunkedArray)):
        raise InvalidError(f"kinds: expected a list or an array, one entry for each row, found {kinds!r}")
    if isinstance(kinds, pa.ChunkedArray):
        kinds = pa.concat_arrays(kinds.chunks or [pa.array([], kinds.type)])
    if isinstance(kinds, pa.Array):
        return kinds.dictionary_decode() if pa.types.is_dictionary(kinds.type) else kinds
    values = kinds if isinstance(kinds, np.ndarray) else list(kinds)
    try:
        return pa.array(values)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InvalidError(f"kinds: expected {_KNOWN} or the numbers 0 to 3 ({error})") from error


def _spelled(column: pa.Array, what: str, first_row: int) -> Kinds:
    """The numbers of spelled kinds: each distinct spelling is looked up once."""
    encoded = column.cast(pa.string()).dictionary_encode(null_encoding="encode")
    found = [SPELLINGS.get(text.upper()) if text is not None else None for text in encoded.dictionary.to_pylist()]
    numbers = np.array([-1 if kind is None else kind for kind in found], np.int8)
    kinds: Kinds = numbers[encoded.indices.to_numpy()]
    if (numbers < 0).any():
        _refuse(column, pa.array(kinds < 0), what, first_row)
    return kinds


def _refuse(array: pa.Array, wrong: pa.Array, what: str, first_row: int) -> None:
    place = wrong.index(True).as_py()
    if place >= 0:
        value = array[place].as_py()
        shown = "NULL" if value is None else repr(value)
        raise InvalidError(
            f"{what}: row {first_row + place} has the row kind {shown}, expected one of {_KNOWN}"
            + ("" if is_text(array.type) else " or 0 to 3")
        )
