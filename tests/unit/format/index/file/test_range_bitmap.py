"""Range bitmaps hold exactly the values that went in, in the table's order, and damage is told."""

from __future__ import annotations

import contextlib
import decimal
import functools
import math

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelet.errors import CorruptionError
from lakelet.format.index.file.range_bitmap import RangeBitmapIndex, RangeBitmapWriter
from lakelet.model.arrow.arrow_types import to_arrow
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Atomic
from lakelet.predicate.tree import And, Comparison, InList, IsNull, Operator, Or, Predicate
from lakelet.scan.value_spans import value_spans

VALUES = {
    "BOOLEAN": st.booleans(),
    "TINYINT": st.integers(-128, 127),
    "BIGINT": st.integers(-(2**63), 2**63 - 1),
    "DOUBLE": st.floats(),
    "FLOAT": st.floats(width=32) | st.sampled_from([0.0, -0.0, math.nan]),
    "STRING": st.text(max_size=6),
    "DATE": st.dates(),
    "TIMESTAMP(6)": st.datetimes(),
    "DECIMAL(18, 4)": st.decimals(-(10**14) + 1, 10**14 - 1, places=4),
}


def index_of(text: str, parts: list[list[object]], chunk_bytes: int = 20) -> tuple[RangeBitmapIndex, pa.DataType]:
    kind = parse_type(text)
    assert isinstance(kind, Atomic)
    writer = RangeBitmapWriter(kind, chunk_bytes)
    for part in parts:
        writer.update(pa.array(part, to_arrow(kind)))
    return RangeBitmapIndex.of(writer.finish(), kind, where="f"), to_arrow(kind)


def plain(value: object) -> object:
    """The values in the order of the table: NaN above all, both zeros the same, text by its bytes."""
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value)
    return value.encode() if isinstance(value, str) else value


def is_true(condition: Predicate, value: object) -> bool:
    match condition:
        case And(terms):
            return all(is_true(term, value) for term in terms)
        case Or(terms):
            return any(is_true(term, value) for term in terms)
        case IsNull(_, negated):
            return (value is None) != negated
    if value is None:
        return False
    have = plain(value)
    match condition:
        case Comparison(_, operator, literal):
            want = plain(literal.as_py())
            return bool(
                {
                    "=": have == want,
                    "<>": have != want,
                    "<": have < want,  # type: ignore[operator]
                    "<=": have <= want,  # type: ignore[operator]
                    ">": have > want,  # type: ignore[operator]
                    ">=": have >= want,  # type: ignore[operator]
                }[operator]
            )
        case InList(_, values, negated):
            wanted = [None if one is None else plain(one) for one in values.to_pylist()]
            return not (None in wanted or have in wanted) if negated else have in wanted
    raise AssertionError(condition)


def conditions(values: st.SearchStrategy[object], arrow: pa.DataType) -> st.SearchStrategy[Predicate]:
    operators: list[Operator] = ["=", "<>", "<", "<=", ">", ">="]
    leaf = (
        st.builds(
            lambda operator, value: Comparison("c", operator, pa.scalar(value, arrow)),
            st.sampled_from(operators),
            values,
        )
        | st.builds(
            lambda some, negated: InList("c", pa.array(some, arrow), negated),
            st.lists(values | st.none(), max_size=4),
            st.booleans(),
        )
        | st.builds(functools.partial(IsNull, "c"), st.booleans())
    )
    return st.recursive(
        leaf, lambda one: st.builds(And, st.tuples(one, one)) | st.builds(Or, st.tuples(one, one)), max_leaves=4
    )


@pytest.mark.parametrize("text", VALUES)
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_conditions_are_answered_exactly(text: str, data: st.DataObject) -> None:
    value = VALUES[text]
    parts = data.draw(st.lists(st.lists(st.none() | value, max_size=12), min_size=1, max_size=3))
    index, arrow = index_of(text, parts, data.draw(st.sampled_from([0, 8, 20, 16384])))
    there = [one for part in parts for one in part]
    asked = value | st.sampled_from([one for one in there if one is not None]) if any(there) else value
    for _ in range(5):
        condition = data.draw(conditions(asked, arrow))
        expected = any(is_true(condition, one) for one in there)
        found = bool(value_spans(index, "c", condition))
        if index.count:
            assert found == expected, condition
        else:
            assert found or not expected, condition


@pytest.mark.parametrize("text", ["INT", "STRING"])
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_damage_is_told_as_such_or_not_at_all(text: str, data: st.DataObject) -> None:
    values: list[object] = ["a", "bb", None, "c", "dddd"] if text == "STRING" else [1, 2, None, 3, 9]
    index, arrow = index_of(text, [values])
    damaged = bytearray(index.data)
    damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(damaged)[: data.draw(st.integers(0, len(damaged)))]
    with contextlib.suppress(CorruptionError):
        read = RangeBitmapIndex.of(cut, index.type, where="f")
        value_spans(read, "c", Comparison("c", "<", pa.scalar(values[1], arrow)))
        value_spans(read, "c", IsNull("c"))


def test_extremes_are_in_order() -> None:
    index, arrow = index_of("BIGINT", [[2**63 - 1, -(2**63), 0]])
    assert value_spans(index, "c", Comparison("c", ">", pa.scalar(0, arrow))) == [(2, 3)]
    decimals, arrow = index_of("DECIMAL(5, 2)", [[decimal.Decimal("1.50"), None, decimal.Decimal("-1.50")]])
    assert value_spans(decimals, "c", Comparison("c", "<", pa.scalar(decimal.Decimal("0.00"), arrow))) == [(0, 1)]
    assert value_spans(decimals, "c", IsNull("c")) == [(2, 3)]


def test_another_version_is_told() -> None:
    index, _ = index_of("INT", [[1]])
    with pytest.raises(CorruptionError, match="version 1, found 2"):
        RangeBitmapIndex.of(index.data[:4] + b"\2" + index.data[5:], index.type, where="f")
