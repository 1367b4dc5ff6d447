"""Types of the model and types of Iceberg."""

from pathlib import Path

import pytest
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.types import (
    BinaryType,
    GeometryType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    UUIDType,
)

from lakelet.errors import InvalidError
from lakelet.iceberg.schema.column_types import iceberg_schema, iceberg_type, model_schema, model_type
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field
from tests.unit.iceberg.ice_tables import ice_table, spec_of

# As a statement says it, in Iceberg, and back again.
TYPES = [
    ("BOOLEAN", "boolean", "BOOLEAN"),
    ("TINYINT", "int", "INT"),
    ("SMALLINT", "int", "INT"),
    ("INT", "int", "INT"),
    ("BIGINT", "long", "BIGINT"),
    ("FLOAT", "float", "FLOAT"),
    ("DOUBLE", "double", "DOUBLE"),
    ("DECIMAL(38, 38)", "decimal(38, 38)", "DECIMAL(38, 38)"),
    ("CHAR(3)", "string", "STRING"),
    ("VARCHAR(7)", "string", "STRING"),
    ("STRING", "string", "STRING"),
    ("BINARY(5)", "fixed[5]", "BINARY(5)"),
    ("VARBINARY(9)", "binary", "BYTES"),
    ("DATE", "date", "DATE"),
    ("TIME(0)", "time", "TIME(6)"),
    ("TIMESTAMP(0)", "timestamp", "TIMESTAMP(6)"),
    ("TIMESTAMP(6)", "timestamp", "TIMESTAMP(6)"),
    ("TIMESTAMP(3) WITH LOCAL TIME ZONE", "timestamptz", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
    ("ARRAY<INT NOT NULL>", "list<int>", "ARRAY<INT NOT NULL>"),
    ("MAP<STRING, ARRAY<DATE>>", "map<string, list<date>>", "MAP<STRING NOT NULL, ARRAY<DATE>>"),
]


@pytest.mark.parametrize(("written", "stored", "shown"), TYPES)
def test_there_and_back(written: str, stored: str, shown: str) -> None:
    made = iceberg_type(parse_type(written))
    assert str(made) == stored
    assert model_type(made) == parse_type(shown)
    assert model_type(made, nullable=False) == parse_type(f"{shown} NOT NULL")


@pytest.mark.parametrize("written", ["TIMESTAMP(7)", "TIMESTAMP(9) WITH LOCAL TIME ZONE"])
def test_nanoseconds_need_version_3(written: str) -> None:
    with pytest.raises(InvalidError, match=r"column '\?': TIMESTAMP.* needs format version 3 .* has version 2"):
        iceberg_type(parse_type(written))
    assert str(iceberg_type(parse_type(written), format_version=3)).endswith("_ns")
    assert model_type(TimestampNanoType()) == parse_type("TIMESTAMP(9)")


@pytest.mark.parametrize(
    ("written", "reason"), [("MULTISET<INT>", "Iceberg has no MULTISET<INT>"), ("TIME(9)", "TIME.9. is finer")]
)
def test_types_that_iceberg_lacks(written: str, reason: str) -> None:
    with pytest.raises(InvalidError, match=f"column 'a.b': {reason}"):
        iceberg_schema([Field(-1, "a", parse_type(f"ROW<b {written}>"))])


def test_types_that_the_model_lacks() -> None:
    assert model_type(UUIDType()) == parse_type("STRING")
    with pytest.raises(InvalidError, match="column 'g': type geometry"):
        model_type(GeometryType(), where="column 'g'")


def test_ids_are_counted_level_by_level() -> None:
    fields = [
        Field(-1, "a", parse_type("ROW<x INT, y ROW<z INT NOT NULL>>"), "first"),
        Field(-1, "b", parse_type("ARRAY<ROW<x INT>> NOT NULL")),
        Field(-1, "c", parse_type("MAP<STRING, BIGINT NOT NULL>")),
    ]
    inner = StructType(NestedField(6, "z", IntegerType(), required=True))
    assert iceberg_schema(fields) == Schema(
        NestedField(
            1,
            "a",
            StructType(NestedField(4, "x", IntegerType()), NestedField(5, "y", inner)),
            required=False,
            doc="first",
        ),
        NestedField(2, "b", ListType(7, StructType(NestedField(8, "x", IntegerType())), False), required=True),
        NestedField(3, "c", MapType(9, StringType(), 10, LongType(), True)),
    )


def test_a_table_as_a_schema(tmp_path: Path) -> None:
    table = ice_table(
        tmp_path,
        Schema(
            NestedField(1, "id", LongType(), required=True, doc="the key"),
            NestedField(2, "region", StringType()),
            NestedField(3, "raw", BinaryType()),
        ),
        spec_of((1, BucketTransform(4), "id_bucket"), (2, IdentityTransform(), "region")),
        properties={"comment": "orders", "k": "v"},
    )
    schema = model_schema(table)
    assert schema.fields == (
        Field(1, "id", parse_type("BIGINT NOT NULL"), "the key"),
        Field(2, "region", parse_type("STRING")),
        Field(3, "raw", parse_type("BYTES")),
    )
    # A bucket has no value that a statement could name.
    assert schema.partition_keys == ("region",)
    assert (schema.comment, schema.options, schema.highest_field_id) == ("orders", {"k": "v"}, 3)
