"""Listeners of this process, and what they are told.

    with subscribe(lambda event: print(event)):
        orders.write(rows)                      # Committed(table=…, branch='main', snapshot_id=7, …)

A listener is called in the thread that made the change, after the change is committed, and before the call that made it
returns. Whatever it raises is logged and changes nothing; what interrupts a program from outside (KeyboardInterrupt) is raised
again once all listeners were told. A listener that changes a table itself is not told of that. Events are told once and kept
nowhere: who must not miss one names a callback in the table's options. Without listeners an event costs next to nothing.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import TypeAlias

from lakelet.events.event import StateUnknown, TableEvent, TableName

_LOG = logging.getLogger(__name__)

Listener: TypeAlias = Callable[[TableEvent], object]


class Subscription:
    """A listener that is told of events until this is closed; also a context manager."""

    def __init__(self, listener: Listener) -> None:
        self.listener = listener

    def close(self) -> None:
        """Ends it; what is being told at the moment may still arrive. To close it twice does nothing."""
        global _subscriptions  # noqa: PLW0603 - replaced as a whole, so that publishers need no lock.
        with _LOCK:
            _subscriptions = tuple(one for one in _subscriptions if one is not self)

    def __enter__(self) -> Subscription:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


_LOCK = threading.Lock()
_subscriptions: tuple[Subscription, ...] = ()
# The listeners that this thread is in.
_TELLING: ContextVar[frozenset[int]] = ContextVar("listeners being told", default=frozenset())


def subscribe(listener: Listener) -> Subscription:
    """Has a listener told of every change that this process makes from now on."""
    global _subscriptions  # noqa: PLW0603 - as above.
    made = Subscription(listener)
    with _LOCK:
        _subscriptions = (*_subscriptions, made)
    return made


def publish(event: TableEvent) -> None:
    """Tells all listeners of a change that is committed."""
    interrupted: BaseException | None = None
    for subscription in _subscriptions:
        telling = _TELLING.get()
        if id(subscription) in telling:
            continue
        token = _TELLING.set(telling | {id(subscription)})
        try:
            subscription.listener(event)
        except BaseException as error:
            _LOG.warning(
                "listener %r failed on %s of %s, which is committed: %s: %s",
                subscription.listener,
                type(event).__name__,
                event.table.identifier,
                type(error).__name__,
                error,
            )
            if not isinstance(error, (Exception, SystemExit)):
                interrupted = error
        finally:
            _TELLING.reset(token)
    if interrupted is not None:
        raise interrupted


@contextmanager
def uncertain(table: TableName, branch: str, operation: str) -> Iterator[None]:
    """Around the steps of a change: where they are stopped in the middle, nobody knows what the table is, which is published."""
    try:
        yield
    except BaseException:
        publish(StateUnknown(table, branch, operation))
        raise
