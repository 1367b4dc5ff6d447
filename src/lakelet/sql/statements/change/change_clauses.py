"""What UPDATE, DELETE and MERGE come to, as values: which rows are looked at, and what happens to each.

    UPDATE t SET a = 1 WHERE b         one clause for rows that match: update a
    DELETE FROM t WHERE b              one clause: delete
    MERGE INTO t USING s ON … WHEN …   a clause for each WHEN; the first whose condition holds counts

Whether columns exist is found out on the version of the table that is changed.
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
    ERROR = "ERROR"


class TakesAll(Enum):
    """How a clause takes columns of the source: by name with every column of the target there (`*`), by name as far as they are
    there, in their order, or those of an INSERT that has rows in conflict."""

    EVERY = "*"
    GIVEN = "the columns that INSERT gives values to"
    BY_NAME = "BY NAME"
    BY_POSITION = "BY POSITION"


@dataclass(frozen=True, slots=True)
class Assignment:
    """A column, where it is named, and the expression it gets; None stands for DEFAULT. Of a query that gives values to several
    columns, `part` says which of its columns this one gets, of as many as `parts`. `path` leads to a field of a ROW."""

    column: Word
    value: Span | None
    part: int = 0
    parts: int = 0
    path: tuple[Word, ...] = ()


@dataclass(frozen=True, slots=True)
class Clause:
    """What happens to some rows. An INSERT without named columns has its `values` in the order of the table's; `message` is what
    an ERROR says."""

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
        """All that is worked out for a row."""
        found = [self.condition, self.message, *(self.values or ()), *(one.value for one in self.assignments)]
        return list(dict.fromkeys(span for span in found if span is not None))


@dataclass(frozen=True, slots=True)
class GivenRows:
    """Rows to insert, with all columns of the target, of which the statement gives values to `columns`; with their numbers in a
    column of some name."""

    numbered: Callable[[str], Rows]
    schema: pa.Schema
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """A whole statement. `source` is what stands behind FROM or USING, `on` the condition of a join with it, `using` the columns
    it is joined by instead, `where` what rows of the target must fulfil, `returning` what is given of rows that changed. `given`
    are rows of an INSERT, which are joined by the primary key."""

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
        """Whether rows of the target and the source are paired, and those that have none are there too."""
        return self.on is not None or self.using is not None or self.given is not None

    @property
    def inserts(self) -> bool:
        """Whether it puts rows in that are not there."""
        return any(clause.action is Action.INSERT for clause in self.clauses)
