"""How Paimon compares keys, in plain Python: the model that words, winners and sorting are checked against."""

import math
import struct
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import reduce

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from lakelet.lsm.key_words import Words
from lakelet.model.arrow.arrow_types import to_arrow
from lakelet.model.types import Atomic, Kind, string

EPOCH = datetime(1970, 1, 1)
TYPES = (
    Atomic(Kind.BOOLEAN),
    Atomic(Kind.TINYINT),
    Atomic(Kind.SMALLINT),
    Atomic(Kind.INT),
    Atomic(Kind.BIGINT),
    Atomic(Kind.FLOAT),
    Atomic(Kind.DOUBLE),
    Atomic(Kind.DECIMAL, 9, 2),
    Atomic(Kind.DECIMAL, 18, 0),
    Atomic(Kind.DECIMAL, 38, 3),
    Atomic(Kind.CHAR, 5),
    string(),
    Atomic(Kind.BINARY, 5),
    Atomic(Kind.VARBINARY, 100),
    Atomic(Kind.DATE),
    Atomic(Kind.TIME, 3),
    Atomic(Kind.TIMESTAMP, 0),
    Atomic(Kind.TIMESTAMP, 3),
    Atomic(Kind.TIMESTAMP, 6),
    Atomic(Kind.TIMESTAMP_LTZ, 6),
)
_BITS = {Kind.TINYINT: 8, Kind.SMALLINT: 16, Kind.INT: 32, Kind.BIGINT: 64}
_EDGES = (0.0, -0.0, math.nan, math.inf, -math.inf, 1.5, -1.5)


def values(data_type: Atomic) -> st.SearchStrategy[object]:
    """Values of a type, in the form that `pa.array` takes; small ones often, so that keys meet."""
    kind = data_type.kind
    if kind is Kind.BOOLEAN:
        return st.booleans()
    if kind in _BITS:
        half = 1 << _BITS[kind] - 1
        return st.integers(-3, 3) | st.integers(-half, half - 1) | st.sampled_from((-half, half - 1))
    if kind in (Kind.FLOAT, Kind.DOUBLE):
        return st.sampled_from(_EDGES) | st.floats(width=32 if kind is Kind.FLOAT else 64)
    if kind is Kind.DECIMAL:
        most = 10**data_type.precision - 1
        unscaled = st.integers(-3, 3) | st.integers(-most, most)
        return unscaled.map(
            lambda number: Decimal((number < 0, Decimal(abs(number)).as_tuple().digits, -data_type.scale))
        )
    if kind in (Kind.CHAR, Kind.VARCHAR):
        return st.text(st.sampled_from("a\0bÄ€😀"), max_size=3) | st.text(max_size=20)
    if kind in (Kind.BINARY, Kind.VARBINARY):
        return st.binary(max_size=3) | st.binary(max_size=20)
    if kind is Kind.DATE:
        return st.dates(date(1, 1, 1), date(9999, 12, 31))
    if kind is Kind.TIME:
        return st.integers(0, 86_399_999)
    unit = {0: 1_000_000, 3: 1000, 6: 1}[data_type.precision]
    near = st.integers(-3, 3).map(lambda steps: EPOCH + timedelta(microseconds=steps * unit))
    anywhere = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1))
    return near | anywhere.map(
        lambda when: EPOCH + (when - EPOCH) // timedelta(microseconds=unit) * timedelta(microseconds=unit)
    )


def column_of(data_type: Atomic, cells: list[object]) -> pa.Array:
    if data_type.kind is Kind.TIME:
        return pa.array(cells, pa.int32()).view(pa.time32("ms"))
    return pa.array(cells, to_arrow(data_type))


def sort_key(value: object) -> object:
    """What compares in Python as Paimon compares the value; equal for values that are one key."""
    if isinstance(value, float):
        if math.isnan(value):
            return (1, 0)
        (bits,) = struct.unpack(">q", struct.pack(">d", value))
        return (0, bits if bits >= 0 else -(bits & (1 << 63) - 1) - 1)
    return value.encode() if isinstance(value, str) else value


def row_key(row: tuple[object, ...]) -> tuple[object, ...]:
    return tuple(sort_key(value) for value in row)


def numbers_of(words: Words) -> list[int]:
    """Each row of words as one number."""
    return [reduce(lambda number, word: number << 64 | word, row, 0) for row in words.tolist()]


def places(keys: list[object]) -> list[int]:
    """For every key its place among the distinct ones."""
    place = {key: number for number, key in enumerate(sorted(set(keys)))}  # type: ignore[type-var]
    return [place[key] for key in keys]


def words_of(numbers: list[int], width: int = 1) -> Words:
    """Words of keys that are numbers: the number in the last word, zeros before it."""
    words = np.zeros((len(numbers), width), np.uint64)
    words[:, -1] = numbers
    return words
