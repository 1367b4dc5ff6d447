import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lakelet.sql.files.cell_values import json_values, rows_of, text_array

NANO = pa.array([1_767_225_600_000_000_001, None], pa.timestamp("ns"))


@pytest.mark.parametrize(
    ("array", "texts", "values"),
    [
        (pa.array([1, None]), ["1", None], [1, None]),
        (pa.array([True, None]), ["true", None], [True, None]),
        (pa.array(["x", None]), ["x", None], ["x", None]),
        (pa.array([None, None]), [None, None], [None, None]),
        (pa.array([1.5, float("nan"), float("inf")]), ["1.5", "nan", "inf"], [1.5, "nan", "inf"]),
        (pa.array([Decimal("1.50"), None]), ["1.50", None], ["1.50", None]),
        (pa.array([b"\x00\xff", None]), ["00ff", None], ["00ff", None]),
        (pa.array([dt.date(2026, 1, 2), None]), ["2026-01-02", None], ["2026-01-02", None]),
        (pa.array([dt.datetime(2026, 1, 2, 3), None]), ["2026-01-02 03:00:00", None], ["2026-01-02 03:00:00", None]),
        (
            pa.array([dt.datetime(2026, 1, 2, 3, 0, 0, 500_000, tzinfo=dt.UTC)]),
            ["2026-01-02 03:00:00.500000Z"],
            ["2026-01-02 03:00:00.500000Z"],
        ),
        (NANO, ["2026-01-01 00:00:00.000000001", None], ["2026-01-01 00:00:00.000000001", None]),
        (pa.array([dt.time(1, 2), None]), ["01:02:00", None], ["01:02:00", None]),
        (pa.array([dt.timedelta(days=1), None]), ["1 day, 0:00:00", None], ["1 day, 0:00:00", None]),
        (pa.array([[1, None], None, []]), ["[1, null]", None, "[]"], [[1, None], None, []]),
        (pa.array([{"a": 1, "b": None}, None]), ['{"a": 1, "b": null}', None], [{"a": 1, "b": None}, None]),
        (
            pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int64())),
            ['{"k": 1}', None, "{}"],
            [{"k": 1}, None, {}],
        ),
        (pa.array([[(1, b"\x01")]], pa.map_(pa.int64(), pa.binary())), ['{"1": "01"}'], [{"1": "01"}]),
        (pa.array([[{"n": Decimal("2.0")}]]), ['[{"n": "2.0"}]'], [[{"n": "2.0"}]]),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_every_type(array: pa.Array, texts: list[str | None], values: list[Any]) -> None:
    assert text_array(array).to_pylist() == texts
    assert json_values(array) == values
    assert json.loads(json.dumps(values, allow_nan=False)) == values


@pytest.mark.parametrize(
    "array",
    [
        pa.array([[1], [2, 3], None, [4]]),
        pa.array([{"a": [1]}, {"a": [2, 3]}, None, {"a": []}]),
        pa.array([[("k", 1)], [("l", 2), ("m", 3)], None, [("n", 4)]], pa.map_(pa.string(), pa.int64())),
    ],
    ids=["list", "struct", "map"],
)
def test_slices_are_what_they_show(array: pa.Array) -> None:
    assert json_values(array.slice(1, 3)) == json_values(array)[1:]
    assert json_values(array.slice(1, 1)) == json_values(array)[1:2]


def test_rows() -> None:
    batch = pa.record_batch({"a": [1, 2], "b": ["x", None]})
    assert rows_of(batch, json_values) == [(1, "x"), (2, None)]
