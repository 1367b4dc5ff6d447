"""Rows that are packed by one struct have the bytes that they have value by value."""

import random
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest

from lakelet.format.rows.binary_row import encode_row
from lakelet.format.rows.row_packer import NotPlainError, RowPacker
from lakelet.model.types import MAX_LENGTH, Array, Atomic, DataType, Field, Kind, Map, Row, with_nullable

_TEXT = Atomic(Kind.VARCHAR, MAX_LENGTH)
_VALUES: dict[DataType, list[Any]] = {
    Atomic(Kind.TINYINT): [0, -128, 127],
    Atomic(Kind.SMALLINT): [0, -(2**15), 2**15 - 1],
    Atomic(Kind.INT): [0, -(2**31), 2**31 - 1],
    Atomic(Kind.BIGINT): [0, -1, -(2**63), 2**63 - 1],
    Atomic(Kind.DOUBLE): [0.0, -0.0, 1.5, -1e300, float("inf")],
    Atomic(Kind.BOOLEAN): [True, False],
    Atomic(Kind.DATE): [date(1, 1, 1), date(1970, 1, 1), date(9999, 12, 31)],
    Atomic(Kind.TIMESTAMP_LTZ, 6): [
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, 1, tzinfo=UTC),
    ],
    _TEXT: ["", "a", "seven b", "eight by", "é" * 4, "名😀\0", "x" * 1000],
    Atomic(Kind.VARBINARY, MAX_LENGTH): [b"", b"\0", b"\xff" * 7, b"\xff" * 8, bytes(33)],
}


def fields(*types: DataType) -> list[Field]:
    return [Field(place, f"c{place}", one) for place, one in enumerate(types)]


@pytest.mark.parametrize("count", [1, 3, 55, 56, 57, 120, 121, 300])
def test_the_bytes_are_those_of_single_values(count: int) -> None:
    chance = random.Random(count)
    for _ in range(20):
        types = [chance.choice(list(_VALUES)) for _ in range(count)]
        values = [None if chance.random() < 0.3 else chance.choice(_VALUES[one]) for one in types]
        packer = RowPacker.of(fields(*types))
        assert packer is not None
        row = {f"c{place}": value for place, value in enumerate(values)}
        assert packer.pack(row) == encode_row(values, types)


def test_a_row_in_a_row_is_its_bytes() -> None:
    inner = Row(tuple(fields(_TEXT, Atomic(Kind.BIGINT))))
    outer = RowPacker.of(fields(inner, Array(Atomic(Kind.BIGINT))))
    assert outer is not None
    nested = encode_row(["a longer text", None], [_TEXT, Atomic(Kind.BIGINT)])
    elements = [encode_row([one], [Atomic(Kind.BIGINT)]) for one in (1, None)]
    ends = b"".join(number.to_bytes(4, "little") for number in (2, len(elements[0]), sum(map(len, elements))))
    stored = Atomic(Kind.VARBINARY, MAX_LENGTH)
    assert outer.pack({"c0": {"c0": "a longer text", "c1": None}, "c1": [1, None]}) == encode_row(
        [nested, ends + b"".join(elements)], [stored, stored]
    )
    assert outer.pack({"c0": None, "c1": None}) == encode_row([None, None], [stored, stored])


@pytest.mark.parametrize(
    ("data_type", "value"),
    [
        (Atomic(Kind.TINYINT), 128),
        (Atomic(Kind.BIGINT), 2**63),
        (Atomic(Kind.BIGINT), True),
        (Atomic(Kind.BIGINT), 1.0),
        (Atomic(Kind.BOOLEAN), 1),
        (Atomic(Kind.DOUBLE), 1),
        (Atomic(Kind.DOUBLE), float("nan")),
        (_TEXT, b"a"),
        (_TEXT, "\ud800"),
        (Atomic(Kind.VARBINARY, MAX_LENGTH), "a"),
        (Atomic(Kind.DATE), datetime(2026, 1, 1, tzinfo=UTC)),
        (Atomic(Kind.TIMESTAMP_LTZ, 6), datetime(2026, 1, 1)),
        (Atomic(Kind.TIMESTAMP_LTZ, 6), datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=1)))),
        (Atomic(Kind.TIMESTAMP_LTZ, 6), date(2026, 1, 1)),
        (Array(_TEXT), ("a",)),
        (Array(with_nullable(_TEXT, False)), [None]),
        (Row(tuple(fields(_TEXT))), {}),
        (Row(tuple(fields(_TEXT))), {"other": "a"}),
        (Row(tuple(fields(_TEXT))), {"c0": "a", "other": None}),
        (with_nullable(_TEXT, False), None),
    ],
)
def test_what_needs_a_cast_is_not_packed(data_type: DataType, value: Any) -> None:
    packer = RowPacker.of(fields(data_type))
    assert packer is not None
    with pytest.raises(NotPlainError):
        packer.pack({"c0": value})


def test_other_types_are_left_to_columns() -> None:
    for other in (
        Atomic(Kind.DECIMAL, 10, 2),
        Atomic(Kind.VARCHAR, 10),
        Atomic(Kind.TIMESTAMP_LTZ, 3),
        Atomic(Kind.FLOAT),
        Map(_TEXT, _TEXT),
        Array(Atomic(Kind.FLOAT)),
    ):
        assert RowPacker.of(fields(_TEXT, other)) is None
