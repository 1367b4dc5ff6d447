"""The event bus: publishes committed changes to the listeners of this process.

    with subscribe(lambda event: print(event)):
        orders.write(rows)                      # Committed(table=…, branch='main', snapshot_id=7, …)

A listener is called in the thread that made the change, after the change is committed, and before the call that made it
returns. Whatever it raises is logged and changes nothing; what interrupts a program from outside (KeyboardInterrupt) is raised
again once all listeners were called. A listener that changes a table itself is not notified of that. Events are delivered at
most once and not stored: for delivery at least once, use a callback in the table's options. Without listeners an event costs
next to nothing.
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
    """The registration of a listener until it is closed; also a context manager."""

    def __init__(self, listener: Listener) -> None:
        self.listener = listener

    def close(self) -> None:
        """Unregister the listener; an event in delivery may still arrive. Idempotent."""
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
    """Register a listener for every change that this process makes from now on."""
    global _subscriptions  # noqa: PLW0603 - as above.
    made = Subscription(listener)
    with _LOCK:
        _subscriptions = (*_subscriptions, made)
    return made


def publish(event: TableEvent) -> None:
    """Notify all listeners of a committed change."""
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
    """Publish StateUnknown where the steps of a change in this block are interrupted."""
    try:
        yield
    except BaseException:
        publish(StateUnknown(table, branch, operation))
        raise
