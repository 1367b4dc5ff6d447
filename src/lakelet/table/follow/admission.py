"""How far the next batch of a stream goes: a pure function of the position, the versions after it and the limits.

    position ─ versions with the costs of their units ─ limits ──► the next position

At least one unit is admitted, so that a stream advances however low its limits are. Versions are taken from an iterator and only
as far as the limits allow, for the costs of each are read from its manifests.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lakelet.table.follow.offset import StreamOffset
from lakelet.table.read.change_unit import Cost


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """The most that one batch reads, and the least that is worth one: fewer than `min_rows` wait, but no longer than
    `max_delay_ms`."""

    max_files: int | None = None
    max_bytes: int | None = None
    max_rows: int | None = None
    min_rows: int | None = None
    max_delay_ms: int | None = None

    @property
    def bounds(self) -> bool:
        """Whether a batch may end before the newest version."""
        return any(limit is not None for limit in (self.max_files, self.max_bytes, self.max_rows))

    def admits(self, cost: Cost) -> bool:
        """Whether this much may be read in one batch."""
        pairs = ((self.max_files, cost.files), (self.max_bytes, cost.size), (self.max_rows, cost.rows))
        return all(limit is None or value <= limit for limit, value in pairs)

    def waits(self, rows: int, waited_ms: int) -> bool:
        """Whether these rows are too few for a batch as yet."""
        if self.min_rows is None or rows >= self.min_rows:
            return False
        return self.max_delay_ms is None or waited_ms < self.max_delay_ms


NO_LIMITS = ReadLimits()


@dataclass(frozen=True, slots=True)
class Version:
    """A version as far as admission needs it: where its whole is read, and what each of its units costs."""

    whole: StreamOffset
    costs: tuple[Cost, ...]

    def part(self, count: int) -> StreamOffset:
        """The position after some of its units."""
        whole = self.whole
        if count == len(self.costs):
            return whole
        return StreamOffset(
            whole.snapshot, count, len(self.costs), whole.initial, whole.since_ms, whole.mark, whole.table, whole.anew
        )


def admitted(position: StreamOffset, versions: Iterable[Version], limits: ReadLimits) -> StreamOffset:
    """The end of the next batch; the position itself where there is no version to read.

    The first version is the one that the position is in, where it is in the middle of one. Versions without units are passed
    over free of charge.
    """
    total = Cost()
    for version in versions:
        within = version.whole.snapshot == position.snapshot and position.index is not None
        start = position.index if within and position.index is not None else 0
        for number in range(start, len(version.costs)):
            following = total + version.costs[number]
            if total != Cost() and not limits.admits(following):
                return version.part(number) if number else position
            total = following
            position = version.part(number + 1)
        position = version.whole
    return position


def pending_rows(position: StreamOffset, versions: Iterable[Version], enough: int) -> int:
    """The rows in the units after a position, counted until there are `enough`."""
    rows = 0
    for version in versions:
        start = (position.index or 0) if version.whole.snapshot == position.snapshot else 0
        rows += sum(cost.rows for cost in version.costs[start:])
        if rows >= enough:
            break
    return rows
