"""Compute a table's schema after a change of its columns: old Iceberg schema and wanted columns to the new schema.

    old fields by id ─┬─ wanted: same id      keeps its id; name, comment, place and nullability as wanted, type kept or promoted
                      ├─ wanted: unknown id   new, under ids that the table never had
                      └─ not wanted           dropped; its id is never used again

Pure functions. Allowed is what leaves every file readable: int to long, float to double, more digits before the point of a
decimal, a required column made optional. The rules are those of Iceberg's specification, not pyiceberg's, which also takes text
for bytes. A column by which files are or were partitioned stays: their specs name it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

from pyiceberg.partitioning import validate_partition_name
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.transforms import VoidTransform
from pyiceberg.types import (
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StructType,
)

from lakelet.errors import InvalidError
from lakelet.iceberg.catalog.library_errors import lakelet_errors
from lakelet.iceberg.library_internals import fields_by_id
from lakelet.iceberg.schema.column_types import iceberg_type, model_field, model_type
from lakelet.model.types import Array, DataType, Field, Map, Row


def evolved_schema(metadata: TableMetadata, wanted: Sequence[Field], *, table: str) -> Schema:
    """The schema with these columns, of which those with a known id are the table's own."""
    old = metadata.schema()
    evolution = _Evolution(metadata.format_version, count(metadata.last_column_id + 1))
    with lakelet_errors(f"table {table}"):
        number = max(schema.schema_id for schema in metadata.schemas) + 1
        schema = Schema(
            *evolution.fields(old.fields, wanted, ""),
            schema_id=number,
            identifier_field_ids=list(old.identifier_field_ids),
        )
        left = set(fields_by_id(schema))
    _check_needed(metadata, left)
    with lakelet_errors(f"table {table}"):
        for spec in metadata.partition_specs:
            for field in spec.fields:
                validate_partition_name(field.name, field.transform, field.source_id, schema, set())
    return schema


class _Evolution:
    """Fields and types from before to after."""

    def __init__(self, format_version: int, ids: Iterator[int]) -> None:
        self._version = format_version
        self._ids = ids

    def fields(self, old: Sequence[NestedField], wanted: Sequence[Field], inside: str) -> list[NestedField]:
        known = {field.field_id: field for field in old}
        return [
            self._new(field, inside) if field.id not in known else self._changed(known[field.id], field, inside)
            for field in wanted
        ]

    def _new(self, wanted: Field, inside: str) -> NestedField:
        if wanted.default is not None:
            raise InvalidError(f"column {inside + wanted.name!r}: {NO_DEFAULTS}")
        number = next(self._ids)
        made = iceberg_type(wanted.type, self._ids, format_version=self._version, column=inside + wanted.name)
        return NestedField(number, wanted.name, made, required=not wanted.type.nullable, doc=wanted.description)

    def _changed(self, old: NestedField, wanted: Field, inside: str) -> NestedField:
        where = inside + wanted.name
        if model_field(old).default != wanted.default:
            raise InvalidError(f"column {where!r}: {NO_DEFAULTS}")
        return NestedField(
            old.field_id,
            wanted.name,
            self._type(old.field_type, wanted.type, where),
            required=_required(old.required, wanted.type, where),
            doc=wanted.description,
            initial_default=old.initial_default,
            write_default=old.write_default,
        )

    def _type(self, old: IcebergType, wanted: DataType, where: str) -> IcebergType:
        match old, wanted:
            case StructType(), Row(fields):
                return StructType(*self.fields(old.fields, fields, f"{where}."))
            case ListType(), Array(element):
                return ListType(
                    old.element_id,
                    self._type(old.element_type, element, f"{where}.element"),
                    _required(old.element_required, element, f"{where}.element"),
                )
            case MapType(), Map(key, value):
                return MapType(
                    old.key_id,
                    self._type(old.key_type, key, f"{where}.key"),
                    old.value_id,
                    self._type(old.value_type, value, f"{where}.value"),
                    _required(old.value_required, value, f"{where}.value"),
                )
        if model_type(old, nullable=wanted.nullable) == wanted:
            return old
        made = iceberg_type(wanted, self._ids, format_version=self._version, column=where)
        if made != old and not _promotes(old, made):
            raise InvalidError(
                f"column {where!r} is {old} and cannot become {made}: Iceberg widens int to long, float to double, and the "
                "precision of decimals"
            )
        return made


NO_DEFAULTS = "default values need format version 3 of Iceberg, and versions 1 and 2 are written"


def _promotes(old: IcebergType, new: IcebergType) -> bool:
    match old, new:
        case (IntegerType(), LongType()) | (FloatType(), DoubleType()):
            return True
        case DecimalType(), DecimalType():
            return old.scale == new.scale and old.precision <= new.precision
    return False


def _required(was: bool, wanted: DataType, where: str) -> bool:
    if not was and not wanted.nullable:
        raise InvalidError(f"column {where!r} is nullable and cannot become NOT NULL: rows may hold NULL")
    return not wanted.nullable


def _check_needed(metadata: TableMetadata, left: set[int]) -> None:
    """InvalidError if a dropped column is still named by something else of the table."""
    schema = metadata.schema()

    def name(number: int) -> str:
        return schema.find_column_name(number) or str(number)

    for number in schema.identifier_field_ids:
        if number not in left:
            raise InvalidError(f"column {name(number)!r} identifies rows and cannot be dropped")
    for spec in metadata.partition_specs:
        for field in spec.fields:
            if field.source_id not in left and not isinstance(field.transform, VoidTransform):
                raise InvalidError(
                    f"column {name(field.source_id)!r} cannot be dropped: partition field {field.name!r} of spec "
                    f"{spec.spec_id} is made of it, and files may be partitioned by that"
                )
    order = next(one for one in metadata.sort_orders if one.order_id == metadata.default_sort_order_id)
    for sorted_by in order.fields:
        if sorted_by.source_id not in left:
            raise InvalidError(f"column {name(sorted_by.source_id)!r} cannot be dropped: rows are sorted by it")
