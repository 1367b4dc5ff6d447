"""A table as plain Python: what rows are there in every version, whatever files a real table keeps them in.

A column has an identity of its own, and a row maps identities to values, so that renames, drops and re-added names need no
rewriting: a value is looked up by identity and shown in the type the column has by then.
"""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import count
from typing import Any

_identities = count()
Row = dict[int, Any]
Shown = tuple[tuple[str, Any], ...]


@dataclass
class Leaf:
    """A type without children, by its SQL text."""

    text: str


@dataclass
class ListOf:
    """An ARRAY."""

    element: Type


@dataclass
class MapOf:
    """A MAP from STRING."""

    value: Type


@dataclass
class Struct:
    """A ROW, or the columns of the table."""

    columns: list[Column]

    def named(self, name: str) -> Column:
        """The column of that name."""
        return next(column for column in self.columns if column.name == name)

    def names(self) -> list[str]:
        """All names in order."""
        return [column.name for column in self.columns]


Type = Leaf | ListOf | MapOf | Struct


@dataclass
class Column:
    """A column, or a member of a ROW."""

    name: str
    type: Type
    default: Any = None
    identity: int = field(default_factory=lambda: next(_identities))


def type_text(data_type: Type) -> str:
    """The type as `create_table` takes it."""
    match data_type:
        case Leaf(text):
            return text
        case ListOf(element):
            return f"ARRAY<{type_text(element)}>"
        case MapOf(value):
            return f"MAP<STRING, {type_text(value)}>"
        case Struct(columns):
            return f"ROW<{', '.join(f'`{column.name}` {type_text(column.type)}' for column in columns)}>"


def structs(top: Struct) -> Iterator[tuple[tuple[str, ...], Struct]]:
    """Every place that has columns, with its path: the table itself, each ROW, ROWs in arrays and maps."""

    def inside(path: tuple[str, ...], data_type: Type) -> Iterator[tuple[tuple[str, ...], Struct]]:
        match data_type:
            case ListOf(element):
                yield from inside((*path, "element"), element)
            case MapOf(value):
                yield from inside((*path, "value"), value)
            case Struct(columns):
                yield path, data_type
                for column in columns:
                    yield from inside((*path, column.name), column.type)
            case _:
                return

    yield from inside((), top)


def show(value: Any, data_type: Type) -> Any:
    """A value as the table's reader should give it, in a form that can be compared and counted."""
    if value is None:
        return None
    match data_type:
        case ListOf(element):
            return tuple(show(item, element) for item in value)
        case MapOf(item_type):
            return tuple((key, show(item, item_type)) for key, item in value)
        case Struct(columns):
            return tuple((column.name, show(value.get(column.identity), column.type)) for column in columns)
        case Leaf(text):
            return _leaf(value, text)


def _leaf(value: Any, text: str) -> Any:
    if text.startswith(("FLOAT", "DOUBLE")):
        number = float(value)
        return "NaN" if math.isnan(number) else repr(number)
    if text.startswith("DECIMAL"):
        return Decimal(value)
    if text.startswith("TIMESTAMP"):
        return value if value.tzinfo is None else value.astimezone(dt.UTC)
    return value


def plain(value: Any, data_type: Type) -> Any:
    """A value as it is handed to Arrow for writing."""
    if value is None:
        return None
    match data_type:
        case ListOf(element):
            return [plain(item, element) for item in value]
        case MapOf(item_type):
            return [(key, plain(item, item_type)) for key, item in value]
        case Struct(columns):
            return {column.name: plain(value.get(column.identity), column.type) for column in columns}
        case Leaf(text):
            return float(value) if text.startswith(("FLOAT", "DOUBLE")) else value


def found(value: Any, data_type: Type) -> Any:
    """What a reader gave, in the form that `show` makes."""
    if value is None:
        return None
    match data_type:
        case ListOf(element):
            return tuple(found(item, element) for item in value)
        case MapOf(item_type):
            return tuple((key, found(item, item_type)) for key, item in value)
        case Struct(columns):
            return tuple((column.name, found(value[column.name], column.type)) for column in columns)
        case Leaf(text):
            return _leaf(value, text)


@dataclass
class Version:
    """The rows after one commit, and the columns the table had then."""

    rows: list[Row]
    columns: Struct
    time_ms: int

    def shown(self, columns: Struct | None = None, names: Sequence[str] | None = None) -> list[Shown]:
        """The rows in the columns of this version, or in later ones."""
        return shown_rows(self.rows, columns or self.columns, names)


def shown_rows(rows: Sequence[Row], columns: Struct, names: Sequence[str] | None = None) -> list[Shown]:
    """Rows under the names and types of `columns`, or some of them."""
    wanted = columns.columns if names is None else [columns.named(name) for name in names]
    return [tuple((column.name, show(row.get(column.identity), column.type)) for column in wanted) for row in rows]


@dataclass
class TableModel:
    """The columns now, and every version so far. Version N is `versions[N - 1]`."""

    columns: Struct
    partition_keys: list[str]
    versions: list[Version] = field(default_factory=list)

    @property
    def rows(self) -> list[Row]:
        """The rows of the newest version."""
        return self.versions[-1].rows if self.versions else []

    def commit(self, rows: list[Row], time_ms: int) -> None:
        """A new version."""
        self.versions.append(Version(rows, deepcopy(self.columns), time_ms))

    def partition(self, row: Row) -> tuple[Any, ...]:
        """The partition a row belongs to."""
        return tuple(row.get(self.columns.named(key).identity) for key in self.partition_keys)

    def difference(self, before: int, after: int) -> Counter[tuple[str, Shown]]:
        """The changes of the versions (before, after] in today's columns."""
        changes: Counter[tuple[str, Shown]] = Counter()
        for number in range(before + 1, after + 1):
            old = [] if number == 1 else self.versions[number - 2].shown(self.columns)
            gone, come = (
                Counter(map(unsigned, old)),
                Counter(map(unsigned, self.versions[number - 1].shown(self.columns))),
            )
            for kind, rows in (("-D", gone - come), ("+I", come - gone)):
                changes.update({(kind, row): times for row, times in rows.items()})
        return changes


def unsigned(value: Any) -> Any:
    """A shown value in which -0.0 is 0.0: comparing rows does not tell them apart."""
    if isinstance(value, tuple):
        return tuple(unsigned(item) for item in value)
    return "0.0" if value == "-0.0" else value


@dataclass(frozen=True)
class Condition:
    """A condition as SQL text and as Python: True, False, or None for unknown."""

    sql: str
    test: Callable[[Row], bool | None]

    def keeps(self, row: Row) -> bool:
        """Whether a filter keeps the row."""
        return self.test(row) is True
