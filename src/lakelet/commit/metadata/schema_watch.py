"""The newest schema of a table for those who need it at every write, and go on with the last one while the store is silent.

    answers    every call looks for a newer schema, so that an ALTER that was finished before it is seen
    is silent  no answer within `patience_seconds`, or an error: calls return the schema that is known, at once; one look at a
               time goes on in the background, and ends this

Rows that are put with an older schema are rows that were put before the ALTER: their flush brings them into the newest one. A
local disk is asked directly, and its errors are raised.
"""

from __future__ import annotations

import threading

from lakelet.commit.metadata.schemas import is_newest_schema, latest_schema
from lakelet.errors import LakeletError, UnavailableError
from lakelet.model.schema import TableSchema
from lakelet.storage.home import TableHome

_PATIENCE_SECONDS = 2.0
_PAUSE_SECONDS = 1.0


class SchemaWatch:
    """The newest schema of one table; for any number of threads."""

    def __init__(self, home: TableHome, *, patience_seconds: float = _PATIENCE_SECONDS) -> None:
        self._home = home
        self._patience = patience_seconds
        self._known: TableSchema | None = None
        self._lock = threading.Lock()
        self._silence: str | None = None
        self._is_looking = False
        self._next_look = 0.0

    @property
    def silence(self) -> str | None:
        """Why the store is taken for silent; None while it answers."""
        return self._silence

    def newest(self) -> TableSchema:
        """The newest schema, or the last one that is known while the store is silent."""
        known = self._known
        if known is None or not self._home.store.is_remote:
            return self._look(known)
        if self._silence is not None:
            self.look_again()
            return self._known or known
        look = _Look()
        threading.Thread(target=self._run, args=(look, known), name="lakelet-schema-look", daemon=True).start()
        if not look.done.wait(self._patience):
            with self._lock:
                if not look.done.is_set():
                    look.is_late = self._is_looking = True
                    self._silence = f"the store has not answered for {self._patience:g} seconds"
            return self._known or known
        if isinstance(look.error, UnavailableError):
            return self._known or known
        if look.error is not None:
            raise look.error
        assert look.found is not None
        return look.found

    def look_again(self) -> None:
        """While the store is silent: have a thread look whether it answers, unless one does or did so just now."""
        known, now = self._known, self._home.clock.monotonic()
        with self._lock:
            if self._silence is None or self._is_looking or now < self._next_look or known is None:
                return
            self._is_looking = True
        look = _Look(is_late=True)
        threading.Thread(target=self._run, args=(look, known), name="lakelet-schema-look", daemon=True).start()

    def _look(self, known: TableSchema | None) -> TableSchema:
        if known is None or not is_newest_schema(self._home, known.id):
            known = self._known = latest_schema(self._home)
        return known

    def _run(self, look: _Look, known: TableSchema) -> None:
        try:
            look.found = self._look(known)
        except LakeletError as error:
            look.error = error
        with self._lock:
            # An error of another kind is an answer: the store is there.
            failed = isinstance(look.error, UnavailableError)
            self._silence = f"the store does not answer: {look.error}" if failed else None
            self._next_look = self._home.clock.monotonic() + _PAUSE_SECONDS
            if look.is_late:
                self._is_looking = False
            look.done.set()


class _Look:
    """One look for a newer schema; a late one is waited for by nobody."""

    def __init__(self, *, is_late: bool = False) -> None:
        self.done = threading.Event()
        self.is_late = is_late
        self.found: TableSchema | None = None
        self.error: LakeletError | None = None
