import datetime as dt
import re
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from pyiceberg.table.name_mapping import MappedField, NameMapping
from pyiceberg.types import (
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from lakelet.errors import CorruptionError, InvalidError
from lakelet.iceberg.scan.evolution import Evolution, plain_columns, stored_fields


def _field(number: int, name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})


def _read(column: pa.Array, field: pa.Field, wanted: NestedField, constants: dict[int, Any] | None = None) -> list[Any]:
    evolution = Evolution(stored_fields(pa.schema([field]), None, "f"), constants or {}, "f")
    needed = evolution.needed([wanted])
    given = pa.RecordBatch.from_arrays([column] if needed else [pa.nulls(len(column))], names=["c"])
    found: list[Any] = evolution.batch(given, [wanted]).column(0).to_pylist()
    return found


@pytest.mark.parametrize(
    ("given", "kind", "wanted", "found"),
    [
        ([1, None], pa.int32(), LongType(), [1, None]),
        ([1, None], pa.int16(), IntegerType(), [1, None]),
        ([1.5], pa.float32(), DoubleType(), [1.5]),
        ([Decimal("1.50")], pa.decimal128(5, 2), DecimalType(9, 2), [Decimal("1.50")]),
        (["a"], pa.large_string(), StringType(), ["a"]),
        ([b"a"], pa.binary(), StringType(), ["a"]),
        (["a", "b", "a"], pa.dictionary(pa.int32(), pa.string()), StringType(), ["a", "b", "a"]),
        ([1_500], pa.timestamp("ns"), TimestampType(), [dt.datetime(1970, 1, 1, 0, 0, 0, 1)]),
        ([5], pa.timestamp("ms", "UTC"), TimestamptzType(), [dt.datetime(1970, 1, 1, 0, 0, 0, 5000, dt.UTC)]),
        ([5], pa.timestamp("us"), TimestamptzType(), [dt.datetime(1970, 1, 1, 0, 0, 0, 5, dt.UTC)]),
        ([1], pa.date32(), TimestampType(), [dt.datetime(1970, 1, 2)]),
        ([bytes(16)], pa.binary(16), UUIDType(), [UUID(int=0)]),
        # As ORC stores them.
        ([bytes(16), None], pa.binary(), UUIDType(), [UUID(int=0), None]),
        ([b"abc", None], pa.binary(), FixedType(3), [b"abc", None]),
        ([5, None], pa.int64(), TimeType(), [dt.time(0, 0, 0, 5), None]),
    ],
)
def test_types(given: list[Any], kind: pa.DataType, wanted: IcebergType, found: list[Any]) -> None:
    assert _read(pa.array(given, kind), _field(1, "a", kind), NestedField(1, "b", wanted)) == found


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        *((pa.int64(), IntegerType()), (pa.float64(), FloatType()), (pa.string(), LongType())),
        *((pa.decimal128(5, 2), DecimalType(9, 3)), (pa.decimal128(9, 2), DecimalType(5, 2))),
        *((pa.timestamp("us", "Europe/Berlin"), TimestampType()), (pa.int64(), DateType())),
        *((pa.int64(), StructType()), (pa.int64(), ListType(2, LongType(), False))),
    ],
)
def test_types_that_do_not_fit(kind: pa.DataType, wanted: IcebergType) -> None:
    with pytest.raises(CorruptionError, match="f: column 'a' is stored as .*" + re.escape(f", expected {wanted}")):
        _read(pa.nulls(1, kind), _field(1, "a", kind), NestedField(1, "b", wanted))


@pytest.mark.parametrize("wanted", [FixedType(3), UUIDType()])
def test_bytes_of_another_length(wanted: IcebergType) -> None:
    with pytest.raises(pa.ArrowInvalid, match="widths must match"):
        _read(pa.array([b"ab", b"abcd"]), _field(1, "a", pa.binary()), NestedField(1, "b", wanted))


@pytest.mark.parametrize("start", [0, 2])
def test_null_lists_maps_and_structs_stay_null(start: int) -> None:
    inner = pa.struct([_field(3, "x", pa.int32())])
    many = pa.list_(_field(2, "element", inner))
    wanted = ListType(2, StructType(NestedField(3, "y", LongType()), NestedField(4, "z", StringType())), False)
    rows = [[{"x": 9}], None, None, [], [{"x": 1}, None]]
    found = [
        None if row is None else [None if one is None else {"y": one["x"], "z": None} for one in row] for row in rows
    ]
    column = pa.array(rows, many).slice(start)
    assert _read(column, _field(1, "l", many), NestedField(1, "l", wanted)) == found[start:]
    keyed = pa.map_(pa.field("key", pa.string(), False), pa.field("value", inner, metadata={"PARQUET:field_id": "6"}))
    pairs = [[("k", {"x": 9})], None, None, [], [("a", None), ("b", {"x": 2})]]
    expected = [
        None if row is None else [(key, None if one is None else {"y": one["x"], "z": None}) for key, one in row]
        for row in pairs
    ]
    kind = MapType(5, StringType(), 6, wanted.element_type, False)
    column = pa.array(pairs, keyed).slice(start)
    assert _read(column, _field(1, "m", keyed), NestedField(1, "m", kind)) == expected[start:]


@pytest.mark.parametrize(
    ("wanted", "constants", "found"),
    [
        (NestedField(2, "b", LongType()), {}, None),
        (NestedField(2, "b", LongType(), initial_default=7), {}, 7),
        (NestedField(2, "b", LongType(), required=True, initial_default=7), {}, 7),
        (NestedField(2, "b", DateType()), {2: 1}, dt.date(1970, 1, 2)),
        (NestedField(2, "b", TimestamptzType()), {2: 5}, dt.datetime(1970, 1, 1, 0, 0, 0, 5, dt.UTC)),
        (NestedField(2, "b", DecimalType(5, 2)), {2: Decimal("1.50")}, Decimal("1.50")),
        (NestedField(2, "b", UUIDType()), {2: UUID(int=3)}, UUID(int=3)),
        (NestedField(2, "b", LongType(), initial_default=7), {2: 8}, 8),
    ],
)
def test_columns_that_a_file_has_not(wanted: NestedField, constants: dict[int, Any], found: object) -> None:
    column = pa.array([1, 2])
    assert _read(column, _field(1, "a", pa.int64()), wanted, constants) == [found, found]


def test_a_required_column_that_a_file_has_not() -> None:
    with pytest.raises(CorruptionError, match=r"f has no column 'b' \(field 2\), which is required"):
        _read(pa.array([1]), _field(1, "a", pa.int64()), NestedField(2, "b", LongType(), required=True))


def test_files_without_ids() -> None:
    kind = pa.struct([("x", pa.int64())])
    schema = pa.schema([("old", pa.int64()), ("s", kind), ("l", pa.list_(kind)), ("other", pa.int64())])
    with pytest.raises(InvalidError, match="f has no field ids"):
        stored_fields(schema, None, "f")
    inner = [MappedField(field_id=4, names=["x"])]
    mapping = NameMapping(
        [
            MappedField(field_id=1, names=["new", "old"]),
            MappedField(field_id=2, names=["s"], fields=inner),
            MappedField(field_id=3, names=["l"], fields=[MappedField(field_id=5, names=["element"], fields=inner)]),
        ]
    )
    one, two, three, four = stored_fields(schema, mapping, "f")
    assert (one.field_id, two.field_id, three.field_id, four.field_id) == (1, 2, 3, None)
    assert two.children[0].field_id == 4
    assert three.children[0].children[0].field_id == 4
    # A file that has ids is read by them alone.
    (mixed, without) = stored_fields(pa.schema([_field(9, "a", pa.int64()), pa.field("old", pa.int64())]), mapping, "f")
    assert (mixed.field_id, without.field_id) == (9, None)


def test_plain_columns() -> None:
    kind = pa.struct([_field(3, "x", pa.int64())])
    stored = stored_fields(pa.schema([_field(1, "a", pa.int32()), _field(2, "s", kind)]), None, "f")
    struct = StructType(NestedField(3, "x", LongType()))
    found = plain_columns(
        stored, {}, [NestedField(1, "b", LongType()), NestedField(2, "s", struct), NestedField(7, "n", StringType())]
    )
    assert found is not None
    assert [(one.name, one.stored_name) for one in found.columns] == [("b", "a"), ("s", "s"), ("n", None)]
    for changed in (
        NestedField(2, "s", StructType(NestedField(3, "y", LongType()))),
        NestedField(2, "s", StructType(NestedField(3, "x", LongType()), NestedField(4, "y", LongType()))),
        NestedField(7, "n", StringType(), initial_default="d"),
        NestedField(7, "n", StringType(), required=True),
    ):
        assert plain_columns(stored, {}, [changed]) is None
    assert plain_columns(stored, {7: "constant"}, [NestedField(7, "n", StringType())]) is None
