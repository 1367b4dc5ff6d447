"""Read metadata of many versions ahead of whoever asks for it, in order and within a bound.

A stream that is far behind plans hundreds of small commits. Each takes a few reads that depend on one another, tens of
milliseconds apart on an object store; those of neighbouring commits do not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

AHEAD = 8
"""How many results are computed before they are asked for."""

_Given = TypeVar("_Given")
_Found = TypeVar("_Found")


def read_ahead(read: Callable[[_Given], _Found], given: Iterable[_Given], ahead: int = AHEAD) -> Iterator[_Found]:
    """The results in the order of what is given; an error is raised where its result is asked for.

    `given` is iterated in the caller's thread. One item alone is read there, too.
    """
    items = iter(given)
    first = list(islice(items, 2))
    if len(first) < 2:
        yield from map(read, first)
        return
    pending: deque[Future[_Found]] = deque()
    with ThreadPoolExecutor(ahead, "lakelet-read-ahead") as pool:
        try:
            pending.extend(pool.submit(read, item) for item in first)
            for item in items:
                pending.append(pool.submit(read, item))
                if len(pending) > ahead:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()
