"""The definition of a procedure, and a call of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from lakelet.errors import InvalidError
from lakelet.sql.context import Context
from lakelet.sql.procedures.values import TABLE, PartitionSpecs, ValueKind
from lakelet.table import Table


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument: its name, and aliases used by other engines; optional unless required."""

    name: str
    kind: ValueKind
    meaning: str
    required: bool = False
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Column:
    """A result column of a procedure."""

    name: str
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class Done:
    """The result of a call: a message for people, and rows."""

    message: str
    rows: Sequence[tuple[object, ...]]


@dataclass(frozen=True, slots=True)
class Call:
    """The arguments of a call: those omitted, or given as NULL or empty text, are not among the values."""

    context: Context
    values: Mapping[str, Any]

    def table(self, name: str = "table") -> Table:
        """The table that an argument names, on its branch; NotFoundError names the nearest."""
        return open_table(self.context, self.values[name])

    def text(self, name: str) -> str | None:
        """A text argument; None if it is omitted, as for those below."""
        found: str | None = self.values.get(name)
        return found

    def number(self, name: str) -> int | None:
        """A whole number, or a timestamp in milliseconds."""
        found: int | None = self.values.get(name)
        return found

    def flag(self, name: str) -> bool:
        """A boolean; False if it is omitted."""
        return bool(self.values.get(name, False))

    def length(self, name: str) -> timedelta | None:
        """A duration."""
        found: timedelta | None = self.values.get(name)
        return found

    def age(self, name: str) -> str | timedelta | datetime | None:
        """An age or a timestamp."""
        found: str | timedelta | datetime | None = self.values.get(name)
        return found

    def version(self, name: str) -> int | str | None:
        """A snapshot id or a tag."""
        found: int | str | None = self.values.get(name)
        return found

    def names(self, name: str) -> tuple[str, ...] | None:
        """Several names."""
        found: tuple[str, ...] | None = self.values.get(name)
        return found

    def pattern(self, name: str) -> re.Pattern[str] | None:
        """A regular expression."""
        found: re.Pattern[str] | None = self.values.get(name)
        return found

    def options(self, name: str = "options") -> dict[str, str]:
        """Options of a table."""
        return dict(self.values.get(name, {}))

    def partitions(self, name: str) -> PartitionSpecs | None:
        """Partitions by values of their columns."""
        found: PartitionSpecs | None = self.values.get(name)
        return found

    def partition(self, name: str) -> dict[str, str | None] | None:
        """One partition."""
        found: dict[str, str | None] | None = self.values.get(name)
        return found


@dataclass(frozen=True, slots=True)
class Procedure:
    """A procedure: its meaning, its arguments in positional order, and its result columns."""

    name: str
    meaning: str
    arguments: tuple[Argument, ...]
    returns: tuple[Column, ...]
    run: Callable[[Call], Done]
    aliases: tuple[str, ...] = ()


TABLE_ARGUMENT = Argument("table", TABLE, "The table, `database.table`, with `$branch_x` on a branch.", required=True)


def open_table(context: Context, text: str) -> Table:
    """The table of a name given to a procedure; InvalidError for a system table."""
    name = context.table_name(split_parts(text))
    if name.system is not None:
        raise InvalidError(f"{text!r}: expected a table, found a system table")
    return context.names.open(name)


def split_parts(text: str) -> tuple[str, ...]:
    """The parts of a name, each possibly in backticks or double quotes."""
    return tuple(part.strip().strip('`"') for part in text.split("."))
