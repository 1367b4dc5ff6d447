"""The DuckDB type of a column in queries, whichever reader reads its file.

TIMESTAMP up to microseconds is DuckDB's TIMESTAMP, finer ones TIMESTAMP_NS; with local time zone they are TIMESTAMPTZ. A MULTISET
is a MAP to INTEGER, as it is stored.
"""

from __future__ import annotations

from lakelet.model.types import FLOATS, TIMESTAMPS, Array, Atomic, DataType, Kind, Map, Multiset, Row
from lakelet.sql.lexer.quotes import quoted

_MICRO = 6
_NAMES = {
    Kind.BOOLEAN: "BOOLEAN",
    Kind.TINYINT: "TINYINT",
    Kind.SMALLINT: "SMALLINT",
    Kind.INT: "INTEGER",
    Kind.BIGINT: "BIGINT",
    Kind.FLOAT: "FLOAT",
    Kind.DOUBLE: "DOUBLE",
    Kind.CHAR: "VARCHAR",
    Kind.VARCHAR: "VARCHAR",
    Kind.BINARY: "BLOB",
    Kind.VARBINARY: "BLOB",
    Kind.DATE: "DATE",
    Kind.TIME: "TIME",
}


def duck_type(data_type: DataType) -> str:
    """The name of a type in DuckDB's SQL."""
    match data_type:
        case Array(element):
            return f"{duck_type(element)}[]"
        case Map(key, value):
            return f"MAP({duck_type(key)}, {duck_type(value)})"
        case Multiset(element):
            return f"MAP({duck_type(element)}, INTEGER)"
        case Row(fields):
            inner = ", ".join(f"{quoted(field.name)} {duck_type(field.type)}" for field in fields)
            return f"STRUCT({inner})"
        case Atomic(Kind.DECIMAL, precision, scale):
            return f"DECIMAL({precision}, {scale})"
        case Atomic(Kind.TIMESTAMP, precision):
            return "TIMESTAMP" if precision <= _MICRO else "TIMESTAMP_NS"
        case Atomic(Kind.TIMESTAMP_LTZ, precision):
            return "TIMESTAMPTZ" if precision <= _MICRO else "TIMESTAMPTZ_NS"
        case Atomic(kind):
            return _NAMES[kind]


def reads_natively(data_type: DataType) -> bool:
    """Whether DuckDB's Parquet reader returns the same values of a type as ours, whatever engine wrote the file."""
    match data_type:
        case Atomic(kind, precision):
            # Other engines store nanoseconds as INT96.
            return not (kind in TIMESTAMPS and precision > _MICRO)
        case Array(element):
            return reads_natively(element) and not has_floats(element)
        case Map(key, value):
            return reads_natively(key) and reads_natively(value)
        case Multiset():
            return False
        case Row(fields):
            folded = {field.name.lower() for field in fields}
            return len(folded) == len(fields) and all(reads_natively(field.type) for field in fields)


def has_floats(data_type: DataType) -> bool:
    """Whether a type contains floating-point numbers, whose Parquet statistics are unreliable: those of a column or of fields
    of a ROW are shielded one by one (`native_select`), those of an ARRAY cannot be."""
    match data_type:
        case Atomic(kind):
            return kind in FLOATS
        case Row(fields):
            return any(has_floats(field.type) for field in fields)
        case _:
            return False
