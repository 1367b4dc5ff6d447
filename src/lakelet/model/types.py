"""The logical types of a table's columns, and their text.

Values only: how a type is stored belongs to `format`, how it looks in Arrow to `model.arrow_types`.
An atomic type has a kind and up to two numbers (`precision` is also the length of CHAR, VARCHAR,
BINARY and VARBINARY). Nested types hold their children; a ROW holds `Field`s, whose ids are never
reused within a table, so that files written under an older schema stay readable.

    INT                     Atomic(Kind.INT)
    DECIMAL(10, 2) NOT NULL Atomic(Kind.DECIMAL, 10, 2, nullable=False)
    ARRAY<STRING>           Array(Atomic(Kind.VARCHAR, 2147483647))
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeVar

MAX_LENGTH = 2**31 - 1
# The maximum nesting depth of types. Everything that walks through a type recurses for each level, and a Parquet file with a
# hundred levels, two for each ARRAY and MAP, is written but cannot be read back.
MAX_DEPTH = 32


class Kind(Enum):
    """The root of an atomic type; the value is its SQL name."""

    BOOLEAN = "BOOLEAN"
    TINYINT = "TINYINT"
    SMALLINT = "SMALLINT"
    INT = "INT"
    BIGINT = "BIGINT"
    FLOAT = "FLOAT"
    DOUBLE = "DOUBLE"
    DECIMAL = "DECIMAL"
    CHAR = "CHAR"
    VARCHAR = "VARCHAR"
    BINARY = "BINARY"
    VARBINARY = "VARBINARY"
    DATE = "DATE"
    TIME = "TIME"
    TIMESTAMP = "TIMESTAMP"
    TIMESTAMP_LTZ = "TIMESTAMP_LTZ"


INTEGERS = (Kind.TINYINT, Kind.SMALLINT, Kind.INT, Kind.BIGINT)
FLOATS = (Kind.FLOAT, Kind.DOUBLE)
STRINGS = (Kind.CHAR, Kind.VARCHAR)
BINARIES = (Kind.BINARY, Kind.VARBINARY)
TIMESTAMPS = (Kind.TIMESTAMP, Kind.TIMESTAMP_LTZ)


@dataclass(frozen=True, slots=True)
class Atomic:
    """A type without children."""

    kind: Kind
    precision: int = 0
    scale: int = 0
    nullable: bool = True

    def __str__(self) -> str:
        return _atomic_text(self) + _not_null(self.nullable)


@dataclass(frozen=True, slots=True)
class Array:
    """A list of elements of one type."""

    element: DataType
    nullable: bool = True

    def __str__(self) -> str:
        return f"ARRAY<{self.element}>" + _not_null(self.nullable)


@dataclass(frozen=True, slots=True)
class Map:
    """Keys to values; keys are unique within one map."""

    key: DataType
    value: DataType
    nullable: bool = True

    def __str__(self) -> str:
        return f"MAP<{self.key}, {self.value}>" + _not_null(self.nullable)


@dataclass(frozen=True, slots=True)
class Multiset:
    """Elements with how often each occurs; stored as a map to INT."""

    element: DataType
    nullable: bool = True

    def __str__(self) -> str:
        return f"MULTISET<{self.element}>" + _not_null(self.nullable)


@dataclass(frozen=True, slots=True)
class Row:
    """A struct of named fields."""

    fields: tuple[Field, ...]
    nullable: bool = True

    def __str__(self) -> str:
        inner = ", ".join(f"`{field.name}` {field.type}" for field in self.fields)
        return f"ROW<{inner}>" + _not_null(self.nullable)


DataType = Atomic | Array | Map | Multiset | Row
AnyType = TypeVar("AnyType", Atomic, Array, Map, Multiset, Row)


@dataclass(frozen=True, slots=True)
class Field:
    """A column, or a member of a ROW. `id` identifies it through renames; `default` is SQL literal text."""

    id: int
    name: str
    type: DataType
    description: str | None = None
    default: str | None = None


def with_nullable(data_type: DataType, nullable: bool) -> DataType:
    """The same type, nullable or not."""
    return data_type if data_type.nullable == nullable else replace(data_type, nullable=nullable)


def string() -> Atomic:
    """STRING, which is VARCHAR of the greatest length."""
    return Atomic(Kind.VARCHAR, MAX_LENGTH)


def _not_null(nullable: bool) -> str:
    return "" if nullable else " NOT NULL"


def _atomic_text(data_type: Atomic) -> str:
    kind = data_type.kind
    if kind is Kind.DECIMAL:
        return f"DECIMAL({data_type.precision}, {data_type.scale})"
    if kind is Kind.VARCHAR and data_type.precision == MAX_LENGTH:
        return "STRING"
    if kind is Kind.VARBINARY and data_type.precision == MAX_LENGTH:
        return "BYTES"
    if kind in STRINGS or kind in BINARIES or kind in (Kind.TIME, Kind.TIMESTAMP):
        return f"{kind.value}({data_type.precision})"
    if kind is Kind.TIMESTAMP_LTZ:
        return f"TIMESTAMP({data_type.precision}) WITH LOCAL TIME ZONE"
    return str(kind.value)


def field_ids(data_type: DataType) -> list[int]:
    """The ids of all fields inside a type, depth first."""
    match data_type:
        case Array(element) | Multiset(element):
            return field_ids(element)
        case Map(key, value):
            return field_ids(key) + field_ids(value)
        case Row(fields):
            return [number for field in fields for number in (field.id, *field_ids(field.type))]
        case _:
            return []


def renumber(data_type: DataType, next_id: int) -> tuple[DataType, int]:
    """The type with fresh ids for its inner fields, counted from `next_id`, and the next free id."""
    match data_type:
        case Array(element):
            element, next_id = renumber(element, next_id)
            return replace(data_type, element=element), next_id
        case Multiset(element):
            element, next_id = renumber(element, next_id)
            return replace(data_type, element=element), next_id
        case Map(key, value):
            key, next_id = renumber(key, next_id)
            value, next_id = renumber(value, next_id)
            return replace(data_type, key=key, value=value), next_id
        case Row(fields):
            # Inside a ROW a field's own id follows those of its members, as Paimon numbers them.
            numbered: list[Field] = []
            for field in fields:
                inner, next_id = renumber(field.type, next_id)
                numbered.append(replace(field, id=next_id, type=inner))
                next_id += 1
            return replace(data_type, fields=tuple(numbered)), next_id
        case _:
            return data_type, next_id
