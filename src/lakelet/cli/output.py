"""What commands show: tables for people, JSON for programs, behind one interface."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Protocol

from rich.console import Console
from rich.table import Table as RichTable


class Output(Protocol):
    """Where a command's results go."""

    def rows(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """A table of results."""
        ...

    def values(self, title: str, values: Mapping[str, object]) -> None:
        """Named single results."""
        ...

    def note(self, text: str) -> None:
        """Something for people only."""
        ...

    def error(self, kind: str, message: str) -> None:
        """What went wrong."""
        ...


class ConsoleOutput:
    """Results as a person reads them."""

    def __init__(self) -> None:
        self._console = Console(highlight=False)
        self._errors = Console(stderr=True, highlight=False)

    def rows(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """A drawn table."""
        table = RichTable(title=title, title_justify="left")
        for column in columns:
            table.add_column(column)
        for row in rows:
            table.add_row(*("" if value is None else str(value) for value in row))
        self._console.print(table)

    def values(self, title: str, values: Mapping[str, object]) -> None:
        """A line each."""
        self._console.print(f"[bold]{title}[/bold]")
        for name, value in values.items():
            self._console.print(f"  {name}: {value}")

    def note(self, text: str) -> None:
        """A line, with Rich markup."""
        self._console.print(text)

    def error(self, kind: str, message: str) -> None:
        """On standard error."""
        self._errors.print(f"[bold red]{kind}[/bold red]: ", end="")
        self._errors.print(message, markup=False)


class JsonOutput:
    """One JSON object a result, a line each."""

    def rows(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """An object with the rows as objects."""
        print(json.dumps({"title": title, "rows": [dict(zip(columns, row, strict=True)) for row in rows]}, default=str))

    def values(self, title: str, values: Mapping[str, object]) -> None:
        """An object of the values."""
        print(json.dumps({"title": title, **values}, default=str))

    def note(self, text: str) -> None:
        """Nothing: programs do not read notes."""

    def error(self, kind: str, message: str) -> None:
        """An object on standard error."""
        print(json.dumps({"error": kind, "message": message}), file=sys.stderr)
