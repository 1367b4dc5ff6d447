"""The protocol of merge engines: engines that select a row of a key, and engines that fold all rows of a key into one.

    select    the result is one of the rows as it is, named by its number     deduplicate, first-row
    fold      the result is computed from all rows of the key, by columns     partial-update, aggregation

A select engine looks at keys, versions, sequence numbers and kinds only, so that values are neither read nor moved before the
winner is known, and readers that know row positions (DuckDB, Spark, deletion vectors) can leave superseded rows out by
themselves. A fold engine needs values: it gets whole columns of many keys at once (`KeyGroups`) and says which columns a
result depends on.

Engines are frozen values, derived from a table's schema by `table_engine` and picklable, so that executors merge like the
driver. What all engines share is not theirs: the order of the rows of a key (`sequence.field`, then the sequence number),
`ignore-delete`, and the removal of results that are retracts are those of `MergeSpec` and of the merge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import pyarrow as pa

from lakelet.errors import InvalidError
from lakelet.lsm.engine.key_groups import KeyGroups
from lakelet.model.row_arrays import Kinds


@dataclass(frozen=True, slots=True)
class Shortcuts:
    """The optimisations that a merge engine allows.

    `positions`: superseded rows are found by their positions, from keys alone; other engines read the files and leave them
    out, deletion vectors mark them. `value_pruning`: files of a section are pruned from a scan where no file of the section
    has a row that matches a condition on values.
    """

    positions: bool
    value_pruning: bool


@dataclass(frozen=True, slots=True)
class SelectEngine:
    """Keeps one row of each key: the newest, or with `keeps_first` the oldest, which no retract deletes."""

    name: str
    keeps_first: bool = False

    @property
    def shortcuts(self) -> Shortcuts:
        """All of them: no value changes in a merge."""
        return Shortcuts(positions=True, value_pruning=True)

    def columns_for(self, wanted: Sequence[str]) -> tuple[str, ...]:
        """The columns to read for these: themselves."""
        return tuple(wanted)

    def check_kinds(self, kinds: Kinds) -> None:
        """InvalidError for kinds of written rows that the engine cannot merge."""
        if self.keeps_first and (kinds & 1).any():
            raise InvalidError(
                f"row {int((kinds & 1).argmax())} takes a row away, but the table keeps the first row of each key "
                f"('merge-engine' = '{self.name}'); with 'ignore-delete' = 'true' such rows are dropped"
            )


@dataclass(frozen=True, slots=True)
class Folded:
    """The result of a fold: for each key a value of every requested column, and its kind; no `kinds` where all are inserts."""

    columns: tuple[pa.Array, ...]
    kinds: Kinds | None = None


class FoldEngine(Protocol):
    """Computes the row of each key from all of its rows. A frozen, picklable value.

    Folding is associative: buffers, spills, compactions and readers fold some rows of a key first and the results again, in
    the same order. A single row that is no retract folds to itself, so that files of one run are read as they are. The sequence
    number of a result is that of the newest row, its key that of all of them; the engine computes neither.
    """

    @property
    def name(self) -> str:
        """The value of `merge-engine`."""

    @property
    def shortcuts(self) -> Shortcuts:
        """The optimisations that the engine allows: `NO_SHORTCUTS` by default."""

    def columns_for(self, wanted: Sequence[str]) -> tuple[str, ...]:
        """The columns that results in these columns depend on, such as the sequence columns of a group. With none wanted, those
        that decide whether there is a row at all."""

    def check_kinds(self, kinds: Kinds) -> None:
        """InvalidError for kinds of written rows that the engine cannot merge."""

    def fold(self, groups: KeyGroups, columns: Sequence[str]) -> Folded:
        """One row for each key, in these columns, in the types that they have in `groups`. No column of the key is among them.

        A result of a retract kind deletes the key: it is kept where older rows may exist below, and dropped by reads.
        """


MergeEngine: TypeAlias = SelectEngine | FoldEngine

DEDUPLICATE = SelectEngine("deduplicate")
FIRST_ROW = SelectEngine("first-row", keeps_first=True)
NO_SHORTCUTS = Shortcuts(positions=False, value_pruning=False)
"""Those of fold engines: a superseded row still counts in the result, and a result may match where no row does."""
