"""Conversions of values read from CSV and JSON files, so that `import` reads what `export` writes.

Bytes are hex digits, nested values in CSV are JSON; everything else is read by DuckDB as its type. Pure functions from a type to
the type that a column of the file is read as, and to the SQL that converts it.
"""

from __future__ import annotations

from lakelet.model.types import BINARIES, Array, Atomic, DataType, Kind, Map, Multiset, Row, string
from lakelet.sql.engine.duck_types import duck_type
from lakelet.sql.lexer.quotes import quoted


def read_type(data_type: DataType, *, csv: bool) -> str:
    """The DuckDB type that a column of the file is read as."""
    return "VARCHAR" if csv and not isinstance(data_type, Atomic) else duck_type(_with_text(data_type))


def value_sql(name: str, data_type: DataType, *, csv: bool) -> str:
    """SQL for the value of a column that was read."""
    column = quoted(name)
    if csv and not isinstance(data_type, Atomic):
        column = f"CAST(CAST({column} AS JSON) AS {duck_type(_with_text(data_type))})"
    return _with_bytes(column, data_type, depth=0)


def _with_text(data_type: DataType) -> DataType:
    """The type with text instead of bytes."""
    match data_type:
        case Array(element):
            return Array(_with_text(element))
        case Map(key, value):
            return Map(_with_text(key), _with_text(value))
        case Multiset(element):
            return Map(_with_text(element), Atomic(Kind.INT))
        case Row(fields):
            return Row(tuple(type(field)(field.id, field.name, _with_text(field.type)) for field in fields))
        case Atomic(kind):
            return string() if kind in BINARIES else data_type


def _with_bytes(value: str, data_type: DataType, *, depth: int) -> str:
    """SQL that turns the texts inside of a value into bytes."""
    if not _has_bytes(data_type):
        return value
    one = f"x{depth}"
    match data_type:
        case Array(element):
            return f"list_transform({value}, lambda {one}: {_with_bytes(one, element, depth=depth + 1)})"
        case Map(key, item):
            return _map_sql(value, key, item, depth)
        case Multiset(element):
            return _map_sql(value, element, Atomic(Kind.INT), depth)
        case Row(fields):
            # Through a list, so that a long expression is written once.
            members = ", ".join(
                f"{quoted(field.name)} := {_with_bytes(f'{one}.{quoted(field.name)}', field.type, depth=depth + 1)}"
                for field in fields
            )
            packed = f"CASE WHEN {one} IS NULL THEN NULL ELSE struct_pack({members}) END"
            return f"list_transform([{value}], lambda {one}: {packed})[1]"
        case _:
            return f"unhex({value})"


def _map_sql(value: str, key: DataType, item: DataType, depth: int) -> str:
    one = f"x{depth}"
    keys, items = _with_bytes(f"{one}.key", key, depth=depth + 1), _with_bytes(f"{one}.value", item, depth=depth + 1)
    pairs = f"list_transform(map_entries({value}), lambda {one}: struct_pack(k := {keys}, v := {items}))"
    return f"map_from_entries({pairs})"


def _has_bytes(data_type: DataType) -> bool:
    match data_type:
        case Array(element) | Multiset(element):
            return _has_bytes(element)
        case Map(key, value):
            return _has_bytes(key) or _has_bytes(value)
        case Row(fields):
            return any(_has_bytes(field.type) for field in fields)
        case Atomic(kind):
            return kind in BINARIES
