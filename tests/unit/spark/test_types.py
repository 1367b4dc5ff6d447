"""Spark's types for table columns, and arrays converted in both directions."""

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import types as T

from lakelet.errors import InvalidError
from lakelet.model.arrow.arrow_types import arrow_schema, to_arrow
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field
from lakelet.spark.types import (
    arrow_of_spark,
    from_spark_arrow,
    spark_schema,
    spark_type,
    table_arrow_type,
    to_spark_arrow,
)

TIMES = "ROW<`t` TIME(3), `l` ARRAY<TIME(3)>, `m` MAP<TIME(3), ARRAY<TIMESTAMP(9)>>, `n` INT NOT NULL>"


def fields(*types: str) -> list[Field]:
    return [Field(index, f"c{index}", parse_type(text)) for index, text in enumerate(types)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("BOOLEAN", "boolean"),
        ("TINYINT", "tinyint"),
        ("SMALLINT NOT NULL", "smallint"),
        ("INT", "int"),
        ("BIGINT", "bigint"),
        ("FLOAT", "float"),
        ("DOUBLE", "double"),
        ("DECIMAL(38, 10)", "decimal(38,10)"),
        ("CHAR(3)", "string"),
        ("VARCHAR(9)", "string"),
        ("STRING", "string"),
        ("BINARY(4)", "binary"),
        ("BYTES", "binary"),
        ("DATE", "date"),
        ("TIME(0)", "int"),
        ("TIMESTAMP(0)", "timestamp_ntz"),
        ("TIMESTAMP(9)", "timestamp_ntz"),
        ("TIMESTAMP(3) WITH LOCAL TIME ZONE", "timestamp"),
        ("ARRAY<INT NOT NULL>", "array<int>"),
        ("MAP<STRING, TIME(3)>", "map<string,int>"),
        ("MULTISET<STRING>", "map<string,int>"),
        (TIMES, "struct<t:int,l:array<int>,m:map<int,array<timestamp_ntz>>,n:int>"),
    ],
)
def test_a_column_has_one_spark_type(text: str, expected: str) -> None:
    assert spark_type(parse_type(text)).simpleString() == expected


def test_everything_is_nullable_in_spark_whatever_the_table_says() -> None:
    schema = spark_schema(fields("ARRAY<INT NOT NULL> NOT NULL", "MAP<INT, INT NOT NULL>", "ROW<`a` INT NOT NULL>"))
    assert all(field.nullable for field in schema)
    array, mapped, row = (field.dataType for field in schema)
    assert isinstance(array, T.ArrayType)
    assert array.containsNull
    assert isinstance(mapped, T.MapType)
    assert mapped.valueContainsNull
    assert isinstance(row, T.StructType)
    assert row["a"].nullable


def test_spark_reads_the_arrow_schema_as_its_own_types() -> None:
    from pyspark.sql.pandas.types import from_arrow_schema

    columns = fields(
        "TIME(3)", "TIMESTAMP(9)", "TIMESTAMP(9) WITH LOCAL TIME ZONE", TIMES, "MULTISET<CHAR(2)>", "BYTES"
    )
    assert from_arrow_schema(arrow_of_spark(columns), prefer_timestamp_ntz=True) == spark_schema(columns)


@given(st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)), max_size=20), st.integers(0, 5))
def test_nanoseconds_are_cut_off_towards_the_past(nanos: list[int | None], skipped: int) -> None:
    columns = fields("TIMESTAMP(9)", "TIMESTAMP(7) WITH LOCAL TIME ZONE")
    arrays = [pa.array(nanos, pa.int64()).view(to_arrow(column.type)) for column in columns]
    batch = pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(columns)).slice(skipped)
    given = to_spark_arrow(batch, columns)
    expected = [None if number is None else number // 1000 for number in nanos[skipped:]]
    assert given.schema.equals(arrow_of_spark(columns))
    assert [column.view(pa.int64()).to_pylist() for column in given.columns] == [expected, expected]


def nested() -> tuple[list[Field], list[dict[str, Any]]]:
    moment = np.datetime64("1969-12-31T23:59:59.999999999", "ns")
    row = {"t": dt.time(1), "l": [dt.time(0, 0, 1), None], "m": [(dt.time(2), [moment, None])], "n": 1}
    return fields(TIMES), [{"c0": row}, {"c0": None}, {"c0": {"t": None, "l": None, "m": None, "n": 2}}, {"c0": row}]


@pytest.mark.parametrize("first", [0, 1, 3])
def test_times_inside_of_nested_types_are_converted_in_both_directions(first: int) -> None:
    columns, rows = nested()
    batch = pa.RecordBatch.from_pylist(rows, schema=arrow_schema(columns)).slice(first)
    given = to_spark_arrow(batch, columns)
    given.validate(full=True)
    micro = dt.datetime(1969, 12, 31, 23, 59, 59, 999999)
    row = {"t": 3_600_000, "l": [1000, None], "m": [(7_200_000, [micro, None])], "n": 1}
    expected = [{"c0": row}, {"c0": None}, {"c0": {"t": None, "l": None, "m": None, "n": 2}}, {"c0": row}]
    assert given.to_pylist() == expected[first:]
    back = from_spark_arrow(given, columns)
    back.validate(full=True)
    assert back.column(0).flatten()[0].equals(batch.column(0).flatten()[0])
    assert back.column(0).flatten()[1].to_pylist() == batch.column(0).flatten()[1].to_pylist()
    assert back.schema.field(0).type == table_arrow_type(given.schema.field(0).type, columns[0].type)


def test_layouts_that_spark_refuses_become_those_it_takes() -> None:
    columns = fields("STRING", "BYTES", "STRING", "ARRAY<STRING>", "DECIMAL(5, 2)")
    table = pa.table(
        {
            "c0": pa.array(["a", None], pa.large_string()),
            "c1": pa.array([b"x", None], pa.large_binary()),
            "c2": pa.array(["v", None]).dictionary_encode(),
            "c3": pa.array([["p", None], None], pa.large_list(pa.large_string())),
            "c4": pa.array([Decimal("1.50"), None], pa.decimal128(5, 2)),
        }
    )
    given = to_spark_arrow(table, columns)
    assert given.schema.equals(arrow_of_spark(columns))
    assert given.to_pylist() == table.to_pylist()


def test_columns_that_have_sparks_type_already_are_not_copied() -> None:
    columns = fields("BIGINT NOT NULL", "STRING", "TIMESTAMP(6)")
    batch = pa.RecordBatch.from_pylist([{"c0": 1, "c1": "a", "c2": None}], schema=arrow_schema(columns))
    given = to_spark_arrow(batch, columns)
    for before, after in zip(batch.columns, given.columns, strict=True):
        assert [buffer and buffer.address for buffer in before.buffers()] == [
            buffer and buffer.address for buffer in after.buffers()
        ]
    assert from_spark_arrow(given, columns) is given


def test_columns_are_taken_by_name_and_no_column_keeps_the_number_of_rows() -> None:
    columns = fields("INT", "TIME(3)")
    table = pa.table({"c1": pa.array([1000], pa.time32("ms")), "other": [1], "c0": pa.array([5], pa.int32())})
    assert to_spark_arrow(table, columns).to_pylist() == [{"c0": 5, "c1": 1000}]
    assert to_spark_arrow(table, []).num_rows == 1


def test_milliseconds_beyond_sparks_range_are_an_error_with_the_column() -> None:
    columns = fields("TIMESTAMP(3)")
    batch = pa.RecordBatch.from_arrays([pa.array([2**62], pa.int64()).view(pa.timestamp("ms"))], names=["c0"])
    with pytest.raises(InvalidError, match=r"'c0'.*microseconds"):
        to_spark_arrow(batch, columns)


@pytest.mark.parametrize("wrong", [-1, 86_400_000])
def test_a_number_that_is_no_time_of_the_day_is_refused_with_its_place(wrong: int) -> None:
    columns = fields("ROW<`l` ARRAY<TIME(3)>>")
    inner = pa.struct([pa.field("l", pa.list_(pa.int64()))])
    batch = pa.RecordBatch.from_arrays([pa.array([{"l": [0, None, wrong]}], inner)], names=["c0"])
    with pytest.raises(InvalidError, match=rf"'c0\.l\.element' is TIME\(3\).*found {wrong}"):
        from_spark_arrow(batch, columns)


def test_numbers_below_a_null_row_do_not_count() -> None:
    columns = fields("ROW<`t` TIME(3)>")
    array = pa.StructArray.from_arrays([pa.array([-7, 1], pa.int32())], names=["t"], mask=pa.array([True, False]))
    batch = pa.RecordBatch.from_arrays([array], names=["c0"])
    assert from_spark_arrow(batch, columns).to_pylist() == [{"c0": None}, {"c0": {"t": dt.time(0, 0, 0, 1000)}}]


def test_only_numbers_in_place_of_times_are_converted() -> None:
    columns = fields("TIME(3)", "INT")
    batch = pa.RecordBatch.from_arrays(
        [pa.array([5], pa.time64("us")), pa.array([5], pa.int32()), pa.array([7], pa.int32())],
        names=["c0", "c1", "other"],
    )
    assert from_spark_arrow(batch, columns) is batch
