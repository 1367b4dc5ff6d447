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
