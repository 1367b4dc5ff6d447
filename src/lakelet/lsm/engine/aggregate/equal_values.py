"""Codes of values: equal values of a column have the same code, whatever their type.

Numbers compare as Java's objects do: NaN equals itself, 0.0 and -0.0 differ. Rows are equal if all of their members are.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakelet.model.types import FLOATS, Array, Atomic, DataType, Kind, Map, Multiset, Row

Codes = NDArray[np.int64]
NULL = -1


def has_codes(data_type: DataType) -> bool:
    """Whether values of a type have codes: no bytes are in it, which Java compares by identity, and no arrays or
    maps, whose equality depends there on how they lie in memory."""
    match data_type:
        case Atomic(kind):
            return kind not in (Kind.BINARY, Kind.VARBINARY)
        case Row(fields):
            return all(has_codes(field.type) for field in fields)
        case Array() | Map() | Multiset():
            return False


def equal_codes(values: pa.Array, data_type: DataType) -> Codes:
    """A code for each value, less than the number of values; NULL where there is none."""
    match data_type:
        case Row(fields):
            members = [equal_codes(values.field(place), field.type) for place, field in enumerate(fields)]
            return _nulled(_together(members, len(values)), values)
        case Atomic(kind) if kind in FLOATS:
            return _dictionary(_bits(values))
        case _:
            return _dictionary(values)


def member_codes(rows: pa.Array, row_type: Row, names: tuple[str, ...]) -> Codes:
    """Codes of rows by some of their members; NULL for those that are NULL."""
    places = [place for place, field in enumerate(row_type.fields) if field.name in names]
    members = [equal_codes(rows.field(place), row_type.fields[place].type) for place in places]
    return _nulled(_together(members, len(rows)), rows)


def _together(members: list[Codes], count: int) -> Codes:
    codes: Codes = np.zeros(count, np.int64)
    for member in members:
        # Both are at most as many as there are rows, so that the product fits 64 bits.
        pairs = codes * np.int64(count + 1) + (member + 1)
        codes = _dictionary(pa.array(pairs))
    return codes


def _bits(values: pa.Array) -> pa.Array:
    """Floating-point numbers as the integers that Java compares, in which there is one NaN."""
    own = np.dtype(values.type.to_pandas_dtype())
    numbers = values.fill_null(0).to_numpy(zero_copy_only=False).astype(own)
    numbers[np.isnan(numbers)] = np.nan
    bits = numbers.view(np.int64 if own.itemsize == np.dtype(np.int64).itemsize else np.int32)
    return pa.array(bits, mask=~values.is_valid().to_numpy(zero_copy_only=False))


def _dictionary(values: pa.Array) -> Codes:
    indices = values.dictionary_encode().indices
    codes: Codes = indices.fill_null(NULL).to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


def _nulled(codes: Codes, values: pa.Array) -> Codes:
    return np.where(values.is_valid().to_numpy(zero_copy_only=False), codes, NULL) if values.null_count else codes
