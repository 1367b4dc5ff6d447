"""Turns: work that one node at a time does, and no more often than it is due.

    begin ── Turn: the work is this node's, for as long as it runs ── end, done: nobody begins it again before it is due
          └─ NotNow: another node does it, or it is not due; or Redis does not answer, then `problem` says so

A turn is a lease that is renewed while the work runs. It saves work that is done twice: what is done in a turn is a commit, which
notices a conflict with another one, so that rows are right also where two nodes believe to have the same turn.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from lakelet.cluster.lease import Lease

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Turn:
    """The right to do some work now. `lost` is set when another node may do it, too: long work stops then."""

    lease: Lease
    lost: threading.Event = field(default_factory=threading.Event, compare=False)

    @property
    def name(self) -> str:
        """The name of the work."""
        return self.lease.name


@dataclass(frozen=True, slots=True)
class NotNow:
    """The work is not this node's: the seconds after which to ask again, and why nobody could tell, where that is so."""

    seconds: float
    problem: str | None = None


class Turns(Protocol):
    """Gives turns; used on the event loop alone."""

    async def begin(self, name: str, *, when_due: bool = True) -> Turn | NotNow:
        """Begin some work; also before it is due, unless `when_due`."""
        ...

    async def end(self, turn: Turn, *, due_in_seconds: float = 0.0) -> None:
        """End it. Where it is done it says in how many seconds it is due again."""
        ...


class BlockingTurns:
    """Turns for threads that are not the event loop's."""

    def __init__(self, turns: Turns, loop: asyncio.AbstractEventLoop) -> None:
        self._turns = turns
        self._loop = loop

    def run(self, name: str, work: Callable[[], _Result]) -> _Result | NotNow:
        """Do some work in a turn; without one where nobody can tell whose it is."""
        found = asyncio.run_coroutine_threadsafe(self._turns.begin(name, when_due=False), self._loop).result()
        if isinstance(found, NotNow):
            return found if found.problem is None else work()
        try:
            return work()
        finally:
            asyncio.run_coroutine_threadsafe(self._turns.end(found), self._loop).result()
