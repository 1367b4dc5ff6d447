"""Schema files: `schema/schema-N`, one JSON object per version of a table's schema.

    {"version": 3, "id": N,
     "fields": [{"id": 0, "name": "id", "type": "BIGINT NOT NULL", "description"?: "…", "defaultValue"?: "…"}, …],
     "highestFieldId": 1, "partitionKeys": […], "primaryKeys": […], "options": {…}, "comment"?: "…", "timeMillis": …}

An atomic type is text; a nested one is an object: {"type": "ARRAY [NOT NULL]", "element": T}, {"type": "MAP", "key": T,
"value": T}, {"type": "MULTISET", "element": T}, {"type": "ROW", "fields": [field, …]}.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from lakelet.errors import CorruptionError, InvalidError
from lakelet.format.metadata.stored_json import load_json
from lakelet.model.schema import SCHEMA_VERSION, TableSchema
from lakelet.model.type_parser import parse_type
from lakelet.model.types import MAX_DEPTH, Array, Atomic, DataType, Field, Map, Multiset, Row

# A commit decodes the same schema three times. Schemas are values: what is remembered by its bytes is never out of date.
_REMEMBERED = 64


def encode_schema(schema: TableSchema) -> bytes:
    """The bytes of a schema file."""
    value: dict[str, Any] = {
        "version": SCHEMA_VERSION,
        "id": schema.id,
        "fields": [_encode_field(field) for field in schema.fields],
        "highestFieldId": schema.highest_field_id,
        "partitionKeys": list(schema.partition_keys),
        "primaryKeys": list(schema.primary_keys),
        "options": dict(schema.options),
    }
    if schema.comment is not None:
        value["comment"] = schema.comment
    value["timeMillis"] = schema.time_ms
    return json.dumps(value, indent=2, ensure_ascii=False).encode()


@lru_cache(maxsize=_REMEMBERED)
def decode_schema(data: bytes, *, path: str) -> TableSchema:
    """The schema in `data`; errors name `path`."""
    try:
        value = load_json(data)
        version = int(value.get("version", 1))
        if version > SCHEMA_VERSION:
            raise InvalidError(
                f"{path}: schema format version {version} is newer than {SCHEMA_VERSION}, the newest known here"
            )
        options = {str(key): str(text) for key, text in value["options"].items()}
        # Older format versions had other defaults, which their tables still rely on.
        if version <= 1:
            options.setdefault("bucket", "1")
        if version <= 2:
            options.setdefault("file.format", "orc")
        return TableSchema(
            id=int(value["id"]),
            fields=_decode_fields(value["fields"], path),
            highest_field_id=int(value["highestFieldId"]),
            partition_keys=tuple(value["partitionKeys"]),
            primary_keys=tuple(value["primaryKeys"]),
            options=options,
            comment=value.get("comment"),
            time_ms=int(value.get("timeMillis") or 0),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptionError(f"{path}: not a schema file ({type(error).__name__}: {error})") from error


def _encode_field(field: Field) -> dict[str, Any]:
    value: dict[str, Any] = {"id": field.id, "name": field.name, "type": encode_type(field.type)}
    if field.description is not None:
        value["description"] = field.description
    if field.default is not None:
        value["defaultValue"] = field.default
    return value


def _decode_fields(values: list[dict[str, Any]], path: str) -> tuple[Field, ...]:
    try:
        return tuple(_decode_field(value) for value in values)
    except InvalidError as error:
        raise InvalidError(f"{path}: {error}") from error


def _decode_field(value: dict[str, Any], *, depth: int = 1) -> Field:
    data_type = decode_type(value["type"], depth=depth)
    return Field(int(value["id"]), value["name"], data_type, value.get("description"), value.get("defaultValue"))


def encode_type(data_type: DataType) -> str | dict[str, Any]:
    """A type as schema files write it."""
    suffix = "" if data_type.nullable else " NOT NULL"
    match data_type:
        case Array(element):
            return {"type": "ARRAY" + suffix, "element": encode_type(element)}
        case Multiset(element):
            return {"type": "MULTISET" + suffix, "element": encode_type(element)}
        case Map(key, value):
            return {"type": "MAP" + suffix, "key": encode_type(key), "value": encode_type(value)}
        case Row(fields):
            return {"type": "ROW" + suffix, "fields": [_encode_field(field) for field in fields]}
        case Atomic():
            return str(data_type)


def decode_type(value: str | dict[str, Any], *, depth: int = 1) -> DataType:
    """The inverse of `encode_type`."""
    if depth > MAX_DEPTH:
        raise InvalidError(f"expected at most {MAX_DEPTH} types inside one another")
    if isinstance(value, str):
        return parse_type(value)
    inside = depth + 1
    words = value["type"].split()
    nullable = len(words) == 1
    match words[0]:
        case "ARRAY":
            return Array(decode_type(value["element"], depth=inside), nullable)
        case "MULTISET":
            return Multiset(decode_type(value["element"], depth=inside), nullable)
        case "MAP":
            return Map(decode_type(value["key"], depth=inside), decode_type(value["value"], depth=inside), nullable)
        case "ROW":
            return Row(tuple(_decode_field(field, depth=inside) for field in value["fields"]), nullable)
        case other:
            raise InvalidError(f"type {other!r} is not known here")
