"""Probe whether a store's conditional PUT is atomic, before a commit relies on it.

Place in the data path: opening an S3 warehouse. Some S3 servers accept `If-None-Match: *` and ignore it, or
check first and write later; on those two commits would both be told that they made `snapshot-N`. Asking one
after the other proves nothing about that, so several creates race on one new object. It owns that test and
its verdict. It never touches the warehouse's own objects.
"""

import threading
from concurrent.futures import ThreadPoolExecutor

from lakelet.errors import InvalidError, UnavailableError
from lakelet.ids import RandomIds
from lakelet.storage.store import ObjectStore

_RACERS = 6
_ROUNDS = 2
_TRIES = 3


def require_conditional_put(store: ObjectStore) -> None:
    """InvalidError when the store lets two creates of one object succeed, or one over an existing object."""
    for _ in range(_ROUNDS):
        for attempt in range(1, _TRIES + 1):
            try:
                _race(store)
                break
            except UnavailableError:
                if attempt == _TRIES:
                    raise


def _race(store: ObjectStore) -> None:
    path = f".lakelet-probe-{RandomIds().uuid()}"
    start = threading.Barrier(_RACERS)

    def create(racer: int) -> bool | None:
        start.wait()
        try:
            return store.put_if_absent(path, b"racer %d" % racer)
        except UnavailableError:
            return None

    try:
        with ThreadPoolExecutor(_RACERS) as pool:
            outcomes = list(pool.map(create, range(_RACERS)))
        winners = [racer for racer, outcome in enumerate(outcomes) if outcome]
        if len(winners) > 1:
            raise _refused(store, f"{len(winners)} of {_RACERS} racing creates of one object succeeded")
        if not winners and None not in outcomes:
            raise _refused(store, "every one of the racing creates of a new object was refused")
        if not winners:
            raise UnavailableError(f"{store.location}/{path}: no racing create was answered with success")
        if store.put_if_absent(path, b"late"):
            raise _refused(store, "a create replaced an object that was there")
        kept = store.get(path)
        if kept != b"racer %d" % winners[0]:
            raise _refused(store, f"the object holds {kept!r}, not what the winner of the race wrote")
    finally:
        store.delete([path])


def _refused(store: ObjectStore, found: str) -> InvalidError:
    return InvalidError(
        f"{store.location}: the store does not honour conditional PUT (If-None-Match: *): {found}. "
        "Concurrent commits would be lost; it cannot hold a warehouse"
    )
