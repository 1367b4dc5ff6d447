"""Rows as JSON, made by DuckDB itself: one text for each row, ready to be joined.

    {"id":"user-1","timestamp":"2023-10-27T10:00:00Z","payload":{"age":25},"total":170141183460469231731687303715884105727},

    integers of any width     numbers, exact                 DECIMAL          text, with all its digits
    FLOAT, DOUBLE             numbers, or "NaN", "Infinity"   TIMESTAMPTZ      RFC 3339 in UTC
    TIMESTAMP, DATE, TIME     ISO 8601 without a zone        BLOB             base64
    STRUCT, MAP               objects                        LIST, ARRAY      arrays
    JSON                      as it is                       all others       DuckDB's text

A column name that comes again gets `_1`, `_2`, … behind it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import duckdb
import pyarrow as pa

from lakelet.sql.lexer.quotes import literal

# Each row ends with it, so that the bytes of a batch are the rows already joined.
_SEPARATOR = ","
_NUMBERS = frozenset(
    ("tinyint", "smallint", "integer", "bigint", "hugeint", "utinyint", "usmallint", "uinteger", "ubigint", "uhugeint")
)
_FLOATS = frozenset(("float", "double"))
_PLAIN = _NUMBERS | {"boolean", "json", '"null"', "sqlnull", "null"}
_LOCAL_TIMES = frozenset(("timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns"))
_ZONED_TIMES = frozenset(("timestamp with time zone", "timestamptz", "timestamp_tz", "timestamptz_ns"))


def unique_columns(names: Sequence[str]) -> list[str]:
    """The names of a result's columns, each once."""
    taken = set(names)
    found: list[str] = []
    seen: set[str] = set()
    for name in names:
        unique, number = name, 0
        while unique in seen or (number and unique in taken):
            number += 1
            unique = f"{name}_{number}"
        seen.add(unique)
        found.append(unique)
    return found


def json_relation(relation: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    """The rows of a relation as one column of JSON texts, each with a comma behind it."""
    names = unique_columns(relation.columns)
    items = [
        f"{literal(name)}, {_json(f'#{place}', kind)}"
        for place, (name, kind) in enumerate(zip(names, relation.types, strict=True), 1)
    ]
    return relation.project(f"CAST(json_object({', '.join(items)}) AS VARCHAR) || '{_SEPARATOR}' AS rows")


def json_bytes(batch: pa.RecordBatch) -> bytes:
    """The rows of a batch of `json_relation`, joined."""
    column = batch.column(0)
    if not len(column):
        return b""
    texts = column.cast(pa.large_string())
    _, offsets, data = texts.buffers()
    ends = memoryview(offsets).cast("q")
    start, end = ends[texts.offset], ends[texts.offset + len(texts)]
    return memoryview(data)[start:end].tobytes()


def as_array(parts: Iterator[bytes]) -> Iterator[bytes]:
    """Parts of joined rows as one JSON array."""
    before = b"["
    held = b""
    for part in parts:
        if held:
            yield before + held
            before = b""
        held = part
    yield before + held[: -len(_SEPARATOR)] + b"]"


def _json(value: str, kind: Any) -> str:
    """The SQL of a value's JSON."""
    name = str(kind).lower()
    root = str(kind.id).lower()
    if name == "json" or root in _PLAIN:
        return value
    if root in _FLOATS:
        text = f"CASE WHEN isnan({value}) THEN 'NaN' WHEN {value} > 0 THEN 'Infinity' ELSE '-Infinity' END"
        return (
            f"CASE WHEN isfinite({value}) THEN to_json({value}) WHEN {value} IS NULL THEN NULL ELSE to_json({text}) END"
        )
    if root == "blob":
        return f"base64({value})"
    if root in _ZONED_TIMES:
        text = f"replace(CAST(timezone('UTC', {value}) AS VARCHAR), ' ', 'T')"
        return f"CASE WHEN isfinite({value}) THEN {text} || 'Z' ELSE CAST({value} AS VARCHAR) END"
    if root in _LOCAL_TIMES:
        return f"replace(CAST({value} AS VARCHAR), ' ', 'T')"
    if root in ("list", "array"):
        return _list(value, kind)
    if root == "struct":
        return _struct(value, kind)
    if root == "map":
        return _map(value, kind)
    return f"CAST({value} AS VARCHAR)"


def _list(value: str, kind: Any) -> str:
    element = kind.children[0][1]
    inner = _variable(value)
    made = _json(inner, element)
    if made == inner:
        return value
    return f"list_transform({value}, lambda {inner}: {made})"


def _struct(value: str, kind: Any) -> str:
    items = [
        f"{literal(name)}, {_json(f'struct_extract({value}, {literal(name)})', child)}" for name, child in kind.children
    ]
    return f"CASE WHEN {value} IS NULL THEN NULL ELSE json_object({', '.join(items)}) END"


def _map(value: str, kind: Any) -> str:
    inner = _variable(value)
    element = kind.children[1][1]
    entry = f"{{'k': CAST({inner}.key AS VARCHAR), 'v': to_json({_json(f'{inner}.value', element)})}}"
    entries = f"list_transform(map_entries({value}), lambda {inner}: {entry})"
    return f"to_json(map_from_entries({entries}))"


def _variable(value: str) -> str:
    """A name for the parameter of a lambda that no expression around it uses."""
    depth = value.count("lakelet_item_")
    return f"lakelet_item_{depth}"
