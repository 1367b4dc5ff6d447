"""The multiset difference of rows."""

import datetime as dt
import math
from decimal import Decimal

import pyarrow as pa
import pytest

from lakelet.read.changes.row_difference import row_difference


def difference(left: pa.Array, right: pa.Array) -> tuple[list[object], list[object]]:
    gone, come = row_difference(*(pa.table({"c": side}).to_reader() for side in (left, right)))
    return tuple([value for batch in side for value in batch.column("c").to_pylist()] for side in (gone, come))  # type: ignore[return-value]


def test_equal_rows_are_counted() -> None:
    gone, come = difference(pa.array([1, 1, 1, 2, None]), pa.array([1, 2, 2, None, 3]))
    assert sorted(gone) == [1, 1]  # type: ignore[type-var]
    assert sorted(come) == [2, 3]  # type: ignore[type-var]


@pytest.mark.parametrize(
    "values",
    [
        pa.array([True, None]),
        pa.array([1, None], pa.int8()),
        pa.array([1.5, math.nan, None]),
        pa.array([Decimal("1.10"), None], pa.decimal128(38, 10)),
        pa.array(["", "é", None]),
        pa.array([b"", b"\xff\x00", None]),
        pa.array([dt.date(1969, 1, 1), None]),
        pa.array([dt.time(23, 59, 59, 999_000), None], pa.time32("ms")),
        pa.array([dt.datetime(2024, 1, 1, 1, 2, 3, 4000), None], pa.timestamp("ms")),
        pa.array([dt.datetime(2024, 1, 1, 1, 2, 3, 4), None], pa.timestamp("us")),
        pa.array([1_700_000_000_000_000_001, None], pa.int64()).cast(pa.timestamp("ns")),
        pa.array([dt.datetime(2024, 1, 1), None], pa.timestamp("ms", "UTC")),
        pa.array([[1], [], [None], None], pa.list_(pa.field("element", pa.int32()))),
        pa.array([{"a": 1, "b": None}, None]),
        pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int32())),
        pa.array([[{"a": [1.5]}], None]),
    ],
    ids=lambda values: str(values.type),
)
def test_every_type_comes_back_as_it_was(values: pa.Array) -> None:
    assert difference(values, values) == ([], [])
    schema = pa.schema([("c", values.type)])
    empty = schema.empty_table().to_reader()
    gone, come = row_difference(pa.table({"c": values}, schema=schema).to_reader(), empty)
    found = pa.Table.from_batches(gone, schema).column("c").combine_chunks()
    assert list(come) == []
    assert found.type == values.type
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, values.to_pylist()))


LIST, STRUCT = pa.list_(pa.float32()), pa.struct([("A b", pa.float64()), ("n", pa.int8())])


@pytest.mark.parametrize(
    ("arrow", "one", "other"),
    [
        (pa.float64(), 0.0, -0.0),
        (pa.float32(), -0.0, 0.0),
        (LIST, [1.0, 0.0], [1.0, -0.0]),
        (STRUCT, {"A b": -0.0, "n": 1}, {"A b": 0.0, "n": 1}),
        (pa.list_(STRUCT), [{"A b": 0.0}, None], [{"A b": -0.0}, None]),
        (pa.map_(pa.string(), LIST), [("a", [0.0])], [("a", [-0.0])]),
        (pa.list_(LIST), [[0.0], None, []], [[-0.0], None, []]),
    ],
    ids=str,
)
def test_zeros_of_another_sign_are_other_values(arrow: pa.DataType, one: object, other: object) -> None:
    left, right = (pa.array([value, None], arrow) for value in (one, other))
    gone, come = difference(left, right)
    assert [repr(value) for value in gone] == [repr(value) for value in left.to_pylist()[:1]]
    assert [repr(value) for value in come] == [repr(value) for value in right.to_pylist()[:1]]
    assert difference(left, left) == ([], [])


def test_columns_whose_names_differ_in_case_alone() -> None:
    left, right = (pa.table({"x": [0.0], "X": [number]}) for number in (0.0, -0.0))
    gone, come = (pa.Table.from_batches(rows) for rows in row_difference(left.to_reader(), right.to_reader()))
    assert (repr(gone.to_pylist()), repr(come.to_pylist())) == ("[{'x': 0.0, 'X': 0.0}]", "[{'x': 0.0, 'X': -0.0}]")
