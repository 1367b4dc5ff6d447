"""What was sent to a churning cluster and what was acknowledged, and whether an answer agrees with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field


class WrongAnswerError(AssertionError):
    """An answer has a row twice, one that was never sent, or lacks one that was acknowledged."""


@dataclass
class Appended:
    """The rows of a table without a primary key: each is sent once."""

    sent: set[str] = field(default_factory=set)
    acknowledged: set[str] = field(default_factory=set)
    # Of which a deletion was sent; of which it was acknowledged.
    deleting: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)

    def due(self) -> tuple[frozenset[str], frozenset[str]]:
        """The rows that every answer to a query that begins now has, and those that none has."""
        return frozenset(self.acknowledged - self.deleting), frozenset(self.deleted)

    def check(
        self, due: tuple[frozenset[str], frozenset[str]], found: Sequence[str], *, is_warned: bool, told: str
    ) -> None:
        """Check the rows that a query found."""
        missed, gone = due
        twice = [id for id, count in Counter(found).items() if count > 1]
        _refuse(twice, "twice", told)
        _refuse(set(found) - self.sent, "though they were never sent", told)
        if is_warned:
            return
        _refuse(set(found) & gone, "though they were deleted", told)
        _refuse(missed - set(found) - self.deleting, "not at all, though they were acknowledged", told)


@dataclass
class Versions:
    """The versions of one key."""

    newest: int | None = None
    # Sent, and not known to be superseded: they may be the newest or come to be.
    open: set[int] = field(default_factory=set)


@dataclass
class Upserted:
    """The rows of a table with a primary key. A key has one writer at a time, so that its versions have an order; None is a
    deletion."""

    keys: dict[str, Versions] = field(default_factory=dict)

    def due(self) -> dict[str, int | None]:
        """The newest acknowledged version of each key."""
        return {id: one.newest for id, one in self.keys.items() if one.newest is not None}

    def check(
        self, due: dict[str, int | None], found: Iterable[tuple[str, int]], *, is_warned: bool, told: str
    ) -> None:
        """Check the rows that a query found: of each key the newest version that was acknowledged before it, or a later one."""
        rows = list(found)
        _refuse([id for id, count in Counter(id for id, _ in rows).items() if count > 1], "twice", told)
        values = dict(rows)
        _refuse(set(values) - self.keys.keys(), "though they were never sent", told)
        if is_warned:
            return
        for id, newest in due.items():
            seen, known = values.get(id), self.keys[id]
            allowed = {newest, *known.open, *range(newest or 0, (known.newest or 0) + 1)}
            if seen not in allowed:
                raise WrongAnswerError(f"{told}: key {id} has version {seen}, expected {newest} or of {known}")


def _refuse(ids: Iterable[str], what: str, told: str) -> None:
    found = sorted(ids)
    if found:
        raise WrongAnswerError(f"{told}: {len(found)} rows are there {what}: {found[:5]}")
