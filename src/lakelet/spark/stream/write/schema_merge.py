"""`merge_schema`: add a batch's new columns to the table and widen types, on the driver, before the batch is written.

A batch that is repeated finds the columns there and changes nothing.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_type

from lakelet.errors import InvalidError
from lakelet.model.schema import TableSchema
from lakelet.spark.opened_table import OpenedTable
from lakelet.spark.types import table_arrow_type
from lakelet.spark.write.matched_columns import DEFAULT_KINDS
from lakelet.table.change.schema_change import SchemaChanges
from lakelet.table.write.incoming_columns import IncomingColumns


def merge_schema(spark: SparkSession, found: T.StructType, opened: OpenedTable, kinds: str | None) -> None:
    """Gives the table the columns that the batch has and it lacks, and types that hold the batch's values."""
    case_sensitive = str(spark.conf.get("spark.sql.caseSensitive", "false")).lower() == "true"
    schema = opened.schema()
    named = _named(found, schema, kinds, case_sensitive=case_sensitive)
    incoming = IncomingColumns(iter([_empty(named, schema)]), None)
    if incoming.evolved(schema) != schema:
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
        if name in named:
            raise InvalidError(f"merge_schema: the batch has the column {name!r} twice")
        named[name] = field.dataType
    return named


def _is_kinds(name: str, kinds: str | None, schema: TableSchema, *, case_sensitive: bool) -> bool:
    if kinds is None and not schema.primary_keys:
        return False
    wanted = kinds or DEFAULT_KINDS
    return name == wanted or (not case_sensitive and name.casefold() == wanted.casefold())


def _empty(named: dict[str, T.DataType], schema: TableSchema) -> pa.RecordBatch:
    known = {field.name: field.type for field in schema.fields}
    fields = []
    for name, data_type in named.items():
        try:
            arrow = to_arrow_type(data_type, timezone="UTC")
        except (PySparkException, ValueError) as error:
            raise InvalidError(
                f"merge_schema: column {name!r} is {data_type.simpleString().upper()}, which tables have no type for"
            ) from error
        fields.append(pa.field(name, table_arrow_type(arrow, known[name]) if name in known else arrow))
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in fields], schema=pa.schema(fields))
