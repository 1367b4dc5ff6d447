"""What UPDATE, DELETE and MERGE come to, as values: which rows are looked at, and what happens to each.

    UPDATE t SET a = 1 WHERE b         one clause for rows that match: update a
    DELETE FROM t WHERE b              one clause: delete
    MERGE INTO t USING s ON … WHEN …   a clause for each WHEN; the first whose condition holds counts

Parsing only; whether columns exist is found out on the version of the table that is changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from lakelet.sql.errors import SqlError
from lakelet.sql.statements.query_text import Span
from lakelet.sql.statements.spans import ChangeTarget, read_span
from lakelet.sql.word_reader import WordReader
from lakelet.sql.words import Word


class When(Enum):
    """Which rows a clause is for: those of both sides, of the source only, of the target only."""

    MATCHED = "MATCHED"
    NOT_MATCHED = "NOT MATCHED"
    NOT_MATCHED_BY_SOURCE = "NOT MATCHED BY SOURCE"


class Action(Enum):
    """What a clause does with a row."""

    UPDATE = "UPDATE"
    DELETE = "DELETE"
    INSERT = "INSERT"
    NOTHING = "NOTHING"


@dataclass(frozen=True, slots=True)
class Assignment:
    """A column, where it is named, and the expression it gets; None stands for DEFAULT."""

    column: Word
    value: Span | None


@dataclass(frozen=True, slots=True)
class Clause:
    """What happens to some rows. `takes_all` gives each column the value of the source's column of that name. An INSERT without
    named columns has its `values` in the order of the table's."""

    when: When
    action: Action
    condition: Span | None = None
    assignments: tuple[Assignment, ...] = ()
    takes_all: bool = False
    values: tuple[Span | None, ...] | None = None
    word: Word | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """A whole statement. `source` is what stands behind FROM or USING, `on` the condition of a join with it, `where` what rows of
    the target must fulfil."""

    name: str
    target: ChangeTarget
    clauses: tuple[Clause, ...]
    common: Span | None = None
    source: Span | None = None
    source_alias: str | None = None
    on: Span | None = None
    where: Span | None = None

    @property
    def inserts(self) -> bool:
        """Whether it puts rows in that are not there."""
        return any(clause.action is Action.INSERT for clause in self.clauses)


def read_assignments(reader: WordReader, target: ChangeTarget, *stops: str) -> tuple[Assignment, ...]:
    """Reads `column = expression, …` up to one of these keywords."""
    found = [_read_assignment(reader, target, stops)]
    while reader.accept(","):
        found.append(_read_assignment(reader, target, stops))
    names = [one.column.text.lower() for one in found]
    for place, one in enumerate(found):
        if one.column.text.lower() in names[:place]:
            raise SqlError(f"column {one.column.text!r} is set twice", reader.text, one.column.start)
    return tuple(found)


def read_value(reader: WordReader, *stops: str) -> Span | None:
    """Reads an expression, or DEFAULT, which is None."""
    is_end = reader.peek(1).kind == "end" or reader.peek(1).keyword in (*stops, ")")
    if reader.at("DEFAULT") and is_end:
        reader.take()
        return None
    return read_span(reader, *stops)


def _read_assignment(reader: WordReader, target: ChangeTarget, stops: tuple[str, ...]) -> Assignment:
    column = reader.peek()
    parts = reader.name_parts("a column")
    owner = parts[:-1]
    if owner and [part.lower() for part in owner] not in (
        [target.alias.lower()],
        [part.lower() for part in target.qualifier],
    ):
        raise SqlError(
            f"expected a column of {target.alias}, found {'.'.join(parts)}; of a ROW only the whole can be set",
            reader.text,
            column.start,
        )
    column = reader.words[reader.place - 1]
    reader.expect("=")
    return Assignment(column, read_value(reader, ",", *stops))
