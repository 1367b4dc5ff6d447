"""Internal names of a statement's query that collide with no name in the statement or its tables.

    UPDATE t SET a = 1                    ->   __lakelet_row, __lakelet_file, …
    UPDATE t SET __lakelet_row = 1        ->   __lakelet__row, …

A column of a table may have any name, and so may a name in an expression: it never resolves to a column that Lakelet added.
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
        """Names that occur neither in the text of a statement nor among columns in its scope."""
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
        """The number of the clause that applies to a row."""
        return f"{self.prefix}clause"

    @property
    def file(self) -> str:
        """The file of a row of the target."""
        return f"{self.prefix}file"

    @property
    def row(self) -> str:
        """The position of a row of the target in its file."""
        return f"{self.prefix}row"

    @property
    def older(self) -> str:
        """Whether an update would lower the sequence field of a row."""
        return f"{self.prefix}older"

    @property
    def lost(self) -> str:
        """Which value of an update would change nothing."""
        return f"{self.prefix}lost"

    @property
    def taken(self) -> str:
        """Whether a row to insert has the key of an existing row."""
        return f"{self.prefix}taken"

    @property
    def source(self) -> str:
        """A column that is true in joined rows with a source row."""
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
        """The old value of a column of the target, by its index in the schema."""
        return f"{self.prefix}kept_{place}"

    @property
    def chosen_stem(self) -> str:
        """The prefix of the names of choices."""
        return f"{self.prefix}chosen_"

    def chosen(self, kind: str) -> str:
        """The applied clause and its values, among the MERGE clauses for one kind of rows."""
        return f"{self.chosen_stem}{kind.lower()}"

    def value(self, clause: int, place: int) -> str:
        """The value that a clause, by its number, assigns to a column."""
        return f"{self.prefix}value_{clause}_{place}"

    @property
    def value_row(self) -> str:
        """The row of a subquery assigned to several columns."""
        return f"{self.prefix}value_row"
