"""The upkeep of a cache: what it does beside answering, at queries, at puts, and at an interval in the background.

    a query asks for a table    counted in the history; companions are prefetched
    a table is not known        what is persisted of it is restored
    a value is put              its table is to be persisted
    now and then                the size is adapted to the memory in use, alerts are logged, changes are persisted

Nothing here fails a query. There is one background thread for prefetch and one for persistence, started when there is work for
them; they end with the process, and forked processes have none.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from lakelet.cache.keys import TableCacheKey
from lakelet.cache.level import CacheLevel
from lakelet.cache.pointers import PointerCache
from lakelet.cache.settings import CacheSettings
from lakelet.cache.tiers import Tiers
from lakelet.cache.upkeep.adaptive_size import AdaptiveSize
from lakelet.cache.upkeep.alerts import Alert, AlertLog, alerts_of
from lakelet.cache.upkeep.codec import TableCodec
from lakelet.cache.upkeep.companion_tables import CompanionTables
from lakelet.cache.upkeep.difference_log import DifferenceLog
from lakelet.cache.upkeep.prefetch import Prefetch
from lakelet.cache.upkeep.query_history import QueryHistory
from lakelet.cache.upkeep.rollout import in_rollout
from lakelet.clock import Clock
from lakelet.ids import RandomIds

if TYPE_CHECKING:
    from lakelet.cache.upkeep.persistence import Persistence

_LOG = logging.getLogger(__name__)
_LOOK_SECONDS = 10.0
_SOON_SECONDS = 0.2
# A thread that ends within this time is waited for when the cache is closed.
_END_SECONDS = 5.0
# Above this share of the limit prefetched tables would drive out what is in use.
_ROOM = 0.9


class Upkeep:
    """The upkeep of one cache."""

    def __init__(
        self,
        settings: CacheSettings,
        tiers: Tiers,
        pointers: PointerCache,
        clock: Clock,
        load: Callable[[TableCacheKey], object],
    ) -> None:
        self._settings = settings
        self._tiers = tiers
        self._clock = clock
        self.history = QueryHistory(clock)
        self.companions = CompanionTables(clock)
        self.prefetch = Prefetch(self.companions, self._is_wanted, load, self._submit, clock)
        self.differences = DifferenceLog()
        self.adaptive = AdaptiveSize(lambda share: tiers.resize(self._settings, share))
        self.persistence: Persistence | None = None
        self._codecs: dict[str, TableCodec] = {}
        self._other_codec: Callable[[], TableCodec] | None = None
        self._alert_log = AlertLog()
        self._start()
        tiers.on_put = self._was_put
        pointers.on_miss = self._not_known

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._timer: threading.Timer | None = None
        self._next_look = self._clock.monotonic() + _LOOK_SECONDS
        self._next_save = self._clock.monotonic()

    def reset(self) -> None:
        """Start anew in a forked process."""
        self._start()
        self._alert_log = AlertLog()
        for one in (self.history, self.companions, self.prefetch, self.differences, self.persistence):
            if one is not None:
                one.reset()

    def configure(self, settings: CacheSettings) -> None:
        """Other settings from now on; the size is the configured one until memory is looked at again."""
        self._settings = settings
        self.adaptive.share = 1.0

    def serves(self, table: TableCacheKey) -> bool:
        """Whether queries of a table are answered from the cache: it is switched on, and for this table."""
        return self._settings.enabled and in_rollout(table, self._settings.rollout_percentage)

    def persist_in(self, warehouse: str) -> None:
        """Persist in the folder that the settings name, if they do, what is cached of this warehouse."""
        folder = self._settings.persist_folder
        if folder:
            # Most caches are not persisted.
            from lakelet.cache.upkeep.persisted_folder import PersistedFolder  # noqa: PLC0415
            from lakelet.cache.upkeep.persistence import Persistence  # noqa: PLC0415

            files = PersistedFolder(folder, warehouse, RandomIds())
            self.persistence = Persistence(files, self._codec_of, self.history, self.companions, self._clock)

    def register_codec(self, catalog: str, codec: TableCodec) -> None:
        """Persist tables of a catalog with this codec."""
        self._codecs[catalog] = codec

    def register_other_codec(self, make: Callable[[], TableCodec]) -> None:
        """Persist tables of all other catalogs with the codec that this function makes."""
        self._other_codec = make

    def _codec_of(self, catalog: str) -> TableCodec | None:
        found = self._codecs.get(catalog)
        if found is None and self._other_codec is not None:
            found = self._codecs[catalog] = self._other_codec()
        return found

    # ------------------------------------------------------------------ what happens

    def asked(self, table: TableCacheKey) -> None:
        """A query asks for a table."""
        if self.persistence is not None:
            self.persistence.restore_history()
        self.history.record(table)
        if self._settings.prefetch and self.companions.record(table):
            self.prefetch.after(table)
        self.look()

    def invalidated(self, table: TableCacheKey | None) -> None:
        """A table, or with None more than one, was dropped from the cache on purpose."""
        if self.persistence is None:
            return
        if table is None:
            self.persistence.forget_all()
        else:
            self.persistence.forget(table)

    def look(self) -> None:
        """Adapt the size, log alerts and persist changes, each at most every so often."""
        now = self._clock.monotonic()
        if now >= self._next_look:
            self._next_look = now + _LOOK_SECONDS
            if self._settings.adaptive_size:
                self.adaptive.adjust()
            else:
                self.adaptive.restore()
            self.alerts()
        if self.persistence is not None and self.persistence.has_changes and self._timer is None:
            self._save_later(now)

    def alerts(self) -> tuple[Alert, ...]:
        """The metrics beyond their thresholds; those that are new are logged."""
        found = alerts_of(self._tiers.metrics(counts_values=False))
        self._alert_log.tell(found)
        return found

    def save(self) -> int:
        """Persist changes now; how many tables were written."""
        return 0 if self.persistence is None else self.persistence.save(self._settings.max_bytes)

    def hottest(self, number: int) -> list[tuple[TableCacheKey, int]]:
        """The tables that were asked for most often in the last 24 hours, by earlier processes too where they are persisted."""
        if self.persistence is not None:
            self.persistence.restore_history()
        return self.history.hottest(number)

    @property
    def has_changes(self) -> bool:
        """Whether there is something to persist."""
        return self.persistence is not None and self.persistence.has_changes

    def close(self) -> None:
        """Persist what is to be persisted; nothing is done in the background any more until a query comes."""
        with self._lock:
            pool, self._pool = self._pool, None
            timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
            timer.join(_END_SECONDS)
        self._save()
        if pool is not None:
            pool.shutdown(wait=False)

    # ------------------------------------------------------------------ inside

    def _was_put(self, table: TableCacheKey) -> None:
        if self.persistence is not None:
            self.persistence.changed(table)
        self.look()

    def _not_known(self, table: TableCacheKey) -> None:
        if self.persistence is not None and self.serves(table):
            self.persistence.restore(table)

    def _is_wanted(self, table: TableCacheKey) -> bool:
        if self._tiers[CacheLevel.TABLE_METADATA].has_table(table):
            return False
        return self.serves(table) and self._tiers.nbytes <= _ROOM * self._tiers.max_bytes

    def _save_later(self, now: float) -> None:
        """Persist what has changed when the interval is over."""
        with self._lock:
            if self._timer is not None:
                return
            # A query caches several values one after the other: a moment later most of them are there.
            delay = min(max(self._next_save - now, _SOON_SECONDS), threading.TIMEOUT_MAX)
            self._timer = threading.Timer(delay, self._timed_save)
            self._timer.daemon = True
        self._timer.start()

    def _timed_save(self) -> None:
        with self._lock:
            self._timer = None
        self._next_save = self._clock.monotonic() + self._settings.persist_interval.total_seconds()
        self._save()

    def _save(self) -> None:
        try:
            self.save()
        except Exception as error:
            _LOG.warning("the cache was not persisted: %s", error)

    def _submit(self, run: Callable[[], None]) -> None:
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(1, thread_name_prefix="lakelet-cache-upkeep")
            pool = self._pool
        try:
            pool.submit(run)
        except RuntimeError as error:
            # The interpreter ends, and starts no threads any more.
            _LOG.debug("nothing is done in the background: %s", error)
