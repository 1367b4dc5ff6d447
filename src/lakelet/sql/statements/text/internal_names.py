"""Names that a statement's query uses for itself, none of which the statement or its tables have.

    UPDATE t SET a = 1                    ->   __lakelet_row, __lakelet_file, …
    UPDATE t SET __lakelet_row = 1        ->   __lakelet__row, …

A column of a table may be called anything, and so may a name in an expression: it means what its writer meant, never a column
that Lakelet added.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

_STEM = "__lakelet"


@dataclass(frozen=True, slots=True)
class InternalNames:
    """Names that begin with `prefix`."""

    prefix: str = f"{_STEM}_"

    @classmethod
    def beside(cls, text: str, columns: Iterable[str]) -> InternalNames:
        """Names that occur neither in the text of a statement nor among columns that it may reach without naming them."""
        taken = [text.lower(), *(name.lower() for name in columns)]
        prefix = f"{_STEM}_"
        while any(prefix in one for one in taken):
            prefix += "_"
        return cls(prefix)

    @property
    def target(self) -> str:
        """The relation of the target's rows."""
        return f"{self.prefix}target"

    @property
    def defaults(self) -> str:
        """The relation of one row with the defaults of the target's columns."""
        return f"{self.prefix}defaults"

    @property
    def clause(self) -> str:
        """Which clause a row falls under."""
        return f"{self.prefix}clause"

    @property
    def file(self) -> str:
        """The file of a row of the target."""
        return f"{self.prefix}file"

    @property
    def row(self) -> str:
        """The place of a row of the target in its file."""
        return f"{self.prefix}row"

    @property
    def older(self) -> str:
        """Whether a row would get a lower sequence than it has."""
        return f"{self.prefix}older"

    @property
    def taken(self) -> str:
        """Whether a row to insert has the key of a row that is there."""
        return f"{self.prefix}taken"

    @property
    def source(self) -> str:
        """What is true in rows that have a row of the source."""
        return f"{self.prefix}source"

    @property
    def rows(self) -> str:
        """The relation of rows to insert."""
        return f"{self.prefix}rows"

    @property
    def number(self) -> str:
        """The number of a row to insert."""
        return f"{self.prefix}number"

    def kept(self, place: int) -> str:
        """A column of the target, by its place in the schema, as it is."""
        return f"{self.prefix}kept_{place}"

    @property
    def chosen_stem(self) -> str:
        """What names of choices begin with."""
        return f"{self.prefix}chosen_"

    def chosen(self, kind: str) -> str:
        """The clause that counts, and its values, of those clauses of MERGE that are for one kind of rows."""
        return f"{self.chosen_stem}{kind.lower()}"

    def value(self, clause: int, place: int) -> str:
        """What a clause, by its number, gives to a column."""
        return f"{self.prefix}value_{clause}_{place}"

    @property
    def value_row(self) -> str:
        """The row of a query that gives values to several columns."""
        return f"{self.prefix}value_row"
