"""Resolve the new value of each column under the clauses of a statement, on one schema of its target.

    UPDATE SET a = 1        a: written here     all others: kept
    DELETE                  all kept, where rows are deleted by key or returned
    INSERT (a) VALUES (1)   a: written here     all others: their default

Pure: names are resolved, and unknown ones are reported at their position.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lakelet.catalog.names import matching
from lakelet.errors import InvalidError
from lakelet.model.schema import TableSchema
from lakelet.model.types import Field, Row
from lakelet.sink.rows.defaults import LITERALS, ColumnDefaults
from lakelet.sql.lexer.errors import SqlError, nearest
from lakelet.sql.lexer.words import Word
from lakelet.sql.statement import Statement
from lakelet.sql.statements.change.change_clauses import Action, Assignment, Change, Clause, TakesAll
from lakelet.sql.statements.text.internal_names import InternalNames
from lakelet.sql.statements.text.query_text import Span


@dataclass(frozen=True, slots=True)
class Kept:
    """The column keeps its value."""


@dataclass(frozen=True, slots=True)
class Default:
    """The column gets its default."""


@dataclass(frozen=True, slots=True)
class Given:
    """The column gets the inner query's value of this name: an expression of the statement, or a column of the source. For a
    subquery assigned to several columns, it gets `part` of the `parts` of its row."""

    name: str
    written: Span | str
    part: int = 0
    parts: int = 0


@dataclass(frozen=True, slots=True)
class Fields:
    """Some fields of a ROW get values, the others are kept."""

    values: Mapping[str, Value]


Value = Kept | Default | Given | Fields


def givens(value: Value) -> list[Given]:
    """The values of the inner query that a value needs."""
    if isinstance(value, Fields):
        return [one for inner in value.values.values() for one in givens(inner)]
    return [value] if isinstance(value, Given) else []


@dataclass(frozen=True, slots=True)
class ChangeValues:
    """The values of a statement's clauses. `source_columns` are those of the source of a MERGE."""

    statement: Statement
    change: Change
    schema: TableSchema
    names: InternalNames
    defaults: ColumnDefaults = LITERALS
    source_columns: Sequence[str] = ()

    def of(self, number: int) -> dict[str, Value]:
        """The new value of each column under a clause; empty where no new row is needed."""
        clause = self.change.clauses[number]
        match clause.action:
            case Action.UPDATE:
                return {name: Kept() for name in self.schema.names} | self._assigned(number, clause)
            case Action.DELETE if self.schema.primary_keys or self.change.returning is not None:
                return {name: Kept() for name in self.schema.names}
            case Action.INSERT:
                return self._inserted(number, clause)
            case _:
                return {}

    # ------------------------------------------------------------------ UPDATE

    def _assigned(self, number: int, clause: Clause) -> dict[str, Value]:
        keys = self.schema.primary_keys
        if clause.takes_all is not None:
            found = self._from_source(number, clause, clause.takes_all)
            return {name: value for name, value in found.items() if name not in keys}
        values: dict[str, Value] = {}
        for place, one in enumerate(clause.assignments):
            name = self._column(one.column, one.path)
            if name in keys:
                raise self._error(f"column {name!r} is part of the primary key, which cannot be changed", one.column)
            given = self._given(number, place, one)
            values[name] = self._in_row(self.schema.field(name), one, values.get(name), given)
        return values

    def _given(self, number: int, place: int, one: Assignment) -> Value:
        if one.value is None:
            return Default()
        # Columns assigned from one subquery share it.
        return Given(self.names.value(number, place - one.part), one.value, one.part, one.parts)

    def _in_row(self, field: Field, one: Assignment, before: Value | None, given: Value) -> Value:
        """The value of a column after assigning one of its fields, with those assigned before."""
        kind, path = field.type, list(one.path)
        if not path:
            return given
        if isinstance(given, Default):
            raise self._error("a field of a ROW has no default", path[-1])
        if not isinstance(kind, Row):
            raise self._error(f"column {field.name!r} is {kind}, which has no fields", path[0])
        inner = matching(path[0].text, [field.name for field in kind.fields])
        if inner is None:
            hint = nearest(path[0].text, [field.name for field in kind.fields])
            raise self._error(f"{field.name!r} has no field {path[0].text!r}{hint}", path[0])
        known = dict(before.values) if isinstance(before, Fields) else {}
        rest = Assignment(path[0], one.value, path=tuple(path[1:]))
        of_inner = next(found for found in kind.fields if found.name == inner)
        known[inner] = self._in_row(of_inner, rest, known.get(inner), given)
        return Fields(known)

    # ------------------------------------------------------------------ INSERT

    def _inserted(self, number: int, clause: Clause) -> dict[str, Value]:
        if clause.takes_all is not None:
            given = self._from_source(number, clause, clause.takes_all)
            check_defaults(self.schema, self.defaults, given)
            return {name: given.get(name, Default()) for name in self.schema.names}
        if clause.values is not None:
            if len(clause.values) != len(self.schema.names):
                names = ", ".join(self.schema.names)
                raise self._error(
                    f"expected {len(self.schema.names)} values for {names}, found {len(clause.values)}", clause.word
                )
            spans = dict(zip(self.schema.names, clause.values, strict=True))
        else:
            spans = {self._column(one.column): one.value for one in clause.assignments}
        check_defaults(self.schema, self.defaults, spans)
        values: dict[str, Value] = {}
        for place, name in enumerate(self.schema.names):
            span = spans.get(name)
            values[name] = Default() if span is None else Given(self.names.value(number, place), span)
        return values

    # ------------------------------------------------------------------ columns

    def _from_source(self, number: int, clause: Clause, how: TakesAll) -> dict[str, Value]:
        """The source columns, by the target columns that they are assigned to."""
        if how is TakesAll.BY_POSITION:
            if len(self.source_columns) != len(self.schema.names):
                raise self._error(
                    f"expected {len(self.schema.names)} columns of the source, found {len(self.source_columns)}",
                    clause.word,
                )
            pairs = dict(zip(self.schema.names, self.source_columns, strict=True))
        elif how is TakesAll.GIVEN and self.change.given is not None:
            pairs = {name: name for name in self.change.given.columns}
        elif how is TakesAll.BY_NAME:
            pairs = {}
            for column in self.source_columns:
                name = matching(column, self.schema.names)
                if name is None:
                    hint = nearest(column, self.schema.names)
                    raise self._error(f"{self.change.target.shown} has no column {column!r}{hint}", clause.word)
                pairs[name] = column
        else:
            # An update keeps the primary key.
            keys = self.schema.primary_keys if clause.action is Action.UPDATE else ()
            pairs = {name: self._of_source(name, clause) for name in self.schema.names if name not in keys}
        places = {name: place for place, name in enumerate(self.schema.names)}
        return {name: Given(self.names.value(number, places[name]), column) for name, column in pairs.items()}

    def _of_source(self, name: str, clause: Clause) -> str:
        found = matching(name, self.source_columns)
        if found is None:
            hint = nearest(name, self.source_columns)
            raise self._error(f"the source has no column {name!r}, which * needs{hint}", clause.word)
        return found

    def _column(self, word: Word, path: Sequence[Word] = ()) -> str:
        found = matching(word.text, self.schema.names)
        if found is None:
            shown, alias = self.change.target.shown, self.change.target.alias
            hint = nearest(word.text, self.schema.names)
            written = ".".join(one.text for one in (word, *path))
            expected = f"expected a column of {alias}, found {written}: " if path else ""
            raise self._error(f"{expected}{shown} has no column {word.text!r}{hint}", word)
        return found

    def _error(self, message: str, word: Word | None) -> InvalidError:
        return InvalidError(message) if word is None else SqlError(message, self.statement.reader.text, word.start)


def check_defaults(schema: TableSchema, defaults: ColumnDefaults, given: Mapping[str, object]) -> None:
    """InvalidError if a NOT NULL column without a default gets no value."""
    for one in schema.fields:
        if given.get(one.name) is None and not one.type.nullable and not defaults.has(one):
            raise InvalidError(f"column {one.name!r} is NOT NULL and has no default, and needs a value")
