"""What is looked at before a Parquet file is adopted: its folders, how its columns are stored, what its footer knows."""

import io
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

from lakelet import InvalidError
from lakelet.catalog.migration.adopted_file import Adoption, data_file
from lakelet.catalog.migration.adoption_check import fields_of, problems
from lakelet.catalog.migration.parquet_footers import Footer, footer_of
from lakelet.catalog.migration.source_files import source_files
from lakelet.format.rows.binary_row import decode_row, encode_row
from lakelet.model.schema import TableSchema, new_schema
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field
from lakelet.storage.home import TableHome
from lakelet.storage.memory import MemoryStore
from lakelet.storage.paths import TablePaths


def footer(table: pa.Table, **options: Any) -> Footer:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return footer_of(pq.ParquetFile(sink))


def schema_of(*columns: tuple[str, str], partitioned_by: tuple[str, ...] = (), **options: str) -> TableSchema:
    fields = [Field(-1, name, parse_type(text)) for name, text in columns]
    return new_schema(
        fields,
        partition_keys=partitioned_by,
        primary_keys=(),
        options={key.replace("_", "."): text for key, text in options.items()},
        comment=None,
        time_ms=0,
    )


def found(text: str, array: pa.Array, **options: Any) -> list[str]:
    schema = schema_of(("a", text), ("b", "INT"))
    table = pa.table({"a": array, "b": pa.array([1] * len(array), pa.int32())})
    return problems(footer(table, **options), schema.fields, {}, ())


READABLE: list[tuple[str, pa.Array, dict[str, Any]]] = [
    ("INT", pa.array([1], pa.int32()), {}),
    ("TINYINT", pa.array([1], pa.int8()), {}),
    ("SMALLINT", pa.array([1], pa.int16()), {}),
    ("BIGINT", pa.array([1]), {}),
    ("STRING", pa.array(["x"], pa.large_string()), {}),
    ("STRING", pa.array(["x"]).dictionary_encode(), {}),
    ("BYTES", pa.array([b"x"]), {}),
    ("DATE", pa.array([date(2026, 1, 1)]), {}),
    ("TIME(3)", pa.array([time(1)], pa.time32("ms")), {}),
    ("DECIMAL(9, 2)", pa.array([Decimal("1.00")], pa.decimal128(9, 2)), {}),
    ("DECIMAL(9, 2)", pa.array([Decimal("1.00")], pa.decimal128(9, 2)), {"store_decimal_as_integer": True}),
    ("DECIMAL(30, 2)", pa.array([Decimal("1.00")], pa.decimal128(30, 2)), {}),
    ("TIMESTAMP(6)", pa.array([datetime(2026, 1, 1)], pa.timestamp("us")), {}),
    ("TIMESTAMP(3)", pa.array([datetime(2026, 1, 1)], pa.timestamp("ms")), {}),
    ("TIMESTAMP(6) WITH LOCAL TIME ZONE", pa.array([datetime(2026, 1, 1)], pa.timestamp("us", tz="UTC")), {}),
    ("TIMESTAMP(9)", pa.array([1], pa.timestamp("ns")), {"use_deprecated_int96_timestamps": True}),
    ("ARRAY<INT>", pa.array([[1]], pa.list_(pa.int32())), {}),
    ("MAP<STRING, INT>", pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int32())), {}),
    ("ROW<x INT>", pa.array([{"x": 1}], pa.struct([("x", pa.int32())])), {}),
    ("INT NOT NULL", pa.array([1], pa.int32()), {}),
]


@pytest.mark.parametrize(("text", "array", "options"), READABLE, ids=[f"{row[0]} {row[2]}" for row in READABLE])
def test_columns_that_every_reader_understands(text: str, array: pa.Array, options: dict[str, Any]) -> None:
    assert found(text, array, **options) == []


REFUSED: list[tuple[str, pa.Array, dict[str, Any], str]] = [
    ("BIGINT", pa.array([1], pa.int32()), {}, "stored as INT64; found INT32"),
    ("INT", pa.array([1]), {}, "stored as INT32; found INT64"),
    ("BIGINT", pa.array([1], pa.uint32()), {}, "found INT32 (unsigned 32 bits)"),
    ("INT", pa.array([1], pa.uint16()), {}, "unsigned 16 bits"),
    ("STRING", pa.array([b"x"]), {}, "stored as BYTE_ARRAY (String); found BYTE_ARRAY"),
    ("DECIMAL(9, 2)", pa.array([Decimal("1.000")], pa.decimal128(9, 3)), {}, "decimal(9, 3)"),
    ("TIMESTAMP(3)", pa.array([datetime(2026, 1, 1)], pa.timestamp("us")), {}, "timestamp in microseconds"),
    ("TIMESTAMP(6)", pa.array([datetime(2026, 1, 1)], pa.timestamp("us", tz="UTC")), {}, "microseconds, UTC"),
    ("TIMESTAMP(9)", pa.array([1], pa.timestamp("ns")), {}, "stored as INT96; found INT64"),
    ("TIMESTAMP(6)", pa.array([1], pa.timestamp("ns")), {"use_deprecated_int96_timestamps": True}, "found INT96"),
    ("TIME(3)", pa.array([time(1)], pa.time64("us")), {}, "found INT64 (time in microseconds)"),
    ("ARRAY<INT>", pa.array([[1]], pa.list_(pa.int64())), {}, "found INT64"),
    ("ARRAY<INT>", pa.array([[1]], pa.list_(pa.int32())), {"use_compliant_nested_type": False}, "a.list.item"),
    ("ROW<x INT>", pa.array([{"y": 1}], pa.struct([("y", pa.int32())])), {}, "is stored as a.y"),
    ("INT NOT NULL", pa.array([1, None], pa.int32()), {}, "may hold NULLs"),
    ("INT NOT NULL", pa.array([1], pa.int32()), {"write_statistics": False}, "may hold NULLs"),
]


@pytest.mark.parametrize(("text", "array", "options", "words"), REFUSED, ids=[f"{row[0]} {row[3]}" for row in REFUSED])
def test_columns_that_some_reader_would_misread(
    text: str, array: pa.Array, options: dict[str, Any], words: str
) -> None:
    (problem,) = found(text, array, **options)
    assert words in problem
    assert "'a" in problem


@pytest.mark.parametrize(
    ("text", "column", "refused"),
    [
        ("DATE", pa.array([date(1582, 10, 14)]), True),
        ("DATE", pa.array([date(1582, 10, 15)]), False),
        ("DATE", pa.array([-800_000, 0], pa.int32()).cast(pa.date32()), True),
        ("DATE", pa.nulls(1, pa.date32()), False),
        ("TIMESTAMP(6)", pa.array([datetime(1899, 12, 31)], pa.timestamp("us")), True),
        ("TIMESTAMP(6)", pa.array([datetime(1900, 1, 1)], pa.timestamp("us")), False),
        ("TIMESTAMP_LTZ(6)", pa.array([-(1 << 62)], pa.timestamp("us", "UTC")), True),
        ("ARRAY<DATE>", pa.array([[date(2026, 1, 1)]]), True),
        ("BIGINT", pa.array([1]), False),
    ],
    ids=str,
)
@pytest.mark.parametrize("told", [{"org.apache.spark.legacyDateTime": ""}, {"org.apache.spark.version": "2.4.8"}])
def test_days_of_the_julian_calendar(text: str, column: pa.Array, told: dict[str, str], *, refused: bool) -> None:
    schema = schema_of(("a", text))
    plain = pa.table({"a": column})
    table = plain.replace_schema_metadata(
        {**told, "org.apache.spark.version": told.get("org.apache.spark.version", "4.3.0")}
    )
    texts = problems(footer(table), schema.fields, {}, ())
    assert [text for text in texts if "Julian" in text] == texts
    assert bool(texts) == refused
    now = plain.replace_schema_metadata({"org.apache.spark.version": "4.3.0"})
    assert problems(footer(now), schema.fields, {}, ()) == []


def test_a_new_table_takes_the_types_of_the_file() -> None:
    table = pa.table({"a": pa.array([1], pa.int32()), "b": pa.array(["x"]), "c": pa.array([1], pa.timestamp("ns"))})
    written = footer(table, use_deprecated_int96_timestamps=True)
    assert [str(field.type) for field in fields_of(written, "x")] == ["INT", "STRING", "TIMESTAMP(9)"]
    assert problems(written, fields_of(written, "x"), {}, ()) == []


def test_statistics_come_from_the_footer_as_far_as_it_has_them() -> None:
    schema = schema_of(
        ("id", "BIGINT"), ("text", "STRING"), ("x", "DOUBLE"), ("l", "ARRAY<INT>"), ("none", "INT"), ("p", "DATE"),
        partitioned_by=("p",),
    )  # fmt: skip
    table = pa.table(
        {
            "id": pa.array([5, None, 7, 3]),
            "text": pa.array(["a" * 30, "b", "c" * 30, None]),
            "x": pa.array([1.0, np.nan, None, 2.0]),
            "l": pa.array([[1], None, [], [2]], pa.list_(pa.int32())),
            "none": pa.array([None] * 4, pa.int32()),
        }
    )
    home = TableHome(MemoryStore(), TablePaths("db.db/t"))
    partition = encode_row([date(2026, 1, 1)], schema.partition_types)
    adoption = Adoption("a", 100, "data-x-0.parquet", partition, {"p": date(2026, 1, 1)})
    file = data_file(home, schema, adoption, footer(table, row_group_size=2))
    types = [field.type for field in schema.fields]
    low, high = decode_row(file.value_stats.min_values, types), decode_row(file.value_stats.max_values, types)
    assert low == (3, "a" * 16, None, None, None, date(2026, 1, 1))
    assert high == (7, "c" * 15 + "d", None, None, None, date(2026, 1, 1))
    assert file.value_stats.null_counts == (1, 1, 1, None, 4, 0)
    assert (file.row_count, file.max_sequence, file.write_columns) == (4, 3, ("id", "text", "x", "l", "none"))
    blind = data_file(home, schema, adoption, footer(table, write_statistics=False))
    assert decode_row(blind.value_stats.min_values, types)[:5] == (None,) * 5
    assert blind.value_stats.null_counts == (None, None, None, None, None, 0)


def test_folders() -> None:
    store = MemoryStore()
    for path in (
        "a=1/b=x%2Fy/1.parquet",
        "a=__HIVE_DEFAULT_PARTITION__/b=/2.parquet",
        "_SUCCESS",
        "a=1/_tmp/3.parquet",
    ):
        store.put(path, b"123")
    assert [(file.path, file.size, file.partition) for file in source_files(store)] == [
        ("a=1/b=x%2Fy/1.parquet", 3, (("a", "1"), ("b", "x/y"))),
        ("a=__HIVE_DEFAULT_PARTITION__/b=/2.parquet", 3, (("a", None), ("b", ""))),
    ]
    store.put("b=1/a=2/4.parquet", b"1")
    with pytest.raises(InvalidError, match="differ in their partition columns"):
        source_files(store)
    store.put("plain/5.parquet", b"1")
    with pytest.raises(InvalidError, match="'plain' names no partition"):
        source_files(store)
