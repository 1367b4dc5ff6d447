import datetime as dt
import json
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelet.sql.files.cell_values import json_values
from lakelet.sql.files.json_rows import json_objects, json_texts


@given(st.lists(st.none() | st.text()))
def test_any_text(texts: list[str | None]) -> None:
    kept = [None if text is None else text.encode(errors="replace").decode() for text in texts]
    assert [json.loads(text) for text in json_texts(pa.array(kept, pa.string())).to_pylist()] == kept


@given(st.lists(st.none() | st.floats()))
def test_any_number(numbers: list[float | None]) -> None:
    found = [json.loads(text) for text in json_texts(pa.array(numbers, pa.float64())).to_pylist()]
    expected: list[Any] = [number if number is None or math.isfinite(number) else str(number) for number in numbers]
    assert found == expected


@pytest.mark.parametrize(
    "array",
    [
        pa.array([1, None, -5]),
        pa.array([True, False, None]),
        pa.array([Decimal("1.50"), None]),
        pa.array([dt.date(2026, 1, 2), None]),
        pa.array([dt.datetime(2026, 1, 2, 3, tzinfo=dt.UTC), None]),
        pa.array([dt.time(1, 2), None]),
        pa.array([b"\x00", None]),
        pa.array([[1, None], None]),
        pa.array([{"a": 'x"'}, None]),
        pa.array([None, None]),
        pa.array(["a", "b", "a"]).dictionary_encode(),
    ],
    ids=lambda array: str(array.type),
)
def test_the_same_values_as_one_by_one(array: pa.Array) -> None:
    assert [json.loads(text) for text in json_texts(array).to_pylist()] == json_values(array)


def test_objects() -> None:
    batch = pa.record_batch({'a "1"': [1, None], "b": ["x\ny", "\\"]})
    assert json_objects(batch, ",") == '{"a \\"1\\"": 1, "b": "x\\ny"},{"a \\"1\\"": null, "b": "\\\\"}'
    assert json_objects(batch.select([]), ",") == "{},{}"
    assert json_objects(batch.slice(0, 0), ",") == ""
