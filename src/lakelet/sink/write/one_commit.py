"""The lifecycle of a writer: it serves one commit, and after an error it can only be aborted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lakelet.errors import InvalidError, UnavailableError
from lakelet.storage.home import TableHome


class OneCommit:
    """Tracks whether a writer may still be used."""

    def __init__(self, home: TableHome) -> None:
        self._home = home
        self._ended: str | None = None

    def check(self) -> None:
        """InvalidError once the writer has committed, aborted or failed."""
        if self._ended is not None:
            raise InvalidError(f"this writer cannot go on, for {self._ended}; start a new one")

    def end(self, why: str) -> None:
        """Refuse all further writes."""
        self._ended = why

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """Refuse all but an abort after an error, since rows may be missing from what was written."""
        try:
            yield
        except OSError as error:
            # What Arrow's writers meet comes out as it is: a full disk, a closed connection.
            self._ended = "writing failed"
            where = self._home.where(self._home.paths.root)
            raise UnavailableError(f"writing below {where} failed: {error}") from error
        except BaseException:
            self._ended = "writing failed"
            raise
