"""What an Iceberg table holds, in plain Python: a version is columns and rows, a row is values by field id.

A column that is dropped takes its values out of sight, and one that is added anew under the same name starts empty: both follow
from rows being kept by field id. Partition values are pyiceberg's, computed value by value.
"""

from __future__ import annotations

import datetime as dt
import math
import operator
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st
from pyiceberg.partitioning import PartitionField, PartitionSpec, partition_record_value
from pyiceberg.schema import Schema
from pyiceberg.transforms import VoidTransform

from tests.conformance.iceberg_tables import canonical

Row = Mapping[int, Any]
ID = 1

# What columns hold: few values, so that partitions are met again.
VALUES: dict[str, list[Any]] = {
    "int": [None, 0, 1, 9, -1, -10, 2**31 - 1],
    "long": [None, 0, 1, 9, -1, 2**40, -(2**40)],
    "float": [None, 0.0, 1.5, -2.25, math.inf, math.nan],
    "double": [None, 0.0, 0.1, -2.25, -math.inf, math.nan],
    "decimal(9, 2)": [None, Decimal("0.00"), Decimal("-0.01"), Decimal("12.34"), Decimal("9999999.99")],
    "decimal(18, 2)": [None, Decimal("0.00"), Decimal("-0.01"), Decimal("1234567890123456.78")],
    "string": [None, "", "a", "ab", "abc", "null", "é/=%", "日本語"],
    "date": [None, dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2024, 2, 29), dt.date(2024, 3, 1)],
    "timestamp": [
        None,
        dt.datetime(1969, 12, 31, 23, 59, 59, 999_999),
        dt.datetime(2024, 2, 29, 13),
        dt.datetime(2024, 2, 29, 14, 0, 0, 1),
        dt.datetime(2024, 3, 1),
    ],
    "binary": [None, b"", b"\x00\xff", b"ab", b"abc"],
}
PROMOTIONS = {"int": "long", "float": "double", "decimal(9, 2)": "decimal(18, 2)"}
TRANSFORMS: dict[str, list[str]] = {
    "int": ["identity", "bucket[3]", "truncate[10]", "void"],
    "long": ["identity", "bucket[3]", "truncate[10]"],
    "float": [],
    "double": [],
    "decimal(9, 2)": ["identity", "bucket[3]", "truncate[10]"],
    "decimal(18, 2)": ["identity", "bucket[3]", "truncate[10]"],
    "string": ["identity", "bucket[3]", "truncate[1]", "truncate[2]"],
    "date": ["identity", "year", "month", "day", "bucket[3]"],
    "timestamp": ["year", "month", "day", "hour", "bucket[3]"],
    "binary": ["bucket[3]", "truncate[1]"],
}


@dataclass(frozen=True)
class Column:
    """A column: its field id, its name and the name of its type."""

    id: int
    name: str
    type: str


@dataclass(frozen=True)
class Version:
    """A table's columns and rows at one moment."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...] = ()

    def shown(self, columns: Iterable[Column] | None = None) -> Counter[Any]:
        """The rows in a form to compare, by these columns or by its own."""
        chosen = self.columns if columns is None else tuple(columns)
        return Counter(tuple(canonical(shown(row.get(one.id), one.type)) for one in chosen) for row in self.rows)

    def added(self, rows: Iterable[Row]) -> Version:
        return replace(self, rows=(*self.rows, *rows))


def shown(value: Any, type_: str) -> Any:
    """A value as a column of that type shows it: a float is what four bytes hold."""
    if isinstance(value, float) and type_ == "float":
        return struct.unpack("<f", struct.pack("<f", value))[0]
    return value


def partition_of(row: Row, spec: PartitionSpec, schema: Schema) -> tuple[Any, ...]:
    """The partition that a row belongs to by a spec."""

    def value(field: PartitionField) -> Any:
        # pyiceberg would give the source's own value.
        if isinstance(field.transform, VoidTransform):
            return None
        return canonical(partition_record_value(field, row.get(field.source_id), schema))

    return tuple(map(value, spec.fields))


# ---------------------------------------------------------------- SQL

# How types are written in CREATE and ALTER TABLE.
SQL_TYPES = {"int": "INT", "long": "BIGINT", "timestamp": "TIMESTAMP(6)", "binary": "BYTES"}


def sql_type(type_: str) -> str:
    return SQL_TYPES.get(type_, type_.upper())


def sql_term(column: str, transform: str) -> str:
    """A partition transform as SQL has it: bucket[3] of c is bucket(3, `c`)."""
    name, _, size = transform.rstrip("]").partition("[")
    quoted = f"`{column}`"
    if name == "identity":
        return quoted
    return f"{name}({size}, {quoted})" if size else f"{name}s({quoted})"


def literal(value: Any) -> str:
    """A value as SQL has it."""
    match value:
        case str():
            return "'" + value.replace("'", "''") + "'"
        case dt.datetime():
            return f"TIMESTAMP '{value.isoformat(' ')}'"
        case dt.date():
            return f"DATE '{value.isoformat()}'"
        case bytes():
            return f"X'{value.hex()}'"
    return str(value)


@dataclass(frozen=True)
class Condition:
    """A condition on one column: what SQL says, and whether it is true of a row. What is compared with NULL is not true."""

    column: Column
    operator: str
    value: Any = None

    @property
    def sql(self) -> str:
        value = "" if self.operator.startswith("IS") else f" {literal(self.value)}"
        return f"`{self.column.name}` {self.operator}{value}"

    def holds(self, row: Row) -> bool:
        found = row.get(self.column.id)
        if self.operator == "IS NULL":
            return found is None
        if self.operator == "IS NOT NULL":
            return found is not None
        return found is not None and _COMPARISONS[self.operator](found, self.value)


_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    ">=": operator.ge,
}


def conditions(columns: Iterable[Column]) -> st.SearchStrategy[Condition]:
    """Conditions on these columns. Floats are only asked whether they are NULL: engines differ on NaN."""

    def of(column: Column) -> st.SearchStrategy[Condition]:
        nulls = st.sampled_from([Condition(column, "IS NULL"), Condition(column, "IS NOT NULL")])
        if column.type in ("float", "double"):
            return nulls
        values = list(range(1, 12)) if column.id == ID else [one for one in VALUES[column.type] if one is not None]
        compared = st.builds(Condition, st.just(column), st.sampled_from(sorted(_COMPARISONS)), st.sampled_from(values))
        return compared | compared | compared | nulls

    return st.sampled_from(list(columns)).flatmap(of)
