"""Iceberg tables for the tests: columns of every type with values at the edges, inserts by our writers, rows to compare.

A row is compared by what it says, whatever an engine makes of a type: `canonical` gives text for what has several forms (a uuid
is text in Spark, an object in pyiceberg), and tells -0.0 from 0.0 and NaN from NULL.
"""

import datetime as dt
import math
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import parse_transform
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from lakelet.iceberg.catalog.iceberg_catalog import IcebergCatalog
from lakelet.iceberg.transaction import IcebergTransaction, MadeSnapshot
from lakelet.iceberg.write.table_writer import TableWriter

_MOMENTS = [
    dt.datetime(1970, 1, 1),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999_999),
    dt.datetime(2024, 2, 29, 13, 14, 15, 161_718),
    dt.datetime(1969, 12, 31, 0, 0, 0, 1),
    dt.datetime(1900, 1, 1, 5, 30),
    dt.datetime(9999, 12, 31, 23, 59, 59, 999_999),
    dt.datetime(2023, 12, 31, 23, 0),
]


@dataclass(frozen=True)
class Edges:
    """A column of one type: its name, the transforms that it is partitioned by, its values. NULL comes by itself."""

    name: str
    type: IcebergType
    transforms: tuple[str, ...]
    values: tuple[Any, ...]


# There is no zero among the floats: its bounds are -0.0 and 0.0 here, as Parquet wants them, and one of the two in Java.
EDGES = [
    Edges("yes", BooleanType(), ("identity",), (True, False)),
    Edges(
        "int", IntegerType(), ("identity", "bucket[7]", "truncate[10]"), (0, 1, -1, 34, -11, 2**31 - 1, -(2**31) + 8)
    ),
    Edges(
        "long", LongType(), ("identity", "bucket[16]", "truncate[100]"), (0, 34, -1, -101, 2**63 - 1, -(2**63) + 100)
    ),
    Edges("float", FloatType(), ("identity",), (0.5, 1.5, -2.25, math.inf, -math.inf, math.nan)),
    Edges("double", DoubleType(), ("identity",), (0.5, 1e300, -2.25, math.inf, -math.inf, math.nan)),
    Edges(
        "money",
        DecimalType(9, 2),
        ("identity", "bucket[16]", "truncate[50]"),
        tuple(map(Decimal, ("0.00", "14.20", "-0.01", "10.65", "9999999.99", "-9999999.50"))),
    ),
    Edges(
        "long money",
        DecimalType(18, 4),
        ("identity", "bucket[16]", "truncate[50]"),
        tuple(map(Decimal, ("0.0000", "-0.0128", "3.2767", "3.2768", "99999999999999.9999", "-99999999999999.9950"))),
    ),
    Edges(
        "wide.money",
        DecimalType(38, 10),
        ("identity", "bucket[16]", "truncate[50]"),
        (Decimal("1E-10"), Decimal("-0.0000000129"), Decimal("9" * 28), Decimal("-" + "9" * 28), Decimal(2**63)),
    ),
    Edges(
        "day",
        DateType(),
        ("identity", "bucket[16]", "year", "month", "day"),
        tuple(dt.date(*day) for day in ((1970, 1, 1), (1969, 12, 31), (1969, 1, 1), (2024, 2, 29), (9999, 12, 31))),
    ),
    Edges("at", TimestampType(), ("identity", "bucket[16]", "year", "month", "day", "hour"), tuple(_MOMENTS)),
    Edges(
        "At Zone",
        TimestamptzType(),
        ("identity", "bucket[16]", "year", "month", "day", "hour"),
        tuple(moment.replace(tzinfo=dt.UTC) for moment in _MOMENTS),
    ),
    Edges(
        "Straße",
        StringType(),
        ("identity", "bucket[16]", "truncate[2]"),
        ("", "null", "a=b/c%d", "été", "🦆🦆🦆", "日本語" * 6, " x ", "x" * 40, "\uffff" * 20),
    ),
    Edges(
        "uuid",
        UUIDType(),
        ("identity", "bucket[16]"),
        (uuid.UUID(int=0), uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7"), uuid.UUID(int=2**128 - 1)),
    ),
    Edges("fixed", FixedType(3), ("bucket[16]",), (b"\x00\x00\x00", b"\xff\xff\xff", b"abc")),
    Edges(
        "bytes",
        BinaryType(),
        ("identity", "bucket[16]", "truncate[2]"),
        (b"", b"\x00", b"\xff" * 20, b"\x00\x01\x02\x03"),
    ),
]
# Spark has no times, and Iceberg's Java library writes and reads a partition value of fixed length with its length before it,
# where Avro has none: no other library reads such manifests of Java's, and Java none of theirs.
NOT_IN_JAVA = [
    Edges(
        "time", TimeType(), ("identity", "bucket[16]"), (dt.time(0), dt.time(22, 31, 8), dt.time(23, 59, 59, 999_999))
    ),
    Edges("fixed", FixedType(3), ("identity",), (b"\x00\x00\x00", b"\xff\xff\xff", b"abc")),
]


def every_type(edges: Iterable[Edges], *, void: bool = True) -> tuple[Schema, PartitionSpec, pa.Table]:
    """A schema with an id and these columns, a spec of all their transforms, and as many rows as the longest has values: each
    column takes its values round and round at a pace of its own, with a NULL in between."""
    fields = [NestedField(1, "id", LongType(), required=True)]
    parts: list[PartitionField] = []
    columns: dict[str, list[Any]] = {"id": list(range(ROWS))}
    for number, column in enumerate(edges, start=2):
        fields.append(NestedField(number, column.name, column.type))
        for transform in (*column.transforms, *(["void"] if void else [])):
            name = column.name if transform == "identity" else f"{column.name}_{transform.split('[')[0]}"
            parts.append(PartitionField(number, 1000 + len(parts), parse_transform(transform), name))
        cycle = [*column.values, None]
        columns[column.name] = [cycle[row % len(cycle)] for row in range(ROWS)]
    schema = Schema(*fields)
    return schema, PartitionSpec(*parts), arrow_table(schema, columns)


ROWS = 21


def arrow_table(schema: Schema, columns: Mapping[str, list[Any]]) -> pa.Table:
    """Python's values as Arrow's, in the types that pyiceberg has for a schema."""
    arrow = schema_to_pyarrow(schema, include_field_ids=False)
    arrays = [
        pa.array([one.bytes if isinstance(one, uuid.UUID) else one for one in columns[field.name]], storage(field.type))
        for field in arrow
    ]
    made = [array.cast(field.type) for array, field in zip(arrays, arrow, strict=True)]
    return pa.Table.from_arrays(made, schema=arrow)


def storage(arrow: pa.DataType) -> pa.DataType:
    return arrow.storage_type if isinstance(arrow, pa.BaseExtensionType) else arrow


def for_spark(rows: pa.Table) -> pa.Table:
    """The rows in types that Spark takes: uuids are text, and there are no lengths."""
    arrays = [_for_spark(column) for column in rows.columns]
    return pa.table(arrays, rows.column_names)


def _for_spark(column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    if column.type == pa.uuid():
        return pa.array([None if one is None else str(one) for one in column.to_pylist()], pa.string())
    return column.cast(pa.binary()) if pa.types.is_fixed_size_binary(column.type) else column


# ---------------------------------------------------------------- our writers


def insert(
    catalog: IcebergCatalog,
    name: str,
    *batches: pa.Table,
    mode: str = "append",
    partition: Mapping[str, object] | None = None,
    branch: str | None = None,
) -> MadeSnapshot | None:
    """One insert by our writers; each table is what one task writes."""
    transaction = IcebergTransaction(catalog.table(name), branch=branch)
    plan = transaction.begin_insert(mode, partition)
    for task, rows in enumerate(batches):
        writer = TableWriter(plan, str(task))
        for batch in rows.to_batches():
            writer.write(batch)
        transaction.update_commit_data(writer.close())
    return transaction.finish_insert()


def metadata_path(table: Table) -> str:
    """Where the table's metadata is, as a path for DuckDB."""
    return table.metadata_location.removeprefix("file://").removeprefix("file:")


# ---------------------------------------------------------------- rows


def canonical(value: Any) -> Any:
    """A value in a form that is the same from every engine, and can be sorted."""
    match value:
        case float():
            return "NaN" if math.isnan(value) else repr(value)
        case Decimal():
            return format(value, "f")
        case dt.datetime() if value.tzinfo is not None:
            return value.astimezone(dt.UTC).isoformat()
        case dt.date() | dt.time():
            return value.isoformat()
        case uuid.UUID():
            return str(value)
        case bytes() | bytearray():
            return bytes(value).hex()
        case dict():
            return tuple((name, canonical(one)) for name, one in value.items())
        case list() | tuple():
            return tuple(canonical(one) for one in value)
    return value


def rows_of(table: pa.Table, names: list[str] | None = None) -> Counter[Any]:
    """How often each row is there."""
    chosen = table if names is None else table.select(names)
    return Counter(tuple(canonical(one) for one in row.values()) for row in chosen.to_pylist())
