"""Every kind of input that `write` accepts, as batches."""

import datetime as dt
import uuid
from fractions import Fraction

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from lakelet.errors import InvalidError
from lakelet.model.arrow.arrow_types import arrow_schema
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field
from lakelet.sink.rows.cast import RowCaster
from lakelet.sink.rows.row_input import batches_of

SCHEMA = pa.schema([pa.field("a", pa.int32(), nullable=False), ("b", pa.string()), ("l", pa.list_(pa.int16()))])
TABLE = pa.table({"a": [1, 2, 3], "b": ["x", None, "z"]})


def rows(data: object) -> list[dict[str, object]]:
    return [row for batch in batches_of(data, SCHEMA) for row in batch.to_pylist()]


@pytest.mark.parametrize(
    "data",
    [
        TABLE,
        TABLE.to_batches()[0],
        TABLE.to_reader(max_chunksize=1),
        TABLE.to_batches(max_chunksize=2),
        iter(TABLE.to_batches(max_chunksize=1)),
        (batch for batch in TABLE.to_batches(max_chunksize=1)),
        [TABLE.slice(0, 1), TABLE.slice(1).to_batches()],
        pl.DataFrame({"a": [1, 2, 3], "b": ["x", None, "z"]}),
        pl.LazyFrame({"a": [1, 2, 3], "b": ["x", None, "z"]}),
        TABLE.to_pylist(),
        [[{"a": 1, "b": "x"}], [{"a": 2, "b": None}, {"a": 3, "b": "z"}]],
        pd.DataFrame({"a": [1, 2, 3], "b": ["x", None, "z"]}, index=[7, 8, 9]),
    ],
    ids=lambda data: type(data).__module__ + "." + type(data).__name__,
)
def test_all_forms_give_the_same_rows(data: object) -> None:
    assert rows(data) == TABLE.to_pylist()


def test_dicts_are_read_as_the_tables_types() -> None:
    (batch,) = batches_of([{"a": 1}, {"l": [1], "a": 2}], SCHEMA)
    assert batch.schema.field("a").type == pa.int32()
    assert batch.schema.names == ["a", "l"]
    assert batch.to_pylist() == [{"a": 1, "l": None}, {"a": 2, "l": [1]}]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ([{"a": 1, "z": 2}], "the column 'z', which is not in the table; its columns are a, b, l"),
        ([{"a": "x"}], "do not fit the table's types"),
        ([{"a": 2**40}], "do not fit the table's types"),
        ([{"l": 3}], "do not fit the table's types"),
        ([{"a": 1}, {"a": 1.5}], "row 1 has 1.5 for column 'a', which int32 cannot hold"),
        ([{"l": [1, 2.5]}], r"row 0 has \[1, 2.5\] for column 'l'"),
        (7, "found int"),
        ("text", "found str"),
        (b"bytes", "found bytes"),
        ({"a": [1]}, "found dict"),
        ([1, 2], "found int"),
        (None, "found NoneType"),
        ([{"a": 1}, None], "row 1 is a NoneType"),
        ([{"a": 1}, TABLE], "row 1 is a Table"),
        ([{"a": 1, 5: 2}], "the column 5, which is not in the table"),
        (pd.DataFrame({"a": [1, "x"]}), "found DataFrame .*column a"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "found DataFrame .*Duplicate column names"),
        (pd.Series([1]), "found Series"),
        (pl.Series([1]), "found Series"),
        (pa.array([1]), "found Int64Array"),
        (pa.chunked_array([[1]]), "found ChunkedArray"),
    ],
)
def test_what_is_refused(data: object, reason: str) -> None:
    with pytest.raises(InvalidError, match=reason):
        rows(data)


@pytest.mark.parametrize("data", [[], iter([]), TABLE.slice(0, 0), pd.DataFrame({"a": []})])
def test_nothing_is_nothing(data: object) -> None:
    assert rows(data) == []


FIELDS = (
    Field(0, "id", parse_type("INT NOT NULL"), default="7"),
    Field(1, "at", parse_type("TIMESTAMP(3)"), default="2024-01-01 00:00:00.5"),
    Field(2, "n", parse_type("INT")),
)


def test_a_dict_without_a_column_that_others_have_takes_its_default() -> None:
    rows: list[dict[str, object]] = [{"id": 1, "at": None}, {"n": 2}, {}, {"id": 4, "at": dt.datetime(2025, 1, 1)}]
    (batch,) = batches_of(rows, arrow_schema(FIELDS), FIELDS)
    half = dt.datetime(2024, 1, 1, 0, 0, 0, 500_000)
    assert batch.to_pydict() == {
        "id": [1, 7, 7, 4],
        "at": [None, half, half, dt.datetime(2025, 1, 1)],
        "n": [None, 2, None, None],
    }


def test_empty_dicts_are_rows() -> None:
    (batch,) = batches_of([{}, {}], SCHEMA)
    assert (batch.num_rows, batch.num_columns) == (2, 0)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("FLOAT", 0.1),
        ("ARRAY<FLOAT>", [0.1]),
        ("ROW<a INT>", {"a": 1, "z": 2}),
        ("ARRAY<ROW<a INT>>", [{"z": 2}]),
        ("TIMESTAMP(6)", dt.datetime(2024, 1, 1, tzinfo=dt.UTC)),
        ("TIMESTAMP(6) WITH LOCAL TIME ZONE", dt.datetime(2024, 1, 1)),
    ],
)
def test_a_dict_loses_nothing(kind: str, value: object) -> None:
    schema = arrow_schema([Field(0, "c", parse_type(kind))])
    with pytest.raises(InvalidError, match=r"row 1 has .* for column 'c', which .* cannot hold without loss"):
        list(batches_of([{"c": None}, {"c": value}], schema))


@pytest.mark.parametrize(
    ("kind", "value", "advice"),
    [
        ("TIMESTAMP(6)", dt.datetime(2024, 1, 1, tzinfo=dt.UTC), "the column has no time zone"),
        ("TIMESTAMP(6) WITH LOCAL TIME ZONE", dt.datetime(2024, 1, 1), "a moment needs a time zone"),
    ],
)
def test_times_of_the_other_kind_are_refused_with_advice(kind: str, value: dt.datetime, advice: str) -> None:
    fields = [Field(0, "c", parse_type(kind))]
    with pytest.raises(InvalidError, match=advice):
        list(batches_of([{"c": value}], arrow_schema(fields)))
    of_value = pa.record_batch({"c": pa.array([value], pa.timestamp("us", "UTC" if value.tzinfo else None))})
    with pytest.raises(InvalidError, match=advice):
        RowCaster(fields).cast(of_value)


def test_uuids_of_dicts_are_text_or_bytes() -> None:
    one = uuid.UUID(int=9)
    schema = pa.schema(
        [("s", pa.string()), ("b", pa.binary()), ("l", pa.list_(pa.string())), ("m", pa.map_(pa.string(), pa.binary()))]
    )
    given = [{"s": one, "b": one, "l": [one, None], "m": {one: one}}, {"s": "x", "b": None, "l": None, "m": None}]
    (batch,) = batches_of(given, schema)
    assert batch.to_pylist()[0] == {"s": str(one), "b": one.bytes, "l": [str(one), None], "m": [(str(one), one.bytes)]}
    with pytest.raises(InvalidError, match="row 0 has UUID"):
        list(batches_of([{"a": one}], SCHEMA))


@pytest.mark.parametrize("value", [dt.timedelta(1), 2**70, object(), uuid.UUID(int=9), Fraction(3, 2)])
def test_values_of_no_type_name_their_row(value: object) -> None:
    with pytest.raises(InvalidError, match=r"row 1 has .* for column 'a'"):
        list(batches_of([{"a": 1}, {"a": value}], SCHEMA))


def test_members_that_no_value_of_a_frame_has_are_missing() -> None:
    inner = pa.struct([("x", pa.int32()), ("y", pa.int32())])
    schema = pa.schema([("r", pa.struct([("a", pa.int32()), ("b", pa.string()), ("s", inner)]))])
    frame = pd.DataFrame({"r": [{"a": 1, "s": {"x": 1}}, None, {"s": None}]})
    (batch,) = batches_of(frame, schema)
    assert batch.to_pylist() == [{"r": {"a": 1, "s": {"x": 1}}}, {"r": None}, {"r": {"a": None, "s": None}}]
    with pytest.raises(InvalidError, match=r"row 0 has .* for column 'r'"):
        list(batches_of(pd.DataFrame({"r": [{"a": 1, "z": 2}]}), schema))
