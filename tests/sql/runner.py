"""Runs scripts of SQL statements with the results they must have, in the manner of sqllogictest.

    # what the script is about
    layouts append keyed

    statement ok
    CREATE TABLE t (id INT NOT NULL, v STRING ${key}) ${with}

    statement changes 2
    INSERT INTO t VALUES (1, 'a'), (2, NULL)

    statement error did you mean v
    SELECT w FROM t

    query IT rowsort
    SELECT * FROM t
    ----
    1 | a
    2 | NULL

Parts are separated by empty lines. `statement error` is followed by a pattern that the message must hold, after the kind of the
error if it is named (`statement error NotFoundError …`). The letters of a query are the kinds of its columns: I whole
numbers, R floating point, D decimals, B booleans, T texts, X bytes, C dates and times, N nested values, ? whatever. Rows are
compared in their order, or sorted with `rowsort`. `statement changes` says how many rows INSERT and its like change,
`statement done` what a statement says that it did, `statement shows` a pattern that its rows must hold.

A script runs once for each of its `layouts`, which say what `${key}` and `${with}` are; whatever the layout, the results
are the same. `settle` lets a layout do to the tables what makes it up (a full compaction). `only local` and `only s3` before
a part leave it out elsewhere; alone they do so with all that follows. Time stands still but for a minute before every part, from
2026-01-01 00:00 on, so that commits have known times. With LAKELET_REWRITE=1 the rows of a file are written anew, as the first
layout gives them.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

import lakelet.errors
from lakelet.catalog.lake import Lake
from lakelet.errors import InternalError, LakeletError
from lakelet.sql import SqlResult
from tests.unit.moving_clock import MovingClock

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
_KEY = ", PRIMARY KEY (id) NOT ENFORCED"
_NEVER = "'write-only' = 'true'"
_KINDS = {
    # DuckDB's sums have 128 bits, which Arrow has as decimals.
    "I": lambda kind: pt.is_integer(kind) or (pt.is_decimal(kind) and kind.scale == 0),
    "R": pt.is_floating,
    "D": pt.is_decimal,
    "B": pt.is_boolean,
    "T": lambda kind: pt.is_string(kind) or pt.is_large_string(kind),
    "X": lambda kind: pt.is_binary(kind) or pt.is_large_binary(kind),
    "C": pt.is_temporal,
    "N": pt.is_nested,
    "?": lambda kind: True,
}


@dataclass(frozen=True, slots=True)
class Layout:
    """How the tables of a script are made: what stands for `${key}` and `${with}`, and whether settling compacts them."""

    key: str = ""
    options: str = ""
    compacts: bool = False


LAYOUTS = {
    "plain": Layout(),
    "append": Layout(options=_NEVER),
    "append-orc": Layout(options=f"{_NEVER}, 'file.format' = 'orc'"),
    "append-vectors": Layout(options=f"{_NEVER}, 'deletion-vectors.enabled' = 'true'"),
    "append-compacted": Layout(options="'target-file-size' = '1 mb'", compacts=True),
    "keyed": Layout(_KEY, f"'bucket' = '1', {_NEVER}"),
    "keyed-compacted": Layout(_KEY, "'bucket' = '2'", compacts=True),
    "keyed-dynamic": Layout(_KEY, "'bucket' = '-1', 'dynamic-bucket.target-row-num' = '2'"),
    "keyed-vectors": Layout(_KEY, "'bucket' = '1', 'deletion-vectors.enabled' = 'true'", compacts=True),
    "keyed-avro": Layout(_KEY, f"'bucket' = '1', 'file.format' = 'avro', {_NEVER}"),
}


@dataclass(frozen=True, slots=True)
class Part:
    """One statement of a script, where it stands, and what it must give."""

    line: int
    head: tuple[str, ...]
    text: str
    expected: tuple[str, ...] = ()
    only: str | None = None


class ScriptError(AssertionError):
    """A script that cannot be read, or a statement that did not give what the script says."""


@dataclass(frozen=True, slots=True)
class Script:
    """A file of statements."""

    path: Path
    layouts: tuple[str, ...]
    parts: tuple[Part, ...]


def read_script(path: Path) -> Script:
    """Reads a file; ScriptError where it does not keep the form."""
    layouts: tuple[str, ...] = ("plain",)
    parts = []
    everywhere: str | None = None
    for start, whole in _blocks(path.read_text(encoding="utf-8")):
        has_only = whole[0].startswith("only ")
        only = whole[0].split()[1] if has_only else everywhere
        line, block = (start + 1, whole[1:]) if has_only else (start, whole)
        if not block:
            everywhere = only
            continue
        head = tuple(block[0].split())
        if head[0] == "layouts" and not set(head[1:]) - set(LAYOUTS):
            layouts = head[1:]
        elif head in (("settle",), ("new", "session")) and len(block) == 1:
            parts.append(Part(line, head, "", only=only))
        elif head[0] == "statement" and head[1:2] in (("ok",), ("error",), ("changes",), ("done",), ("shows",)):
            parts.append(Part(line, head, "\n".join(block[1:]), only=only))
        elif head[0] == "query" and "----" in block:
            behind = block.index("----")
            parts.append(Part(line, head, "\n".join(block[1:behind]), tuple(block[behind + 1 :]), only))
        else:
            raise ScriptError(f"{path.name}:{line}: {block[0]} is no part of a script")
    return Script(path, layouts, tuple(parts))


def _blocks(text: str) -> Iterable[tuple[int, list[str]]]:
    """The parts of a file, without comments, and the lines where they begin."""
    start, block = 0, []
    for number, line in enumerate([*text.splitlines(), ""], start=1):
        if line.startswith("#"):
            continue
        if line.strip():
            start = start if block else number
            block.append(line)
        elif block:
            yield start, block
            block = []


class Run:
    """One run of a script on a lake of its own."""

    def __init__(self, script: Script, layout: str, lake: Lake, clock: MovingClock, *, store: str) -> None:
        self.script = script
        self.layout = LAYOUTS[layout]
        self.lake = lake
        self.clock = clock
        self.store = store
        # What each query gave, by its line, to be written into the file.
        self.found: dict[int, list[str]] = {}

    def run(self, *, rewrite: bool = False) -> None:
        """Runs all parts; ScriptError at the first that is not as it should be."""
        self.clock.now = int(START.timestamp() * 1000)
        minute = self.clock.now
        for part in self.script.parts:
            minute += 60_000
            self.clock.now = max(self.clock.now, minute)
            if part.only not in (None, self.store):
                continue
            try:
                self._run(part, rewrite=rewrite)
            except ScriptError as error:
                raise ScriptError(f"{self.script.path.name}:{part.line}: {error}\n{part.text}") from error

    def _run(self, part: Part, *, rewrite: bool) -> None:
        match part.head:
            case ("settle",):
                self._settle()
            case ("new", "session"):
                self.lake = Lake(self.lake._store, clock=self.clock)
            case ("statement", "error", *words):
                self._fail(part, words)
            case ("statement", "changes", count):
                rows = self._result(part).to_arrow().to_pylist()
                if [row["rows"] for row in rows] != [int(count)]:
                    raise ScriptError(f"changed {rows}")
            case ("statement", "done", *words):
                found = self._result(part).rows()[0][0]
                if found != " ".join(words):
                    raise ScriptError(f"said {found!r}")
            case ("statement", "shows", *words):
                found = "\n".join(shown_rows(self._result(part).to_arrow()))
                if not re.search(" ".join(words), found):
                    raise ScriptError(f"showed {found}")
            case ("statement", *_):
                self._result(part).rows()
            case ("query", letters, *sort):
                self._query(part, letters, sort, rewrite=rewrite)
            case _:
                raise ScriptError(f"{' '.join(part.head)} is no part of a script")

    def _settle(self) -> None:
        if self.layout.compacts:
            for database in self.lake.databases():
                for table in self.lake.tables(database):
                    self.lake.table(f"{database}.{table}").compact(full=True)

    def _result(self, part: Part) -> SqlResult:
        options = f"WITH ({self.layout.options})" if self.layout.options else ""
        more = f", {self.layout.options}" if self.layout.options else ""
        text = part.text.replace("${key}", self.layout.key).replace("${with}", options).replace("${options}", more)
        try:
            return self.lake.sql(text)
        except LakeletError as error:
            raise ScriptError(f"{type(error).__name__}: {error}") from error

    def _fail(self, part: Part, words: list[str]) -> None:
        kind, pattern = LakeletError, " ".join(words)
        if words and isinstance(getattr(lakelet.errors, words[0], None), type):
            kind, pattern = getattr(lakelet.errors, words[0]), " ".join(words[1:])
        try:
            rows = self._result(part).rows()
        except (LakeletError, ScriptError) as error:
            cause = error.__cause__ if isinstance(error, ScriptError) else error
            if not isinstance(cause, kind) or isinstance(cause, InternalError) or not re.search(pattern, str(cause)):
                raise ScriptError(f"{type(cause).__name__}: {cause}") from error
            return
        raise ScriptError(f"expected an error, found {rows[:5]}")

    def _query(self, part: Part, letters: str, sort: list[str], *, rewrite: bool) -> None:
        try:
            table = self._result(part).to_arrow()
        except LakeletError as error:
            raise ScriptError(f"{type(error).__name__}: {error}") from error
        kinds = list(table.schema.types)
        if len(letters) != len(kinds) or not all(_KINDS[one](kind) for one, kind in zip(letters, kinds, strict=True)):
            raise ScriptError(f"columns {letters} expected, found {', '.join(str(kind) for kind in kinds)}")
        found = list(shown_rows(table))
        expected = list(part.expected)
        if sort == ["rowsort"]:
            found, expected = sorted(found), sorted(expected)
        self.found[part.line] = found
        if not rewrite and found != expected:
            raise ScriptError("expected\n  " + "\n  ".join(expected) + "\nfound\n  " + "\n  ".join(found))


def shown_rows(table: pa.Table) -> Iterable[str]:
    """The rows of a table as they stand in a script."""
    columns = [column.to_pylist() for column in table.columns]
    return (" | ".join(shown(value) for value in row).rstrip() for row in zip(*columns, strict=True))


def shown(value: Any) -> str:
    """A value as it stands in a script."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case float():
            return "NaN" if math.isnan(value) else repr(value)
        case str():
            return re.sub(r"[\n\t\r\0]", lambda found: repr(found.group())[1:-1], value) or "(empty)"
        case bytes():
            return f"x'{value.hex()}'"
        case Decimal():
            return f"{value:f}"
        case dt.datetime():
            return value.astimezone(dt.UTC).isoformat(" ") if value.tzinfo else value.isoformat(" ")
        case list() | tuple():
            return f"[{', '.join(shown(one) for one in value)}]"
        case Mapping():
            return "{" + ", ".join(f"{key}: {shown(one)}" for key, one in value.items()) + "}"
        case _:
            return str(value)


def rewritten(text: str, found: Mapping[int, list[str]]) -> str:
    """The text of a script with these rows, by the lines where their queries begin."""
    result: list[str] = []
    rows: list[str] | None = None
    skipping = False
    for number, line in enumerate(text.splitlines(), start=1):
        skipping = skipping and bool(line.strip())
        if skipping:
            continue
        rows = found.get(number, rows)
        result.append(line)
        if line == "----" and rows is not None:
            result += rows
            rows, skipping = None, True
    return "\n".join(result) + "\n"
