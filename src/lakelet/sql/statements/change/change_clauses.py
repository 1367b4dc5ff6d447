"""The parsed form of UPDATE, DELETE and MERGE: which rows are selected, and the action on each.

    UPDATE t SET a = 1 WHERE b         one clause for rows that match: update a
    DELETE FROM t WHERE b              one clause: delete
    MERGE INTO t USING s ON … WHEN …   a clause for each WHEN; the first whose condition holds applies

Columns are resolved later, on the version of the table that is changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import pyarrow as pa

from lakelet.sql.lexer.words import Word
from lakelet.sql.query.relation import Rows
from lakelet.sql.statements.text.query_text import Span
from lakelet.sql.statements.text.spans import ChangeTarget


class When(Enum):
    """The rows that a clause applies to: matched ones, those of the source only, those of the target only."""

    MATCHED = "MATCHED"
    NOT_MATCHED = "NOT MATCHED"
    NOT_MATCHED_BY_SOURCE = "NOT MATCHED BY SOURCE"


class Action(Enum):
    """The action of a clause on a row."""

    UPDATE = "UPDATE"
    DELETE = "DELETE"
    INSERT = "INSERT"
    NOTHING = "NOTHING"
    ERROR = "ERROR"


class TakesAll(Enum):
    """How a clause maps source columns to target columns: by name with every target column present (`*`), by name for those that
    are present, by position, or the columns of an INSERT … ON CONFLICT."""

    EVERY = "*"
    GIVEN = "the columns that INSERT gives values to"
    BY_NAME = "BY NAME"
    BY_POSITION = "BY POSITION"


@dataclass(frozen=True, slots=True)
class Assignment:
    """An assignment of an expression to a column; None is DEFAULT. For a subquery assigned to several columns, `part` is the
    index of this column in its row and `parts` the number of them. `path` leads to a field of a ROW."""

    column: Word
    value: Span | None
    part: int = 0
    parts: int = 0
    path: tuple[Word, ...] = ()


@dataclass(frozen=True, slots=True)
class Clause:
    """A WHEN clause: an action on the rows that it applies to. An INSERT without named columns has its `values` in the order of
    the table's columns; `message` is that of an ERROR."""

    when: When
    action: Action
    condition: Span | None = None
    assignments: tuple[Assignment, ...] = ()
    takes_all: TakesAll | None = None
    values: tuple[Span | None, ...] | None = None
    message: Span | None = None
    word: Word | None = None

    @property
    def expressions(self) -> list[Span]:
        """All expressions that are evaluated per row."""
        found = [self.condition, self.message, *(self.values or ()), *(one.value for one in self.assignments)]
        return list(dict.fromkeys(span for span in found if span is not None))


@dataclass(frozen=True, slots=True)
class GivenRows:
    """Rows to insert, with all columns of the target, of which the statement gives values to `columns`; `numbered` adds row
    numbers in a column of the given name."""

    numbered: Callable[[str], Rows]
    schema: pa.Schema
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """A parsed statement. `source` is the relation of FROM or USING, `on` the join condition with it, `using` the join columns
    instead, `where` the condition on rows of the target, `returning` the RETURNING list. `given` are the rows of an INSERT, which
    are joined by the primary key."""

    name: str
    target: ChangeTarget
    clauses: tuple[Clause, ...]
    common: Span | None = None
    source: Span | None = None
    source_alias: str | None = None
    on: Span | None = None
    using: Span | None = None
    where: Span | None = None
    returning: Span | None = None
    given: GivenRows | None = None

    @property
    def joins(self) -> bool:
        """Whether target and source are joined with clauses for matched and unmatched rows, as in MERGE and ON CONFLICT."""
        return self.on is not None or self.using is not None or self.given is not None

    @property
    def inserts(self) -> bool:
        """Whether a clause inserts rows."""
        return any(clause.action is Action.INSERT for clause in self.clauses)
