"""The output of commands: text for people, JSON for programs, behind one interface.

All output goes through here, so that every command has both forms. Rich is loaded only where something is coloured or drawn.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from lakelet.cli.output.text_table import drawn_table, shown_text

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

_RED, _BOLD, _PLAIN = "\x1b[1;31m", "\x1b[1m", "\x1b[0m"


class Output(Protocol):
    """The output of a command."""

    # Whether a program reads the results, so that bars and pictures are omitted.
    for_programs: bool

    def rows(self, title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """A table of results."""
        ...

    def values(self, title: str, values: Mapping[str, object]) -> None:
        """Named single results."""
        ...

    def note(self, text: str) -> None:
        """A message for people only, in Rich markup."""
        ...

    def picture(self, picture: RenderableType) -> None:
        """A drawing for people only."""
        ...

    def error(self, kind: str, message: str, more: Mapping[str, object] | None = None) -> None:
        """An error; `more` is its location, for programs."""
        ...


class ConsoleOutput:
    """Output for people, as text."""

    for_programs = False

    def rows(self, title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """A drawn table."""
        listed = [tuple(row) for row in rows]
        numeric = [
            bool(listed) and all(isinstance(value, int | float) or value is None for value in cells)
            for cells in zip(*listed, strict=True)
        ]
        texts = (["" if value is None else str(value) for value in row] for row in listed)
        print(_bold(title))
        for line in drawn_table(columns, texts, numeric=numeric, width=terminal_width(), bold=in_colour(sys.stdout)):
            print(line)

    def values(self, title: str, values: Mapping[str, object]) -> None:
        """One line per value."""
        print(_bold(title))
        for name, value in values.items():
            print(f"  {name}: {'' if value is None else shown_text(str(value))}")

    def note(self, text: str) -> None:
        """A line, with Rich markup."""
        console().print(text)

    def picture(self, picture: RenderableType) -> None:
        """Printed by Rich."""
        console().print(picture)

    def error(self, kind: str, message: str, more: Mapping[str, object] | None = None) -> None:
        """On standard error."""
        shown = f"{_RED}{kind}{_PLAIN}" if in_colour(sys.stderr) else kind
        print(f"{shown}: {message}", file=sys.stderr)


class JsonOutput:
    """Output for programs: one JSON object per result, one per line."""

    for_programs = True

    def rows(self, title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """An object with the rows as objects."""
        listed = [dict(zip(columns, row, strict=True)) for row in rows]
        print(json.dumps({"title": title, "rows": listed}, default=str, ensure_ascii=False))

    def values(self, title: str, values: Mapping[str, object]) -> None:
        """An object of the values."""
        print(json.dumps({"title": title, **values}, default=str, ensure_ascii=False))

    def note(self, text: str) -> None:
        """Nothing: programs do not read notes."""

    def picture(self, picture: RenderableType) -> None:
        """Nothing: programs get the same results as rows."""

    def error(self, kind: str, message: str, more: Mapping[str, object] | None = None) -> None:
        """An object on standard error."""
        said = {"error": kind, "message": message, **(more or {})}
        print(json.dumps(said, default=str, ensure_ascii=False), file=sys.stderr)


def terminal_width() -> int | None:
    """The width of the terminal, or of COLUMNS; None where results go to a file or a pipe."""
    if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit():
        return shutil.get_terminal_size().columns
    return None


def in_colour(stream: object) -> bool:
    """Whether a stream is a terminal and colours are not disabled."""
    is_terminal = getattr(stream, "isatty", None)
    return is_terminal is not None and bool(is_terminal()) and not os.environ.get("NO_COLOR")


def console(*, stderr: bool = False) -> Console:
    """A Rich console; 200 columns wide where there is no terminal."""
    from rich.console import Console  # noqa: PLC0415 - most results are drawn without it.

    stream = sys.stderr if stderr else sys.stdout
    wide = None if stream.isatty() or os.environ.get("COLUMNS") else 200
    return Console(stderr=stderr, highlight=False, width=wide)


def _bold(text: str) -> str:
    return f"{_BOLD}{text}{_PLAIN}" if in_colour(sys.stdout) else text
