"""Convert types between the model and Iceberg, and an Iceberg table's columns into a schema of the model.

    BOOLEAN                      boolean          TIMESTAMP(0–6)                   timestamp
    TINYINT, SMALLINT, INT       int              TIMESTAMP(0–6) WITH LOCAL …      timestamptz
    BIGINT                       long             TIMESTAMP(7–9) [WITH LOCAL …]    timestamp_ns, timestamptz_ns (version 3)
    FLOAT, DOUBLE                float, double    DATE, TIME                       date, time
    DECIMAL(p, s)                decimal(p, s)    ARRAY<…>, MAP<…>, ROW<…>         list, map, struct
    CHAR, VARCHAR, STRING        string           BINARY(n)                        fixed[n]
    STRING                     < uuid             VARBINARY, BYTES                 binary

Iceberg has no small integers and no bounded strings: they are widened, as Iceberg's Spark engine does. Going back, every type is
shown as the first of its line that holds all its values; a uuid is shown and taken as text. The schema of the model that a table
gets here is for statements to look columns up in: it is never written anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
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
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from lakelet.errors import InvalidError
from lakelet.iceberg.table import IcebergTable
from lakelet.model.schema import TableSchema
from lakelet.model.types import MAX_LENGTH, Array, Atomic, DataType, Field, Kind, Map, Multiset, Row, string

# The property of a table's comment, as in Iceberg's engines.
COMMENT_PROPERTY = "comment"
_NANOSECOND_VERSION = 3
_MICRO, _NANO = 6, 9
_PLAIN: dict[Kind, IcebergType] = {
    Kind.BOOLEAN: BooleanType(),
    Kind.TINYINT: IntegerType(),
    Kind.SMALLINT: IntegerType(),
    Kind.INT: IntegerType(),
    Kind.BIGINT: LongType(),
    Kind.FLOAT: FloatType(),
    Kind.DOUBLE: DoubleType(),
    Kind.CHAR: StringType(),
    Kind.VARCHAR: StringType(),
    Kind.VARBINARY: BinaryType(),
    Kind.DATE: DateType(),
}
_TIMES: dict[Kind, tuple[IcebergType, IcebergType | None]] = {
    Kind.TIME: (TimeType(), None),
    Kind.TIMESTAMP: (TimestampType(), TimestampNanoType()),
    Kind.TIMESTAMP_LTZ: (TimestamptzType(), TimestamptzNanoType()),
}
_FROM: dict[IcebergType, Atomic] = {
    BooleanType(): Atomic(Kind.BOOLEAN),
    IntegerType(): Atomic(Kind.INT),
    LongType(): Atomic(Kind.BIGINT),
    FloatType(): Atomic(Kind.FLOAT),
    DoubleType(): Atomic(Kind.DOUBLE),
    DateType(): Atomic(Kind.DATE),
    TimeType(): Atomic(Kind.TIME, _MICRO),
    TimestampType(): Atomic(Kind.TIMESTAMP, _MICRO),
    TimestamptzType(): Atomic(Kind.TIMESTAMP_LTZ, _MICRO),
    TimestampNanoType(): Atomic(Kind.TIMESTAMP, _NANO),
    TimestamptzNanoType(): Atomic(Kind.TIMESTAMP_LTZ, _NANO),
    StringType(): string(),
    UUIDType(): string(),
    BinaryType(): Atomic(Kind.VARBINARY, MAX_LENGTH),
}


def iceberg_type(
    data_type: DataType, ids: Iterator[int] | None = None, *, format_version: int = 2, column: str = "?"
) -> IcebergType:
    """The Iceberg type for a type of the model; fields inside it get their ids from `ids`. InvalidError, with the column, for
    one that a table of that format version does not have."""
    numbers = count(1) if ids is None else ids

    def inner(child: DataType, name: str) -> IcebergType:
        return iceberg_type(child, numbers, format_version=format_version, column=f"{column}.{name}")

    match data_type:
        case Atomic():
            return _atomic(data_type, format_version, column)
        case Array(element):
            number = next(numbers)
            return ListType(number, inner(element, "element"), not element.nullable)
        case Map(key, value):
            first, second = next(numbers), next(numbers)
            return MapType(first, inner(key, "key"), second, inner(value, "value"), not value.nullable)
        case Row(fields):
            return StructType(*iceberg_fields(fields, numbers, format_version=format_version, inside=f"{column}."))
        case Multiset():
            raise InvalidError(f"column {column!r}: Iceberg has no {data_type}; MAP<…, INT> holds the same")


def iceberg_fields(
    fields: Sequence[Field], ids: Iterator[int] | None = None, *, format_version: int = 2, inside: str = ""
) -> list[NestedField]:
    """Fields with ids counted afresh: those of one level first, as Iceberg's engines number them. `inside` is the path of what
    holds them, for messages."""
    numbers = count(1) if ids is None else ids
    own = [next(numbers) for _ in fields]
    return [
        NestedField(
            number,
            field.name,
            iceberg_type(field.type, numbers, format_version=format_version, column=inside + field.name),
            required=not field.type.nullable,
            doc=field.description,
        )
        for number, field in zip(own, fields, strict=True)
    ]


def iceberg_schema(fields: Sequence[Field], *, format_version: int = 2) -> Schema:
    """A schema with these columns."""
    return Schema(*iceberg_fields(fields, format_version=format_version))


def model_type(given: IcebergType, *, nullable: bool = True, where: str = "column") -> DataType:
    """The type of the model for an Iceberg type; InvalidError for one without a counterpart, such as a geometry."""
    match given:
        case DecimalType():
            return Atomic(Kind.DECIMAL, given.precision, given.scale, nullable=nullable)
        case FixedType():
            return Atomic(Kind.BINARY, len(given), nullable=nullable)
        case ListType():
            return Array(_inner(given.element_field, where), nullable=nullable)
        case MapType():
            return Map(_inner(given.key_field, where), _inner(given.value_field, where), nullable=nullable)
        case StructType():
            return Row(tuple(model_field(field, where) for field in given.fields), nullable=nullable)
    found = _FROM.get(given)
    if found is None:
        raise InvalidError(f"{where}: type {given} of Iceberg is not supported")
    return Atomic(found.kind, found.precision, found.scale, nullable=nullable)


def model_field(field: NestedField, where: str = "column") -> Field:
    """A column, or a member of a struct, with its id."""
    return Field(
        field.field_id,
        field.name,
        model_type(field.field_type, nullable=field.optional, where=f"{where} {field.name!r}"),
        field.doc,
        None if field.write_default is None else _literal_text(field.write_default),
    )


def model_schema(table: IcebergTable) -> TableSchema:
    """A table's columns, comments and properties. Partition keys are the columns that partition by their own value: those
    that PARTITION (column = value) may name."""
    metadata = table.metadata
    schema = metadata.schema()
    fields = tuple(model_field(field, f"table {table.full_name}: column") for field in schema.fields)
    properties = dict(metadata.properties)
    comment = properties.pop(COMMENT_PROPERTY, None)
    return TableSchema(
        id=schema.schema_id,
        fields=fields,
        highest_field_id=metadata.last_column_id,
        partition_keys=identity_columns(table),
        primary_keys=(),
        options=properties,
        comment=comment,
        time_ms=metadata.last_updated_ms,
    )


def identity_columns(table: IcebergTable) -> tuple[str, ...]:
    """The top-level columns that the default spec partitions by as they are, in the order of the spec."""
    schema = table.metadata.schema()
    own = {field.field_id: field.name for field in schema.fields}
    found = [
        own[field.source_id]
        for field in table.metadata.spec().fields
        if isinstance(field.transform, IdentityTransform) and field.source_id in own
    ]
    return tuple(dict.fromkeys(found))


def _inner(field: NestedField, where: str) -> DataType:
    return model_type(field.field_type, nullable=field.optional, where=where)


def _atomic(data_type: Atomic, format_version: int, column: str) -> IcebergType:
    kind = data_type.kind
    if kind is Kind.DECIMAL:
        return DecimalType(data_type.precision, data_type.scale)
    if kind is Kind.BINARY:
        return FixedType(data_type.precision)
    if kind not in _TIMES:
        return _PLAIN[kind]
    micro, nano = _TIMES[kind]
    if data_type.precision <= _MICRO:
        return micro
    if nano is None:
        raise InvalidError(f"column {column!r}: {data_type} is finer than the microseconds that Iceberg's time has")
    if format_version < _NANOSECOND_VERSION:
        raise InvalidError(
            f"column {column!r}: {data_type} needs format version {_NANOSECOND_VERSION} of Iceberg, and the table has version "
            f"{format_version}; TIMESTAMP({_MICRO}) holds microseconds"
        )
    return nano


def _literal_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
