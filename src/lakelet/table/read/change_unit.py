"""A change unit: the smallest part of a version's changes that a reader takes, in this process or another.

    INITIAL      files of a version that is read whole: every visible row is an insertion
    ADDED        files that a snapshot added to an append table: insertions
    REMOVED      files that a snapshot removed from an append table: deletions
    REPLACED     files of a partition that one snapshot both removed and added: rows that are on both sides are no change
    LOGGED       a changelog file: rows with the kinds that were written
    COMPARED     two versions of a bucket of a primary-key table, compared by key

Units are planned where metadata is read and are picklable, like the splits in them. The same snapshots give the same units in the
same order, whoever plans them, so that a position within a version is a number of units.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from lakelet.model.split import Split

Lane: TypeAlias = tuple[bytes | None, int | None]
"""A bucket of a partition; (partition, None) is a whole partition, (None, None) the whole table."""

WHOLE_TABLE: Lane = (None, None)


class UnitKind(Enum):
    """How the rows of a unit are found."""

    INITIAL = "initial"
    ADDED = "added"
    REMOVED = "removed"
    REPLACED = "replaced"
    LOGGED = "logged"
    COMPARED = "compared"


@dataclass(frozen=True, slots=True)
class Cost:
    """What reading takes, as far as metadata tells."""

    files: int = 0
    size: int = 0
    rows: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.files + other.files, self.size + other.size, self.rows + other.rows)


@dataclass(frozen=True, slots=True)
class ChangeUnit:
    """Files to read together. Changes of one key are in units of one lane, or of lanes of which one contains the other.

    `snapshot_id` is the version that the changes lead to. `before` are the files of the version before, where the kind needs
    them.
    """

    kind: UnitKind
    snapshot_id: int
    lane: Lane
    before: tuple[Split, ...]
    after: tuple[Split, ...]
    cost: Cost
    # Where it is known, the files with all keys whose rows may differ; a compared unit is found by these alone if they are few.
    written: tuple[Split, ...] = ()


def cost_of(splits: Iterable[Split]) -> Cost:
    """The files, bytes and rows of splits."""
    found = Cost()
    for split in splits:
        found += Cost(len(split.files), split.size, split.row_count)
    return found


def total_cost(units: Iterable[ChangeUnit]) -> Cost:
    """What reading all of these units takes."""
    return sum((unit.cost for unit in units), Cost())


def in_lanes(units: Sequence[ChangeUnit]) -> list[list[ChangeUnit]]:
    """Units grouped so that all changes of one key are in one group, in the order of the versions.

    A unit of a whole partition, as rescaling makes it, draws all units of that partition into its group.
    """
    if any(unit.lane == WHOLE_TABLE for unit in units):
        return [list(units)]
    wide = {unit.lane[0] for unit in units if unit.lane[1] is None}
    groups: dict[Lane, list[ChangeUnit]] = {}
    for unit in units:
        partition, bucket = unit.lane
        groups.setdefault((partition, None if partition in wide else bucket), []).append(unit)
    return list(groups.values())
