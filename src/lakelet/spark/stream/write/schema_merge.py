"""`merge_schema`: add a batch's new columns to the table and widen types, on the driver, before the batch is written.

A batch that is repeated finds the columns there and changes nothing. A batch that is refused for another reason changes nothing
either.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_type

from lakelet.errors import InvalidError
from lakelet.model.schema import TableSchema
from lakelet.model.types import Array, DataType, Map, Row
from lakelet.spark.opened_table import OpenedTable
from lakelet.spark.types import spark_type, table_arrow_type
from lakelet.spark.write.matched_columns import DEFAULT_KINDS, routing_columns, without_void
from lakelet.table.change.schema_change import SchemaChanges
from lakelet.table.write.incoming_columns import IncomingColumns


def merge_schema(
    spark: SparkSession,
    found: T.StructType,
    opened: OpenedTable,
    kinds: str | None,
    check: Callable[[TableSchema], object],
) -> None:
    """Gives the table the columns that the batch has and it lacks, and types that hold the batch's values. `check` raises where
    the batch would not fit even then: the table stays as it is."""
    case_sensitive = str(spark.conf.get("spark.sql.caseSensitive", "false")).lower() == "true"
    schema = opened.schema()
    named = _named(found, schema, kinds, case_sensitive=case_sensitive)
    incoming = IncomingColumns(iter([_empty(named, schema)]), None)
    evolved = incoming.evolved(schema)
    if evolved != schema:
        if not case_sensitive:
            _check_fields(schema, evolved)
        check(evolved)
        SchemaChanges(opened.home).alter(incoming.evolved)


def _named(
    found: T.StructType, schema: TableSchema, kinds: str | None, *, case_sensitive: bool
) -> dict[str, T.DataType]:
    """The batch's columns by the names that they have, or will have, in the table; without the one of row kinds."""
    named: dict[str, T.DataType] = {}
    for field in found.fields:
        name = field.name
        if name not in schema.names and _is_kinds(name, kinds, schema, case_sensitive=case_sensitive):
            continue
        if name not in schema.names and not case_sensitive:
            alike = [own for own in schema.names if own.casefold() == name.casefold()]
            name = alike[0] if len(alike) == 1 else name
        if name in routing_columns(schema):
            # Their types decide where rows are: values are checked against them, as without merge_schema.
            continue
        if name in named:
            raise InvalidError(f"merge_schema: the batch has the column {name!r} twice")
        alike = [] if case_sensitive else [other for other in named if other.casefold() == name.casefold()]
        if alike:
            raise InvalidError(
                f"merge_schema: the batch has the columns {alike[0]!r} and {name!r}, which differ by case alone: set "
                "spark.sql.caseSensitive to true"
            )
        named[name] = field.dataType
    return named


def _check_fields(schema: TableSchema, evolved: TableSchema) -> None:
    """InvalidError where a ROW would get a field whose name differs from another's by case alone."""
    known = {field.name: field.type for field in schema.fields}
    for field in evolved.fields:
        alike = None if field.type == known.get(field.name) else _alike(field.type)
        if alike is not None:
            raise InvalidError(
                f"merge_schema: column {field.name!r} would have the fields {alike[0]!r} and {alike[1]!r}, which differ by case "
                "alone: set spark.sql.caseSensitive to true"
            )


def _alike(data_type: DataType) -> tuple[str, str] | None:
    """Two fields of one ROW, at any depth, whose names differ by case alone."""
    match data_type:
        case Row(fields):
            names: dict[str, str] = {}
            for field in fields:
                other = names.setdefault(field.name.casefold(), field.name)
                if other != field.name:
                    return other, field.name
            return next(filter(None, (_alike(field.type) for field in fields)), None)
        case Array(element):
            return _alike(element)
        case Map(_, value):
            return _alike(value)
        case _:
            return None


def _is_kinds(name: str, kinds: str | None, schema: TableSchema, *, case_sensitive: bool) -> bool:
    if kinds is None and not schema.primary_keys:
        return False
    wanted = kinds or DEFAULT_KINDS
    return name == wanted or (not case_sensitive and name.casefold() == wanted.casefold())


def _empty(named: dict[str, T.DataType], schema: TableSchema) -> pa.RecordBatch:
    known = {field.name: field.type for field in schema.fields}
    fields = []
    for name, data_type in named.items():
        told = without_void(data_type, spark_type(known[name])) if name in known else data_type
        arrow = _arrow_type(name, told)
        fields.append(pa.field(name, table_arrow_type(arrow, known[name]) if name in known else arrow))
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in fields], schema=pa.schema(fields))


def _arrow_type(name: str, data_type: T.DataType) -> pa.DataType:
    what = f"merge_schema: column {name!r} is {data_type.simpleString().upper()}, which tables have no type for"
    if _has_variant(data_type):
        raise InvalidError(what)
    try:
        return to_arrow_type(data_type, timezone="UTC")
    except (PySparkException, ValueError) as error:
        raise InvalidError(what) from error


def _has_variant(found: T.DataType) -> bool:
    """Whether a type has VARIANT at any depth, which Arrow takes for a struct of its bytes."""
    match found:
        case T.ArrayType():
            return _has_variant(found.elementType)
        case T.MapType():
            return _has_variant(found.valueType)
        case T.StructType():
            return any(_has_variant(field.dataType) for field in found.fields)
        case _:
            return isinstance(found, T.VariantType)
