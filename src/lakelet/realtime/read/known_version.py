"""What a writer has found out about the newest version of its table, and whether that is still so.

    moment ── look for schema and snapshot ── keep ── … memory ── is it still so? ── the row

Reads are strict: each gives what was committed before it began, by whichever process. Looking for that in the store takes a dozen
calls of the system. Where the store tells of changes (`ObjectStore.watch`) one call says that there were none since the moment
before the last look. Elsewhere nothing is kept, and every read looks.

Whoever reads memory asks for it afterwards: rows of a memtable that was flushed and dropped meanwhile are in a newer snapshot,
and its commit is a change.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

from lakelet.model.schema import TableSchema
from lakelet.realtime.plain_row import PlainRows
from lakelet.storage.home import TableHome
from lakelet.storage.store import FolderWatch
from lakelet.table.read.kept_lookup import KeptLookup

_PAUSE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment of a watch: what was looked for after it is known until something changes."""

    watch: FolderWatch
    number: int

    @property
    def is_now(self) -> bool:
        """Whether nothing has changed since."""
        return self.watch.is_unchanged(self.number)


@dataclass(frozen=True, slots=True)
class KnownVersion:
    """The newest schema at a moment, what encodes keys of it, and the rows of the newest snapshot."""

    moment: Moment
    schema: TableSchema
    plain: PlainRows
    rows: KeptLookup


class KnownVersions:
    """The last known version of one table; for any number of threads."""

    def __init__(self, home: TableHome) -> None:
        self._home = home
        self._lock = threading.Lock()
        self._watch: FolderWatch | None = None
        self._next_watch = 0.0
        self._is_closed = False
        self._schema: tuple[Moment, TableSchema] | None = None
        self.newest: KnownVersion | None = None

    def moment(self) -> Moment | None:
        """This moment; None where nobody tells of changes."""
        watch = self._watch
        if watch is None or watch.is_lost:
            watch = self._watched()
        return None if watch is None else Moment(watch, watch.moment())

    def schema(self) -> TableSchema | None:
        """The newest schema, if it is known."""
        known = self._schema
        return known[1] if known is not None and known[0].is_now else None

    def keep_schema(self, moment: Moment | None, schema: TableSchema) -> None:
        """Keep what was the newest schema after a moment."""
        self._schema = None if moment is None else (moment, schema)

    def keep(
        self, moment: Moment | None, schema: TableSchema, plain: PlainRows | None, rows: KeptLookup | None
    ) -> None:
        """Keep what was the newest version after a moment."""
        if moment is not None and plain is not None and rows is not None:
            self.newest = KnownVersion(moment, schema, plain, rows)

    def close(self) -> None:
        """End the watch; once is enough."""
        with self._lock:
            self._is_closed = True
            watch, self._watch = self._watch, None
        if watch is not None:
            watch.close()

    def _watched(self) -> FolderWatch | None:
        """A watch of the folders of schemas and snapshots, which both have to be there."""
        with self._lock:
            before, now = self._watch, self._home.clock.monotonic()
            if before is not None and not before.is_lost:
                return before
            if before is not None:
                before.close()
                self._watch = None
            if self._is_closed or now < self._next_watch:
                return None
            self._next_watch = now + _PAUSE_SECONDS
            paths = self._home.paths
            self._watch = self._home.store.watch([paths.schema_folder, paths.snapshot_folder])
            return self._watch
