"""A second copy of a writer's logs on another machine, as the writer sees it; `service/replicas` has one.

    group ── own log: append ─┬─ own sync ──────┬─ memtable, acknowledged
                              └─ copy: durable ─┘

Every log with rows that are not committed is in the copy, with all groups that were acknowledged. A group is sent once it is in
the own log. Where the copy is lost another one is begun with everything that counts, this group included. Where none can be
begun the group is withdrawn from the own log, and the outcome of its write is unknown: the copy that was lost may have it, and
its holder may commit it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from lakelet.format.wal.wal_group import WalKey


class LogsAdoptedError(Exception):
    """Another node has taken this one for dead, and commits the rows of all logs so far: further rows need a new log."""


@dataclass(frozen=True, slots=True)
class LogPart:
    """The first bytes of a log."""

    number: int
    path: str
    size: int


class LogCopy(Protocol):
    """The copy of one table's logs. `prepare`, `send` and `wait` are called by one thread at a time, in this order."""

    def prepare(self, logs: Callable[[], Sequence[LogPart]]) -> None:
        """See to it that there is a copy, begun with these logs where there was none. UnavailableError, and nothing is done,
        where no other node takes one; LogsAdoptedError where these logs take no further rows."""

    def send(self, log: LogPart, data: bytes) -> None:
        """Begin to write a group behind this part of a log; errors come with `wait`."""

    def wait(self, logs: Callable[[], Sequence[LogPart]]) -> None:
        """Return when the group is durable in the copy, or in another one that was begun with these logs, the group included.
        UnavailableError and LogsAdoptedError as above, but then the group may be in the copy that was lost."""

    def abandon(self) -> None:
        """Begin another copy with the next group: this one has a group that the own log lacks."""

    def committed(self, number: int, keys: Sequence[WalKey]) -> None:
        """The rows of a log are committed, and the names of its writes kept; no error."""

    def close(self, *, all_committed: bool) -> None:
        """The writer ends; no error. The copy is needed no more if all rows are committed."""
