"""What a table gives to a data frame library and takes back is the same, for every type; but pandas has no NaN beside NULL."""

from __future__ import annotations

import math
import uuid
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lakelet
from lakelet.errors import InvalidError
from lakelet.model.arrow.arrow_types import arrow_schema
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field, renumber
from lakelet.sink.rows.cast import RowCaster
from lakelet.sink.rows.row_input import batches_of
from lakelet.table.read.data_frames import pandas_frame, polars_frame
from tests.property.every_value import NESTED, VALUES, bits, wrapped
from tests.tiers.examples import examples


def _again(frame: Any, fields: list[Field]) -> pa.Table:
    """What a write of the frame writes."""
    caster = RowCaster(fields)
    return pa.Table.from_batches(
        [caster.cast(batch) for batch in batches_of(frame, arrow_schema(fields), fields)], arrow_schema(fields)
    )


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


@pytest.mark.parametrize("type_text", VALUES)
@pytest.mark.parametrize("library", ["pandas", "polars"])
@settings(max_examples=examples(15), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_frame_that_is_written_back_changes_nothing(library: str, type_text: str, data: st.DataObject) -> None:
    nesting = data.draw(st.sampled_from((*NESTED, "ARRAY<ROW<a INT, b {}>>")), label="nesting")
    drawn = data.draw(st.lists(st.none() | VALUES[type_text], min_size=1, max_size=6), label="values")
    if library == "pandas":
        drawn = [None if _is_nan(value) else value for value in drawn]
    fields = [Field(0, "c", renumber(parse_type(nesting.format(type_text)), 1)[0]), Field(9, "id", parse_type("INT"))]
    values = [None if data.draw(st.booleans()) else wrapped(value, nesting) for value in drawn]
    if nesting == "ARRAY<ROW<a INT, b {}>>":
        values = [None if value is None else [value, None] for value in values]
        values = [value and [{"a": None, "b": drawn[0]}, None] for value in values]
    table = pa.table([values, range(len(values))], schema=arrow_schema(fields))
    frame = pandas_frame(table) if library == "pandas" else polars_frame(table)
    found = _again(frame, fields)
    assert bits(found.column("c")) == bits(table.column("c"))
    assert found.column("id").equals(table.column("id"))


def test_integers_with_null_are_not_rounded(tmp_path: Path) -> None:
    great = 2**53 + 1
    lake = lakelet.connect(str(tmp_path))
    lake.create_database("db")
    columns = [
        ("b", "BIGINT"),
        ("l", "ARRAY<BIGINT>"),
        ("r", "ROW<x BIGINT>"),
        ("m", "MAP<STRING, BIGINT>"),
        ("y", "BOOLEAN"),
    ]
    table = lake.create_table("db.t", columns)
    row = {"b": great, "l": [great, None], "r": {"x": great}, "m": [("k", great), ("n", None)], "y": True}
    table.write([row, dict.fromkeys(row), {**row, "r": {"x": None}}])
    for frame in (table.scan().to_pandas(), lake.sql("SELECT * FROM db.t").to_pandas()):
        assert [str(kind) for kind in frame.dtypes] == ["Int64", "object", "object", "object", "boolean"]
        assert frame.to_dict("records")[0] == row
        assert frame["b"].isna().tolist() == [False, True, False]
    table.write(table.scan().to_pandas(), mode="overwrite")
    assert table.scan().to_arrow().to_pylist() == [row, dict.fromkeys(row), {**row, "r": {"x": None}}]


def test_columns_without_null_are_numpys() -> None:
    frame = pandas_frame(pa.table({"i": [1, 2], "y": [True, False], "l": [[1.5], [2.5]]}))
    assert [str(kind) for kind in frame.dtypes] == ["int64", "bool", "object"]
    assert type(frame["l"][0]).__name__ == "ndarray"


@pytest.mark.parametrize("rows", [0, 2])
def test_frames_keep_columns_of_one_name_and_number_of_rows(rows: int) -> None:
    numbers = pa.array([None] * rows, pa.int64())
    frame = pandas_frame(pa.Table.from_arrays([numbers, pa.array(["a"] * rows), numbers], ["x", "y", "x"]))
    assert (frame.columns.tolist(), len(frame)) == (["x", "y", "x"], rows)
    assert len(pandas_frame(pa.table({"x": numbers}))) == rows


_LONG = Field(0, "c", parse_type("BIGINT"))


@pytest.mark.parametrize("values", [[1.0, None, float("nan"), -(2.0**53)], [None, None], [float("nan")]])
def test_whole_numbers_that_pandas_made_floating_point_are_integers(values: list[Any]) -> None:
    found = _again(pd.DataFrame({"c": pd.Series(values, dtype="float64")}), [_LONG])
    assert found["c"].to_pylist() == [None if value is None or _is_nan(value) else int(value) for value in values]


@pytest.mark.parametrize("bad", [1.5, 2.0**53 + 2, float("inf"), -(2.0**63)])
def test_other_floating_point_numbers_are_refused_for_integers(bad: float) -> None:
    with pytest.raises(InvalidError, match="column 'c' is BIGINT; row 1 with"):
        _again(pd.DataFrame({"c": [1.0, bad]}), [_LONG])


def test_uuids_of_frames_are_text() -> None:
    one = uuid.UUID(int=7)
    found = _again(pd.DataFrame({"c": [one, None]}), [Field(0, "c", parse_type("STRING"))])
    assert found["c"].to_pylist() == [str(one), None]
