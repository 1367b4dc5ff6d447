"""Run tasks in threads, all or none of which take effect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def run_all_or_nothing(
    tasks: Sequence[T], do: Callable[[T], R], *, threads: int, undo: Callable[[Sequence[R]], object]
) -> list[R]:
    """The results of the tasks, in their order. When one fails, running ones are awaited, and all that are done are undone."""
    if not tasks:
        return []
    with ThreadPoolExecutor(max(1, min(threads, len(tasks))), "lakelet-compact") as pool:
        futures = [pool.submit(do, task) for task in tasks]
        try:
            return [future.result() for future in futures]
        except BaseException:
            for future in futures:
                future.cancel()
            pool.shutdown(wait=True)
            undo([f.result() for f in futures if f.done() and not f.cancelled() and f.exception() is None])
            raise
