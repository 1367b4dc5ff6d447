"""A query assembled from parts of a statement and generated text, which tracks the position of each part.

    UPDATE t SET a = a + ? WHERE b > ?    ->    SELECT (a + $lakelet_1) AS … FROM … WHERE (b > $lakelet_2)

Errors that DuckDB finds in the query are mapped to positions in the statement. Parameters get names, so that parts can be
reordered or left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Self

import pyarrow as pa

from lakelet.catalog.sql_result import SqlResult
from lakelet.errors import InvalidError
from lakelet.sql.context import Context
from lakelet.sql.lexer.errors import SqlError
from lakelet.sql.lexer.word_reader import WordReader
from lakelet.sql.lexer.words import Word
from lakelet.sql.query.relation import Relation
from lakelet.sql.statement import Statement

_POSITIONAL = "lakelet_"
_INTERNAL = "__lakelet"
_CANDIDATES = "Candidate bindings: "
# A function of DuckDB's message and of the parts of the name it is about.
Explain = Callable[[str, tuple[str, ...]], str]


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a statement: its words from `first` up to `behind`."""

    first: int
    behind: int


class QueryText:
    """A query being assembled. It `is_literal` where it references no names. `qualifier` are the parts of a table's full name
    that may qualify columns, `instead` has replacements for words by their positions."""

    def __init__(
        self, statement: Statement, qualifier: Sequence[str] = (), instead: Mapping[int, str] | None = None
    ) -> None:
        self._instead = instead or {}
        self._statement = statement
        self._words = statement.reader.words
        self._qualifier = [part.lower() for part in qualifier]
        self._names = _param_names(statement.reader)
        self._given = _named_params(statement, self._names)
        self._pieces: list[_Piece] = []
        self._used: set[str] = set()
        self.is_literal = False

    def add(self, text: str) -> Self:
        """Adds generated text."""
        self._pieces.append(_Piece(text, None))
        return self

    def add_span(self, span: Span, explain: Explain | None = None) -> Self:
        """Adds a part of the statement; `explain` extends the message of an error in it."""
        text, start = self._statement.reader.text, self._words[span.first].start
        place = span.first
        while place < span.behind:
            word = self._words[place]
            if word.kind == "parameter" or word.start in self._instead:
                new = self._instead.get(word.start) or f"${self._param(word)}"
                self._pieces.append(_Piece(text[start : word.start], start, explain))
                self._pieces.append(_Piece(new, word.start, explain))
                start = word.end
            elif self._is_qualified(place, span.behind):
                # In the query the table has an alias without a database.
                self._pieces.append(_Piece(text[start : word.start], start, explain))
                behind = place + 2 * (len(self._qualifier) - 1)
                start, place = self._words[behind].start, behind
            place += 1
        self._pieces.append(_Piece(text[start : self._words[span.behind - 1].end], start, explain))
        return self

    def of_literals(self) -> Self:
        """Declares that the query references no names, so that none are resolved."""
        self.is_literal = True
        return self

    def followed_by(self, text: str) -> QueryText:
        """The same query followed by generated text."""
        made = copy(self)
        made._pieces, made._used = [*self._pieces, _Piece(text, None)], set(self._used)
        return made

    def inside(self, before: str, after: str) -> QueryText:
        """The same query between generated texts."""
        made = self.followed_by(after)
        made._pieces.insert(0, _Piece(before, None))
        return made

    @property
    def text(self) -> str:
        """The query."""
        return "".join(piece.text for piece in self._pieces)

    def run(self, context: Context, relations: Mapping[str, Relation] | None = None) -> SqlResult:
        """Runs the query; errors point into the statement."""
        params = {name: self._given[name] for name in sorted(self._used)} or None
        try:
            if self.is_literal:
                result = context.literals(self.text)
            else:
                result = context.query(self.text, params, self._statement.frames, relations)
        except SqlError as error:
            raise self._as_written(error) from error
        return SqlResult(result.schema, lambda: self._batches(result), close=result.close)

    def schema(self, context: Context, relations: Mapping[str, Relation] | None = None) -> pa.Schema:
        """The schema of the query; no row is read."""
        with self.inside("SELECT * FROM (", "\n) LIMIT 0").run(context, relations) as result:
            return result.schema

    def _batches(self, result: SqlResult) -> Iterator[pa.RecordBatch]:
        try:
            yield from result.to_batches()
        except SqlError as error:
            raise self._as_written(error) from error

    def error_at(self, byte_place: int, reason: str) -> InvalidError:
        """An error at a byte offset of the query."""
        return self._error(len(self.text.encode()[:byte_place].decode(errors="ignore")), reason)

    def place_of(self, byte_place: int) -> int | None:
        """The position in the statement of a byte offset in the query; None for generated text."""
        place = len(self.text.encode()[:byte_place].decode(errors="ignore"))
        for piece in self._pieces:
            if place < len(piece.text):
                return None if piece.start is None else piece.start + place
            place -= len(piece.text)
        return None

    def _as_written(self, error: SqlError) -> InvalidError:
        """Map an error in the query to the statement; without a position if it is in generated text."""
        lines = self.text.split("\n")
        place = sum(len(line) + 1 for line in lines[: error.line - 1]) + error.column - 1
        return self._error(place, error.reason)

    def _error(self, place: int, told: str) -> InvalidError:
        reason = _without_internal_names(told)
        for piece in self._pieces:
            if place < len(piece.text):
                if piece.start is None:
                    break
                found = piece.start + place
                if piece.explain is not None:
                    reason = piece.explain(reason, self._name_at(found))
                return SqlError(reason, self._statement.reader.text, found)
            place -= len(piece.text)
        return InvalidError(reason)

    def _name_at(self, place: int) -> tuple[str, ...]:
        """The parts of the name at a position of the statement."""
        parts = []
        for word, after in zip_longest(self._words, self._words[1:]):
            if word.start < place:
                continue
            if not word.is_name and word.keyword != ".":
                break
            parts += [word.text] if word.is_name else []
            if word.is_name and (after is None or after.keyword != "."):
                break
        return tuple(parts)

    def _param(self, word: Word) -> str:
        name = self._names[word.start]
        self._used.add(name)
        return name

    def _is_qualified(self, place: int, behind: int) -> bool:
        """Whether [catalog.]database.table.column begins here."""
        parts = len(self._qualifier)
        if parts < 2 or place + 2 * parts >= behind:
            return False
        words = self._words[place : place + 2 * parts + 1]
        if place and self._words[place - 1].keyword == ".":
            return False
        names = [word.text.lower() for word in words[: 2 * parts : 2]]
        dots = all(word.keyword == "." for word in words[1::2])
        return dots and names == self._qualifier and all(word.is_name for word in words[::2])


@dataclass(frozen=True, slots=True)
class _Piece:
    text: str
    start: int | None = field(default=None)
    explain: Explain | None = field(default=None)


def _without_internal_names(reason: str) -> str:
    """DuckDB's message without internal columns among the candidates."""
    head, sign, listed = reason.partition(_CANDIDATES)
    if not sign:
        return reason
    kept = [one for one in listed.split(", ") if _INTERNAL not in one]
    return f"{head}{sign}{', '.join(kept)}" if kept else head.rstrip()


def _param_names(reader: WordReader) -> dict[int, str]:
    """The names of the parameters of a statement, by position."""
    found: dict[int, str] = {}
    marks = 0
    for word in reader.words:
        if word.kind != "parameter":
            continue
        if word.text == "?":
            marks += 1
            found[word.start] = f"{_POSITIONAL}{marks}"
        else:
            name = word.text[1:]
            found[word.start] = f"{_POSITIONAL}{int(name)}" if name.isdigit() else name
    return found


def _named_params(statement: Statement, names: Mapping[int, str]) -> dict[str, object]:
    """The values of parameters by their names in queries; InvalidError for a missing or unused one."""
    params, wanted = statement.params, list(dict.fromkeys(names.values()))
    if isinstance(params, Mapping):
        given = {str(name): value for name, value in params.items()}
    else:
        given = {f"{_POSITIONAL}{place}": value for place, value in enumerate(params or (), 1)}
    missing = [name for name in wanted if name not in given]
    surplus = [name for name in given if name not in wanted]
    if missing or surplus:
        name = (missing or surplus)[0].removeprefix(_POSITIONAL)
        what = "there is no value for it" if missing else "the statement does not name it"
        raise InvalidError(f"parameter {name}: {what}")
    return given
