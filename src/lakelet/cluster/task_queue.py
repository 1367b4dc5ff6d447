"""A queue of work that any node may do, each piece once. What is lost in it is planned again: it holds nothing of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class TaskQueue(Protocol):
    """Tasks as bytes; used on the event loop alone."""

    async def offer(self, tasks: Sequence[bytes], seconds: float) -> bool:
        """Have other nodes do these tasks, if they begin within some time; whether they were taken, all or none."""
        ...

    async def take(self) -> bytes | None:
        """A task that nobody else has, None where there is none."""
        ...
