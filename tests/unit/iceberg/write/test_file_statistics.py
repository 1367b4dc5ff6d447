"""Column statistics of data files: equal to pyiceberg's, and where ours differ, why."""

from __future__ import annotations

import math
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.conversions import from_bytes
from pyiceberg.io.pyarrow import (
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
)
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimeType,
    UUIDType,
)

from lakelet.errors import InvalidError
from lakelet.iceberg.commit_data import CommitData
from tests.unit.iceberg.ice_tables import ice_catalog, ice_table, written

_SCHEMA = Schema(
    NestedField(1, "n", LongType()),
    NestedField(2, "s", StringType()),
    NestedField(3, "d9", DecimalType(9, 2)),
    NestedField(4, "d38", DecimalType(38, 3)),
    NestedField(5, "day", DateType()),
    NestedField(6, "t", TimeType()),
    NestedField(7, "ts", TimestampType()),
    NestedField(8, "fx", FixedType(3)),
    NestedField(9, "bin", BinaryType()),
    NestedField(10, "ok", BooleanType()),
    NestedField(11, "i", IntegerType()),
    NestedField(12, "f", FloatType()),
    NestedField(13, "none", StringType()),
    NestedField(14, "st", StructType(NestedField(15, "x", DoubleType()))),
    NestedField(16, "l", ListType(17, FloatType(), element_required=False)),
    NestedField(18, "m", MapType(19, StringType(), 20, DoubleType(), value_required=False)),
)
_ROWS: dict[str, list[Any]] = {
    "n": [5, None, -7, 12, 2**62],
    "s": ["b" * 40, "aé🦆" * 9, None, "", "z" * 16],
    "d9": [Decimal("1.25"), Decimal("-3.50"), None, Decimal("0.00"), Decimal("99.99")],
    "d38": [Decimal("1.250"), Decimal(-(10**30)) / 1000, None, Decimal("0.000"), Decimal(10**20)],
    "day": [date(1969, 12, 31), date(2024, 2, 29), None, date(1, 1, 1), date(9999, 12, 31)],
    "t": [time(0), time(23, 59, 59, 999_999), None, time(1), time(2)],
    "ts": [datetime(1969, 12, 31, 23), datetime(2024, 1, 1), None, datetime(1, 1, 1), datetime(3000, 1, 1)],
    "fx": [b"abc", b"\0\0\0", None, b"\xff\xff\xff", b"xyz"],
    "bin": [b"\xff" * 20, b"", None, b"\x01" * 30, b"q"],
    "ok": [True, False, None, True, True],
    "i": [-1, 1, None, 2**31 - 1, -(2**31)],
    "f": [1.5, -2.5, None, 0.25, 3.0],
    "none": [None] * 5,
    "st": [{"x": 1.0}, None, {"x": None}, {"x": 2.0}, {"x": 3.0}],
    "l": [[1.0], None, [], [2.0, None], [3.0]],
    "m": [[("a", 1.0)], None, [], [("b", None)], [("c", 2.0)]],
}


def _of(folder: Path, schema: Schema, columns: dict[str, Any], **properties: str) -> CommitData:
    names = {name.replace("__", ".").replace("_", "-"): text for name, text in properties.items()}
    [data] = written(ice_table(folder, schema, properties=names), [pa.record_batch(columns)])
    return data


def _everything() -> dict[str, pa.Array]:
    types = {
        "d9": pa.decimal128(9, 2),
        "d38": pa.decimal128(38, 3),
        "i": pa.int32(),
        "f": pa.float32(),
        "none": pa.string(),
        "l": pa.list_(pa.float32()),
        "m": pa.map_(pa.string(), pa.float64()),
        "fx": pa.binary(3),
        "ts": pa.timestamp("us"),
    }
    return {name: pa.array(values, types.get(name)) for name, values in _ROWS.items()}


@pytest.mark.parametrize(
    "properties",
    [
        {},
        {"write__parquet__row_group_limit": "2"},
        {"write__metadata__metrics__default": "counts"},
        {"write__metadata__metrics__default": "none"},
        {"write__metadata__metrics__default": "full", "write__metadata__metrics__column__s": "truncate(3)"},
        {"write__metadata__metrics__default": "truncate(2)", "write__metadata__metrics__column__n": "none"},
    ],
)
def test_equal_to_pyiceberg(tmp_path: Path, properties: dict[str, str]) -> None:
    data = _of(tmp_path, _SCHEMA, _everything(), **properties)
    schema = ice_catalog(tmp_path).table("db.t").metadata.schema()
    names = {name.replace("__", ".").replace("_", "-"): text for name, text in properties.items()}
    expected = data_file_statistics_from_parquet_metadata(
        pq.read_metadata(data.file_path.removeprefix("file://")),
        compute_statistics_plan(schema, names),
        parquet_path_to_id_mapping(schema),
    ).to_serialized_dict()
    inside = {schema.find_field(name).field_id for name in ("l.element", "m.key", "m.value")}
    member = schema.find_field("st.x").field_id
    assert dict(data.column_sizes) == expected["column_sizes"]
    for name in ("value_counts", "null_value_counts"):
        assert dict(getattr(data, name)) == {key: n for key, n in expected[name].items() if key not in inside}, name
    for name in ("lower_bounds", "upper_bounds"):
        assert {key: bound for key, bound in getattr(data, name).items() if key != member} == expected[name], name
    if data.lower_bounds:
        assert from_bytes(DoubleType(), data.lower_bounds[member]) == 1.0
        assert from_bytes(DoubleType(), data.upper_bounds[member]) == 3.0
    assert list(data.split_offsets) == expected["split_offsets"]
    assert data.row_count == expected["record_count"]
    floats = {schema.find_field(name).field_id for name in ("f", "st.x")}
    counted = names.get("write.metadata.metrics.default") != "none"
    assert dict(data.nan_value_counts) == (dict.fromkeys(floats, 0) if counted else {})


def test_nan_is_counted_and_bounds_nothing(tmp_path: Path) -> None:
    schema = Schema(
        NestedField(1, "x", DoubleType()),
        NestedField(2, "zeros", FloatType()),
        NestedField(3, "nans", DoubleType()),
        NestedField(4, "st", StructType(NestedField(5, "y", FloatType()))),
        NestedField(6, "l", ListType(7, DoubleType(), element_required=False)),
    )
    nan = math.nan
    columns = {
        "x": [nan, 1.0, None, nan],
        "zeros": pa.array(np.array([-0.0, 0.0, -0.0, 0.0], np.float32)),
        "nans": [nan] * 4,
        "st": pa.array([{"y": nan}, None, {"y": 1.0}, {"y": nan}], pa.struct([("y", pa.float32())])),
        "l": [[nan, nan], None, [1.0, None], []],
    }
    data = _of(tmp_path, schema, columns, write__parquet__row_group_limit="3")
    ids = {"x": 1, "zeros": 2, "nans": 3, "y": 6}
    assert dict(data.nan_value_counts) == {ids["x"]: 2, ids["zeros"]: 0, ids["nans"]: 4, ids["y"]: 2}
    assert (from_bytes(DoubleType(), data.lower_bounds[1]), from_bytes(DoubleType(), data.upper_bounds[1])) == (
        1.0,
        1.0,
    )
    zeros = [from_bytes(FloatType(), bounds[2]) for bounds in (data.lower_bounds, data.upper_bounds)]
    assert [math.copysign(1, zero) for zero in zeros] == [-1, 1]
    assert ids["nans"] not in data.lower_bounds


def test_long_texts_have_no_bounds(tmp_path: Path) -> None:
    """Parquet keeps none of more than 4 KB, and bounds of the other row groups alone would hide rows."""
    schema = Schema(NestedField(1, "s", StringType()), NestedField(2, "id", LongType()))
    data = _of(tmp_path, schema, {"s": ["m", "z" * 5_000], "id": [1, 2]}, write__parquet__row_group_limit="1")
    assert 1 not in data.lower_bounds
    assert 1 not in data.upper_bounds
    assert 2 in data.upper_bounds


@pytest.mark.parametrize(
    ("text", "upper"),
    [
        ("a" * 17, "a" * 15 + "b"),
        ("a" * 15 + "\ud7ff" + "x", "a" * 15 + "\ue000"),
        ("a" * 15 + "\U0010ffff" + "x", "a" * 14 + "b"),
        ("\U0010ffff" * 17, None),
        ("🦆" * 16, "🦆" * 16),
    ],
)
def test_cut_upper_bounds(tmp_path: Path, text: str, upper: str | None) -> None:
    data = _of(tmp_path, Schema(NestedField(1, "s", StringType())), {"s": [text]})
    assert data.lower_bounds[1].decode() == text[:16]
    assert data.upper_bounds.get(1) == (None if upper is None else upper.encode())


def test_uuids_have_bounds_where_all_engines_agree(tmp_path: Path) -> None:
    schema = Schema(NestedField(1, "u", UUIDType()), NestedField(2, "v", UUIDType()))
    low, high = bytes(16), b"\xff" * 16
    columns = {"u": pa.array([low, high], pa.binary(16)), "v": pa.array([low, b"\x7f" + bytes(15)], pa.binary(16))}
    data = _of(tmp_path, schema, columns)
    assert dict(data.lower_bounds) == {2: low}
    assert dict(data.upper_bounds) == {2: b"\x7f" + bytes(15)}


def test_properties_that_make_no_sense(tmp_path: Path) -> None:
    with pytest.raises(InvalidError, match=r"ice.db.t.*write.metadata.metrics.column.s.*truncate\(length\).*'some'"):
        _of(
            tmp_path,
            Schema(NestedField(1, "s", StringType())),
            {"s": ["x"]},
            write__metadata__metrics__column__s="some",
        )
