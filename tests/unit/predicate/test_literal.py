"""Infinite dates and timestamps: the same moment in every unit."""

import itertools

import pyarrow as pa
import pytest

from lakelet.predicate.literal import comparison, membership
from lakelet.predicate.tree import Comparison, InList

_TYPES = [
    *(pa.timestamp(unit, zone) for unit in ("ms", "us", "ns") for zone in (None, "UTC")),
    pa.date32(),
]


def _endless(arrow: pa.DataType, sign: int) -> pa.Scalar:
    bits = arrow.bit_width
    return pa.scalar(sign * (2 ** (bits - 1) - 1), pa.int32() if bits == 32 else pa.int64()).cast(arrow)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("column", "literal"), list(itertools.product(_TYPES, _TYPES)), ids=str)
def test_infinity_is_infinity_in_every_unit(column: pa.DataType, literal: pa.DataType, sign: int) -> None:
    expected = _endless(column, sign)
    for operator in ("=", "<>", "<", "<=", ">", ">="):
        found = comparison("c", column, operator, _endless(literal, sign))
        assert isinstance(found, Comparison)
        assert (found.operator, found.literal.type, found.literal.value) == (operator, column, expected.value)
    among = membership("c", column, [_endless(literal, sign)])
    assert isinstance(among, InList)
    assert among.values[0].value == expected.value


@pytest.mark.parametrize("text", ["infinity", "-infinity"])
@pytest.mark.parametrize("column", _TYPES, ids=str)
def test_the_word_means_it(column: pa.DataType, text: str) -> None:
    found = comparison("c", column, "=", pa.scalar(text))
    assert isinstance(found, Comparison)
    assert found.literal.value == _endless(column, -1 if text.startswith("-") else 1).value
