"""A table's columns as an Iceberg schema, and which tables can be published at all.

Field ids are the table's own, those of elements, keys and values the ones that data files carry (`format/data/field_ids`).

    TINYINT, SMALLINT, INT   int          CHAR, VARCHAR      string       TIMESTAMP(3..6)       timestamp
    BIGINT                   long         BINARY, VARBINARY  binary       TIMESTAMP_LTZ(3..6)   timestamptz
    DECIMAL(p, s)            decimal      DATE               date         ARRAY, MAP, ROW       list, map, struct

What Iceberg has no type for is refused when the option is set, by name. So is a change of a type after which Iceberg's readers
could not read older files: they know fewer of them than Paimon's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from lakelet.errors import InvalidError
from lakelet.format.data.field_ids import element_id, key_id
from lakelet.model.schema import TableSchema
from lakelet.model.types import BINARIES, STRINGS, Array, Atomic, DataType, Field, Kind, Map, Row
from lakelet.options import (
    DELETION_VECTORS_BITMAP64,
    DELETION_VECTORS_ENABLED,
    FILE_FORMAT,
    FILE_FORMAT_PER_LEVEL,
    ICEBERG_FORMAT_VERSION,
    ICEBERG_STORAGE,
    TableOptions,
    publishes_iceberg,
)

FIRST_PARTITION_ID = 1000
# The version of Iceberg's format that has deletion vectors.
_VECTORS_SINCE = 3
_LEAST_PRECISION, _MOST_PRECISION = 3, 6
_PLAIN = {
    Kind.BOOLEAN: "boolean",
    Kind.TINYINT: "int",
    Kind.SMALLINT: "int",
    Kind.INT: "int",
    Kind.BIGINT: "long",
    Kind.FLOAT: "float",
    Kind.DOUBLE: "double",
    Kind.DATE: "date",
}
_TIMES = {Kind.TIMESTAMP: "timestamp", Kind.TIMESTAMP_LTZ: "timestamptz"}
_PROMOTED = {("int", "long"), ("float", "double")}
_DECIMAL = re.compile(r"decimal\((\d+), (\d+)\)")


def iceberg_schema(schema: TableSchema) -> dict[str, Any]:
    """The Iceberg schema of a schema version."""
    return {"type": "struct", "schema-id": schema.id, "fields": _fields(schema.fields)}


def partition_spec(schema: TableSchema) -> list[dict[str, Any]]:
    """The fields of the partition spec: every partition column as it is."""
    return [
        {"name": field.name, "transform": "identity", "source-id": field.id, "field-id": FIRST_PARTITION_ID + place}
        for place, field in enumerate(schema.partition_fields)
    ]


def check_published(schema: TableSchema) -> None:
    """InvalidError for a table that asks to be published and cannot be."""
    options = TableOptions(schema.options)
    storage = options.get(ICEBERG_STORAGE)
    if storage == "disabled":
        return
    if not publishes_iceberg(schema.options):
        raise InvalidError(
            f"option '{ICEBERG_STORAGE.name}': {storage} is not published to; expected table-location, hadoop-catalog or "
            "rest-catalog"
        )
    if options.get(DELETION_VECTORS_ENABLED):
        if options.get(ICEBERG_FORMAT_VERSION) < _VECTORS_SINCE:
            raise _vectors_unseen(ICEBERG_FORMAT_VERSION.name, str(_VECTORS_SINCE))
        if not options.get(DELETION_VECTORS_BITMAP64):
            raise _vectors_unseen(DELETION_VECTORS_BITMAP64.name, "true")
    keyed = bool(schema.primary_keys)
    levels = options.get(FILE_FORMAT_PER_LEVEL)
    default = options.get(FILE_FORMAT)
    others = {text for level, text in levels.items() if text != "parquet" and not (keyed and level == 0)}
    if default != "parquet":
        others.add(default)
    if others:
        raise InvalidError(
            f"a table with data files of the format {sorted(others)[0]} is not published as an Iceberg table: expected parquet"
        )
    iceberg_schema(schema)


def _vectors_unseen(option: str, expected: str) -> InvalidError:
    return InvalidError(
        f"a table with '{DELETION_VECTORS_ENABLED.name}' is published as an Iceberg table only with '{option}' = '{expected}': "
        "elsewhere its readers would see deleted rows"
    )


def check_readable_change(old: TableSchema, new: TableSchema) -> None:
    """InvalidError where a published table would get a type as which Iceberg's readers cannot read its older files."""
    if publishes_iceberg(old.options) and publishes_iceberg(new.options):
        unreadable = unreadable_column(old, new)
        if unreadable is not None:
            raise InvalidError(
                f"{unreadable}, which Iceberg's readers cannot do, and the table is published to them "
                f"('{ICEBERG_STORAGE.name}')"
            )


def unreadable_column(old: TableSchema, new: TableSchema) -> str | None:
    """What an Iceberg reader of the new schema cannot do with files of the old one; None where it can read them."""
    before = {field["id"]: field for field in _fields(old.fields)}
    for field in _fields(new.fields):
        known = before.get(field["id"])
        if known is not None and not _reads(known["type"], field["type"]):
            return f"column {field['name']!r} would have to be read as {_short(field['type'])} from {_short(known['type'])}"
    return None


def column_types(fields: Sequence[Mapping[str, Any]]) -> dict[int, Any]:
    """The types of an Iceberg schema's columns by their ids."""
    return {int(field["id"]): field["type"] for field in fields}


def iceberg_type(data_type: DataType, owner: int, depth: int, name: str) -> Any:
    """The Iceberg type; `owner` is the id of the column around it and `depth` how deep in that it lies."""
    match data_type:
        case Atomic():
            return _atomic(data_type, name)
        case Array(element):
            return {
                "type": "list",
                "element-id": element_id(owner, depth + 1),
                "element-required": not element.nullable,
                "element": iceberg_type(element, owner, depth + 1, name),
            }
        case Map(key, value):
            return {
                "type": "map",
                "key-id": key_id(owner, depth + 1),
                "key": iceberg_type(key, owner, depth + 1, name),
                "value-id": element_id(owner, depth + 1),
                "value-required": not value.nullable,
                "value": iceberg_type(value, owner, depth + 1, name),
            }
        case Row(fields):
            return {"type": "struct", "fields": _fields(fields, f"{name}.")}
        case _:
            raise _no_type(name, data_type)


def _fields(fields: Sequence[Field], prefix: str = "") -> list[dict[str, Any]]:
    found = []
    for field in fields:
        made = {
            "id": field.id,
            "name": field.name,
            "required": not field.type.nullable,
            "type": iceberg_type(field.type, field.id, 0, f"{prefix}{field.name}"),
        }
        found.append(made if field.description is None else {**made, "doc": field.description})
    return found


def _atomic(data_type: Atomic, name: str) -> str:
    kind = data_type.kind
    if kind in _PLAIN:
        return _PLAIN[kind]
    if kind in STRINGS:
        return "string"
    if kind in BINARIES:
        return "binary"
    if kind is Kind.DECIMAL:
        return f"decimal({data_type.precision}, {data_type.scale})"
    if kind in _TIMES and _LEAST_PRECISION <= data_type.precision <= _MOST_PRECISION:
        return _TIMES[kind]
    raise _no_type(name, data_type)


def _no_type(name: str, data_type: DataType) -> InvalidError:
    return InvalidError(
        f"column {name!r}: {data_type} has no type in the Iceberg format that is published ('{ICEBERG_STORAGE.name}')"
    )


def _reads(old: Any, new: Any) -> bool:
    """Whether values of one Iceberg type are read as another."""
    if isinstance(old, str) or isinstance(new, str):
        return old == new or (isinstance(old, str) and isinstance(new, str) and _is_promoted(old, new))
    if old["type"] != new["type"]:
        return False
    if old["type"] == "list":
        return _reads(old["element"], new["element"])
    if old["type"] == "map":
        return _reads(old["key"], new["key"]) and _reads(old["value"], new["value"])
    before = {field["id"]: field["type"] for field in old["fields"]}
    return all(_reads(before.get(field["id"], field["type"]), field["type"]) for field in new["fields"])


def _is_promoted(old: str, new: str) -> bool:
    if (old, new) in _PROMOTED:
        return True
    digits, wider = _DECIMAL.fullmatch(old), _DECIMAL.fullmatch(new)
    return digits is not None and wider is not None and digits[2] == wider[2] and int(digits[1]) <= int(wider[1])


def _short(found: Any) -> str:
    return found if isinstance(found, str) else str(found["type"])
