"""Data files: logical types both ways, and a file that Java Paimon 1.4.2 wrote."""

from __future__ import annotations

import datetime as dt
import io
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelet.errors import CorruptionError, InvalidError
from lakelet.format.avro import avro_schema, encode, read_schema, read_table, write_table
from tests.tiers.examples import examples

JAVA_FILE = Path(__file__).parent / "data" / "paimon-1.4.2-all-types.avro"
ROW = {"x": 5, "y": None, "t": dt.datetime(2024, 1, 1, 10, 11, 12, 345678)}
UTC = dt.UTC

# The columns of the Java file: c<i> is nullable and n<i> is not; its second row has null in every nullable column.
PRIMITIVES: list[tuple[pa.DataType, Any]] = [
    (pa.bool_(), True),
    (pa.int32(), -7),
    (pa.int32(), 300),
    (pa.int32(), 70000),
    (pa.int64(), 2**40),
    (pa.float32(), 1.5),
    (pa.float64(), -2.25),
    (pa.decimal128(10, 2), Decimal("123.45")),
    (pa.decimal128(25, 3), Decimal("-1234567890123456789012.345")),
    (pa.string(), "héllo"),
    (pa.string(), "abcde"),
    (pa.string(), "vc"),
    (pa.binary(), b"\x00\xff\x10"),
    (pa.binary(), b"\x01\x02\x03\x04"),
    (pa.date32(), dt.date(2024, 2, 29)),
    (pa.time32("ms"), dt.time(11, 12, 13, 456000)),
    (pa.timestamp("ms"), dt.datetime(2024, 1, 1, 10, 11, 12)),
    (pa.timestamp("ms"), dt.datetime(2024, 1, 1, 10, 11, 12, 345000)),
    (pa.timestamp("us"), dt.datetime(1969, 12, 31, 23, 59, 59, 123456)),
    (pa.timestamp("ms", "UTC"), dt.datetime(2024, 1, 1, 10, 11, 12, 345000, UTC)),
    (pa.timestamp("us", "UTC"), dt.datetime(2024, 1, 1, 10, 11, 12, 345678, UTC)),
]
NESTED: dict[str, Any] = {
    "a1": [1, None, 3],
    "a2": ["a", "b"],
    "m1": [("k", 1), ("l", None)],
    "m1b": [("k", 1)],
    "m2": [(1, "a"), (2, None)],
    "m3": [(1, "a")],
    "mv": [("q", Decimal("1.25"))],
    "md": [(dt.date(2024, 1, 1), ROW)],
    "r1": ROW,
    "r2": ROW,
    "ar": [ROW, None],
    "aa": [[Decimal("1.500"), None], None, []],
    "rr": {"inner": ROW, "l": [dt.datetime(2024, 1, 1, 10, 11, 12, 345000, UTC)], "mm": [(7, [1, 2])]},
    "ms": [("x", 2)],
}


def test_a_java_file_reads_with_every_type(engine: str) -> None:
    table = read_table(JAVA_FILE.read_bytes(), path=str(JAVA_FILE))
    first, second, third = table.to_pylist()
    for i, (arrow, value) in enumerate(PRIMITIVES):
        assert table.schema.field(f"c{i}") == pa.field(f"c{i}", arrow)
        assert table.schema.field(f"n{i}") == pa.field(f"n{i}", arrow, nullable=False)
        assert (first[f"c{i}"], first[f"n{i}"], second[f"c{i}"], second[f"n{i}"]) == (value, value, None, value)
    assert {name: first[name] for name in NESTED} == NESTED
    assert [name for name in NESTED if second[name] is not None] == ["a2", "m1b", "m3", "r2"]
    assert third == first


def test_our_schema_is_the_one_java_writes() -> None:
    data = JAVA_FILE.read_bytes()
    ours, theirs = avro_schema(read_table(data, path="f").schema), read_schema(data, path="f").schema
    # Paimon's map keys may be nullable, Arrow's cannot be.
    for field in theirs["fields"]:
        _require_keys(field["type"])
    assert ours == theirs


def _require_keys(schema: Any) -> None:
    if isinstance(schema, list):
        for member in schema:
            _require_keys(member)
    elif isinstance(schema, dict):
        if schema.get("logicalType") == "map":
            key = schema["items"]["fields"][0]
            key["type"] = key["type"][1] if isinstance(key["type"], list) else key["type"]
        for inner in (schema.get("items"), schema.get("values"), *(f["type"] for f in schema.get("fields", []))):
            _require_keys(inner)


def test_a_java_file_is_written_back_equal(engine: str) -> None:
    table = read_table(JAVA_FILE.read_bytes(), path="f")
    for schema in (None, read_schema(JAVA_FILE.read_bytes(), path="f").schema):
        assert read_table(write_table(table, schema), path="f").equals(table)
    assert read_table(write_table(table.slice(1)), path="f").equals(table.slice(1))
    chunked = pa.concat_tables([table.slice(1, 1), table, table.slice(2)])
    assert read_table(write_table(chunked), path="f").equals(chunked.combine_chunks())


def test_columns_come_in_the_order_asked_for(engine: str) -> None:
    table = read_table(JAVA_FILE.read_bytes(), path="f", columns=["rr", "absent", "c8"])
    assert table.column_names == ["rr", "c8"]
    assert table["c8"].to_pylist() == [PRIMITIVES[8][1], None, PRIMITIVES[8][1]]
    assert read_table(JAVA_FILE.read_bytes(), path="f", columns=[]).num_rows == 3


@settings(deadline=None, max_examples=examples(60))
@given(st.lists(st.none() | st.integers(-(10**38) + 1, 10**38 - 1), max_size=20), st.integers(0, 3))
def test_decimals_round_trip_and_agree_with_fastavro(engine: str, unscaled: list[int | None], cut: int) -> None:
    values = [None if number is None else Decimal(number) for number in unscaled]
    table = pa.table({"d": pa.array(values, pa.decimal128(38, 0))}).slice(cut)
    data = write_table(table)
    assert read_table(data, path="f").equals(table)
    expected = [
        None if n is None else n.to_bytes((8 + (n + (n < 0)).bit_length()) // 8, "big", signed=True) for n in unscaled
    ]
    raw = encode(pa.table({"d": pa.array(expected[cut:], pa.binary())}), avro_schema(table.schema), sync=bytes(16))
    assert write_table(table, sync=bytes(16)) == raw
    wide = {"type": "fixed", "name": "w", "size": 17, "logicalType": "decimal", "precision": 38, "scale": 0}
    fixed = {"type": "record", "name": "r", "fields": [{"name": "d", "type": ["null", wide]}]}
    rows = list(fastavro.reader(io.BytesIO(write_table(table, fixed))))
    assert [row["d"] for row in rows] == values[cut:]
    assert read_table(write_table(table, fixed), path="f").equals(table)


def test_short_fixed_decimals_read(engine: str, by_fastavro: Callable[..., bytes]) -> None:
    kind = {"type": "fixed", "name": "w", "size": 4, "logicalType": "decimal", "precision": 9, "scale": 2}
    schema = {
        "type": "record",
        "name": "r",
        "fields": [{"name": "d", "type": kind}, {"name": "e", "type": ["null", "w"]}],
    }
    rows = [{"d": Decimal("-1.25"), "e": None}, {"d": Decimal("9999999.99"), "e": Decimal("0.01")}]
    assert read_table(by_fastavro(schema, rows), path="f").to_pylist() == rows


def test_timestamps_are_the_reverse_of_what_avro_suggests(by_fastavro: Callable[..., bytes]) -> None:
    arrow = pa.schema([("a", pa.timestamp("us")), ("b", pa.timestamp("ms", "UTC")), ("c", pa.timestamp("s"))])
    kinds = [field["type"][1]["logicalType"] for field in avro_schema(arrow)["fields"]]
    assert kinds == ["timestamp-micros", "local-timestamp-millis", "timestamp-millis"]


@pytest.mark.parametrize(
    "arrow",
    [
        pa.timestamp("ns"),
        pa.uint8(),
        pa.decimal256(50, 2),
        pa.time64("ns"),
        pa.list_(pa.timestamp("ns", "UTC")),
        pa.date64(),
    ],
)
def test_types_without_an_avro_form_are_refused(arrow: pa.DataType) -> None:
    with pytest.raises(InvalidError, match="record_a"):
        avro_schema(pa.schema([("a", arrow)]))


def _schema_of(kind: Any) -> dict[str, Any]:
    return {"type": "record", "name": "r", "fields": [{"name": "a", "type": kind}]}


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (
            pa.array([dt.datetime(2024, 1, 1, 0, 0, 0, 1)], pa.timestamp("us")),
            {"type": "long", "logicalType": "timestamp-millis"},
        ),
        (pa.array([1], pa.timestamp("ms", "UTC")), {"type": "long", "logicalType": "timestamp-millis"}),
        (pa.array([1], pa.int64()), {"type": "long", "logicalType": "timestamp-millis"}),
        (pa.array([1.5]), {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 1}),
        (pa.array([Decimal("1.55")]), {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 1}),
        (
            pa.array([Decimal("300")], pa.decimal128(4, 0)),
            {"type": "fixed", "name": "x", "size": 1, "logicalType": "decimal", "precision": 4},
        ),
        (pa.array([None], pa.int32()), "int"),
    ],
)
def test_values_that_would_change_are_refused(values: pa.Array, kind: Any) -> None:
    with pytest.raises(InvalidError):
        write_table(pa.table({"a": values}), _schema_of(kind))


def test_decimals_beyond_their_precision_are_corruption() -> None:
    kind = {"type": "bytes", "logicalType": "decimal", "precision": 3, "scale": 0}
    for stored in ((10**4).to_bytes(2, "big"), b"\x01" + bytes(16), bytes(65)):
        data = encode(pa.table({"a": pa.array([stored])}), _schema_of(kind))
        with pytest.raises(CorruptionError, match="dir/f"):
            read_table(data, path="dir/f")


def test_null_keys_have_no_arrow_form() -> None:
    entry = {
        "type": "record",
        "name": "e",
        "fields": [{"name": "key", "type": ["null", "int"]}, {"name": "value", "type": "int"}],
    }
    schema = _schema_of({"type": "array", "items": entry, "logicalType": "map"})
    data = encode(pa.array([{"a": [{"key": None, "value": 1}]}]), schema)
    with pytest.raises(InvalidError, match=r"dir/f.*null key"):
        read_table(data, path="dir/f")


def test_tables_without_rows_or_chunks(engine: str) -> None:
    schema = read_table(JAVA_FILE.read_bytes(), path="f").schema
    for table in (
        schema.empty_table(),
        pa.table([pa.chunked_array([], field.type) for field in schema], schema=schema),
    ):
        back = read_table(write_table(table), path="f")
        assert back.schema == schema
        assert back.num_rows == 0


def test_decimals_of_no_rows_may_stand_in_any_buffer() -> None:
    inner = pa.struct([("a", pa.int64()), ("d", pa.decimal128(20, 4))])
    arrays = [pa.array([], pa.int64()), pa.Array.from_buffers(inner.field(1).type, 0, [None, pa.py_buffer(bytes(8))])]
    empty = pa.ListArray.from_arrays(
        pa.array([0, 0], pa.int32()), pa.StructArray.from_arrays(arrays, fields=list(inner))
    )
    schema = {
        "type": "record",
        "name": "r",
        "fields": [
            {
                "name": "c",
                "type": {
                    "type": "array",
                    "items": {
                        "type": "record",
                        "name": "s",
                        "fields": [
                            {"name": "a", "type": "long"},
                            {
                                "name": "d",
                                "type": {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 4},
                            },
                        ],
                    },
                },
            }
        ],
    }
    data = write_table(pa.table({"c": empty}), schema, codec="null")
    assert data
