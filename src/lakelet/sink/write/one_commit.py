"""The life of a writer: rows for one commit, or an error after which only an abort is left."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lakelet.errors import InvalidError, UnavailableError
from lakelet.storage.home import TableHome


class OneCommit:
    """Says whether a writer may go on."""

    def __init__(self, home: TableHome) -> None:
        self._home = home
        self._over: str | None = None

    def check(self) -> None:
        """InvalidError once the writer is at its end."""
        if self._over is not None:
            raise InvalidError(f"this writer cannot go on, for {self._over}; start a new one")

    def end(self, why: str) -> None:
        """Nothing may be written any more."""
        self._over = why

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """After an error rows may be missing from what was written, so that nothing but an abort may follow."""
        try:
            yield
        except OSError as error:
            # What Arrow's writers meet comes out as it is: a full disk, a closed connection.
            self._over = "writing failed"
            where = self._home.where(self._home.paths.root)
            raise UnavailableError(f"writing below {where} failed: {error}") from error
        except BaseException:
            self._over = "writing failed"
            raise
