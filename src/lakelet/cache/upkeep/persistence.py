"""Persistence: what is cached of tables, and the query history, survive the process in a folder of the local disk.

A table is restored when it is first asked for and nothing of it is known; every pointer that comes back is revalidated before it
is used, whatever staleness is allowed, and all other values are immutable under their names. So a folder that is out of date, or
shared by several processes, costs at most what an empty one costs. Tables are written when something new of them was cached: a
moment later the first time, then at most every interval, and when the lake is closed.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from lakelet.cache.keys import MAIN, TableCacheKey
from lakelet.cache.upkeep.codec import TableCodec
from lakelet.cache.upkeep.companion_tables import CompanionTables
from lakelet.cache.upkeep.history_json import decode_history, encode_history
from lakelet.cache.upkeep.persisted_file import Piece
from lakelet.cache.upkeep.persisted_folder import PersistedFolder
from lakelet.cache.upkeep.query_history import Counts, QueryHistory, merged
from lakelet.clock import Clock
from lakelet.errors import CorruptionError

_LOG = logging.getLogger(__name__)
_HISTORY = "history"
# Files of tables that nobody has cached for long are removed from this multiple of the cache's size on.
_DISK_FACTOR = 4
# The number of tables whose counts and companions are persisted.
_MOST_TABLES = 10_000
_MOST_COMPANIONS = 2_000


class Persistence:
    """Saves to and restores from a folder. `changed` is called for every table of which something new is cached."""

    def __init__(
        self,
        folder: PersistedFolder,
        codec_of: Callable[[str], TableCodec | None],
        history: QueryHistory,
        companions: CompanionTables,
        clock: Clock,
    ) -> None:
        self._folder = folder
        self._codec_of = codec_of
        self._history = history
        self._companions = companions
        self._clock = clock
        self.reset()

    def reset(self) -> None:
        """Start anew in a forked process: nothing of the parent's is saved, and tables are restored again."""
        self._lock = threading.Lock()
        self._saves = threading.Lock()
        self._changed: set[TableCacheKey] = set()
        self._restored: set[TableCacheKey] = set()
        self._restoring = threading.local()
        self._history_restored = False
        self._restores = True

    @property
    def has_changes(self) -> bool:
        """Whether there is something to save: values of tables, or queries in the history."""
        return bool(self._changed) or self._history.has_new

    def changed(self, table: TableCacheKey) -> None:
        """Note that something new of a table is cached."""
        if getattr(self._restoring, "active", False):
            return
        with self._lock:
            self._changed.add(table.on_branch(MAIN))

    def forget(self, table: TableCacheKey) -> None:
        """Remove what is persisted of a table that was dropped from the cache on purpose."""
        main = table.on_branch(MAIN)
        with self._lock:
            self._restored.add(main)
            self._changed.discard(main)
        self._folder.remove_table(str(main))

    def forget_all(self) -> None:
        """Remove what is persisted of all tables, and restore none of them in this process."""
        with self._lock:
            self._restores = False
            self._changed.clear()
        self._folder.limit(0)

    def restore(self, table: TableCacheKey) -> None:
        """Put back what is persisted of a table, once."""
        main = table.on_branch(MAIN)
        with self._lock:
            if main in self._restored or not self._restores:
                return
            self._restored.add(main)
        codec = self._codec_of(main.catalog)
        pieces = None if codec is None else self._folder.read_table(str(main))
        if codec is None or pieces is None:
            return
        self._restoring.active = True
        try:
            codec.restore(main, pieces)
        except CorruptionError as error:
            _LOG.warning("what is persisted of %s is discarded: %s", main, error)
            self._folder.remove_table(str(main))
        finally:
            self._restoring.active = False

    def restore_history(self) -> None:
        """Add the persisted query history to this process's, once."""
        with self._lock:
            if self._history_restored:
                return
            self._history_restored = True
        found = self._stored_history()
        if found is None:
            return
        counts, companions = found
        self._history.add(counts)
        for table, asked, by in companions:
            self._companions.add(table, asked, by)

    def save(self, max_bytes: int) -> int:
        """Write the tables that have changed, and the history; how many tables were written."""
        with self._saves:
            with self._lock:
                tables, self._changed = self._changed, set()
            written = 0
            for table in sorted(tables, key=str):
                codec = self._codec_of(table.catalog)
                pieces = [] if codec is None else codec.encode(table)
                if pieces and self._folder.write_table(str(table), pieces):
                    written += 1
            self._save_history()
            if tables:
                self._folder.limit(_DISK_FACTOR * max_bytes)
            return written

    def _save_history(self) -> None:
        recorded = self._history.take()
        if not recorded:
            return
        stored = self._stored_history()
        # Other processes may have added to it; what two of them add at the same moment may be lost, which is only a count.
        parts: list[Counts] = [recorded] if stored is None else [stored[0], recorded]
        companions = {table: (asked, by) for table, asked, by in (() if stored is None else stored[1])}
        companions |= {table: (asked, by) for table, asked, by in self._companions.pairs()}
        listed = [(table, asked, by) for table, (asked, by) in companions.items()][-_MOST_COMPANIONS:]
        counts = merged(parts, self._clock.now_ms())
        if len(counts) > _MOST_TABLES:
            ordered = sorted(counts, key=lambda table: sum(counts[table].values()), reverse=True)
            counts = {table: counts[table] for table in ordered[:_MOST_TABLES]}
        data = encode_history(counts, listed)
        self._folder.write_history([Piece(_HISTORY, (), data)])

    def _stored_history(self) -> tuple[Counts, list[tuple[TableCacheKey, int, dict[TableCacheKey, int]]]] | None:
        pieces = self._folder.read_history()
        if not pieces:
            return None
        try:
            counts, companions = decode_history(pieces[0].data)
        except CorruptionError as error:
            _LOG.warning("the persisted query history is discarded: %s", error)
            return None
        return counts, list(companions)
