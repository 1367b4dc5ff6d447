"""One query that waits or runs: its clock, how it is interrupted, and its errors in words that are for strangers."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from lakelet.errors import CorruptionError, InternalError, InvalidError, LakeletError, NotFoundError, UnavailableError
from lakelet.service.query.query_limits import QueryLimitError

_LOG = logging.getLogger("lakelet.service.query")
# DuckDB forgets an interrupt that comes between two of its statements, so it is repeated.
_AGAIN_SECONDS = 0.05
_WITH_PATHS = (CorruptionError, InternalError, NotFoundError, UnavailableError)


class QueryCancelledError(InvalidError):
    """A query that was cancelled by a request."""


class Interruptible(Protocol):
    """What runs a query."""

    def interrupt(self) -> None:
        """Interrupt it; any thread may call this."""


class QueryRun:
    """The state of one query, which several threads share: the one that runs it, its clock, and whoever cancels it."""

    def __init__(self, sql: str, request_id: str | None, started: float, seconds: float) -> None:
        self.sql = sql
        self.request_id = request_id
        self.started = started
        self.seconds = seconds
        self._lock = threading.Lock()
        self._engine: Interruptible | None = None
        self._timer: threading.Timer | None = None
        self._reason: LakeletError | None = None
        self._done = False

    def start_clock(self, left: float) -> None:
        """Interrupt the query after so many seconds."""
        late = QueryLimitError(f"the query took longer than {self.seconds:g} seconds")
        with self._lock:
            if self._reason is None:
                self._arm(left, late)

    def attach(self, engine: Interruptible) -> None:
        """Say what is to be interrupted."""
        with self._lock:
            self._engine = engine
        self.check()

    def cancel(self) -> None:
        """Interrupt the query for good."""
        self._stop(QueryCancelledError("the query was cancelled"))

    def check(self) -> None:
        """Raises the reason for which the query is to end, if there is one."""
        if self._reason is not None:
            raise self._reason

    def finish(self) -> bool:
        """Stop the clock; False where it was stopped before."""
        with self._lock:
            first, self._done = not self._done, True
            self._engine = None
            if self._timer is not None:
                self._timer.cancel()
            return first

    @contextmanager
    def errors(self, location: str) -> Iterator[None]:
        """Errors of the query: the reason of an interrupt, and no path of the lake at `location`."""
        try:
            yield
        except LakeletError as error:
            if self._reason is not None:
                raise self._reason from error
            told = _without_paths(error, location)
            if told is error:
                raise
            _LOG.error("query %s: %s", self.request_id, error)
            raise told from error

    def _stop(self, reason: LakeletError) -> None:
        with self._lock:
            if self._done:
                return
            self._reason = self._reason or reason
            if self._engine is not None:
                self._engine.interrupt()
            self._arm(_AGAIN_SECONDS, self._reason)

    def _arm(self, seconds: float, reason: LakeletError) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = threading.Timer(seconds, self._stop, (reason,))
        self._timer.daemon = True
        self._timer.start()


def _without_paths(error: LakeletError, location: str) -> LakeletError:
    """The error without the lake's place, which is not for strangers."""
    kind = next((one for one in _WITH_PATHS if isinstance(error, one)), None)
    text = str(error)
    return error if kind is None or location not in text else kind(text.replace(location.rstrip("/"), "<warehouse>"))
