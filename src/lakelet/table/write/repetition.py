"""Retries of a write after a conflict that it can resolve by itself: how often and how long."""

from __future__ import annotations

from lakelet.commit.committer import gives_up, wait_seconds
from lakelet.commit.metadata.missing_file import SnapshotExpiredError
from lakelet.errors import ConflictError
from lakelet.model.schema import TableSchema
from lakelet.options import TableOptions
from lakelet.storage.home import TableHome


class Repetition:
    """Counts the retries of one write, within the limits of the options for a commit's retries."""

    def __init__(self, home: TableHome, schema: TableSchema) -> None:
        self._home = home
        self._options = TableOptions(schema.options)
        self._started = self._began = home.clock.monotonic()
        self._count = 0

    def again(self, conflict: ConflictError | SnapshotExpiredError) -> None:
        """Wait before the next attempt; raise the conflict where the retry limits are exceeded.

        A version that expired while it was read is a race lost like any other: the next attempt is on the newest one.
        """
        self._count += 1
        now = self._home.clock.monotonic()
        if gives_up(self._options, self._count, now - self._started):
            raise conflict
        wait = wait_seconds(self._options, self._count, now - self._began)
        self._home.clock.sleep(wait * self._home.ids.jitter())
        self._began = self._home.clock.monotonic()
