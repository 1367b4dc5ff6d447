"""Callbacks of the process: called for each snapshot of a served table, after the flush that committed it.

    class Audit:
        def call(self, table, snapshot): ...        # the name it is served by, and lakelet.model.snapshot.Snapshot

    LAKELET_CALLBACKS=shop.hooks:Audit lakelet serve

They are registered by whoever starts the process, never by an option of a table: other engines refuse tables that name classes
which they cannot load. How far a callback has got is kept in the table's folder (`callback/commit/service.<name>`), so that
snapshots that it missed, because it failed or the process was killed, are passed to it by the next flush or the next start: in
their order, each at least once. A callback begins with the first snapshot after it was registered.

Nothing here ever fails a flush.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping
from typing import Protocol, cast

from lakelet.commit.callbacks.callback_classes import COMMIT_METHODS, CallbackClass, make
from lakelet.commit.callbacks.callback_record import Record, Settled, extended, read_record, write_record
from lakelet.commit.metadata.snapshots import latest_snapshot, try_snapshot
from lakelet.commit.metadata.version_ids import snapshot_ids
from lakelet.model.snapshot import Snapshot
from lakelet.service.tables.served_table import OpenTable
from lakelet.storage.home import TableHome

_LOG = logging.getLogger(__name__)
_PREFIX = "service."
# Calls after which it is noted how far a callback has got, where many are pending.
_NOTED_EVERY = 32


class FlushCallback(Protocol):
    """What is called; the same snapshot may be passed more than once."""

    def call(self, table: str, snapshot: Snapshot) -> None: ...


class FlushCallbacks:
    """The callbacks of a process, by the name that their progress is kept under; for any number of threads."""

    def __init__(self, callbacks: Mapping[str, FlushCallback]) -> None:
        self._callbacks = dict(callbacks)
        self._lock = threading.Lock()
        self._turns: dict[str, threading.Lock] = {}

    def __bool__(self) -> bool:
        return bool(self._callbacks)

    def begin(self, opened: OpenTable) -> None:
        """Note where callbacks that have not seen a table begin: behind its newest snapshot."""
        for name in self._callbacks:
            home = opened.table.home
            if not read_record(home, _PREFIX + name):
                newest = latest_snapshot(home)
                write_record(home, _PREFIX + name, (Settled(0, "") if newest is None else Settled.of(newest),))

    def run(self, opened: OpenTable) -> None:
        """Call all callbacks for the snapshots of a table that are pending."""
        for name, callback in self._callbacks.items():
            with self._turn(opened.name):
                try:
                    self._call(name, callback, opened)
                except Exception as error:
                    _LOG.warning("callback %s of table %s could not be run: %s", name, opened.name, error)

    def _turn(self, table: str) -> threading.Lock:
        with self._lock:
            return self._turns.setdefault(table, threading.Lock())

    def _call(self, name: str, callback: FlushCallback, opened: OpenTable) -> None:
        home = opened.table.home
        newest = latest_snapshot(home)
        if newest is None:
            return
        record = read_record(home, _PREFIX + name)
        settled: list[Settled] = []
        try:
            for snapshot in _pending(home, record, newest):
                callback.call(opened.name, snapshot)
                settled.append(Settled.of(snapshot))
                if len(settled) % _NOTED_EVERY == 0:
                    write_record(home, _PREFIX + name, extended(record, settled))
        except Exception as error:
            _LOG.warning(
                "callback %s of table %s failed, and is called again after the next flush or start: %s: %s",
                *(name, opened.name, type(error).__name__, error),
            )
        finally:
            if settled:
                write_record(home, _PREFIX + name, extended(record, settled))


def loaded_callbacks(names: str | None) -> dict[str, FlushCallback]:
    """The callbacks that settings name, instantiated; InvalidError for one that cannot be."""
    spellings = [text.strip() for text in (names or "").split(",") if text.strip()]
    found = [CallbackClass(text.replace(":", "."), text) for text in spellings]
    # The process itself names them: their modules are those that it trusts.
    return {one.name: cast(FlushCallback, make(one, COMMIT_METHODS, (one.name.partition(".")[0],))) for one in found}


def _pending(home: TableHome, record: Record, newest: Snapshot) -> Iterator[Snapshot]:
    """The snapshots behind the last one that a callback was called for; those that were expired meanwhile are reported."""
    current = _last_settled(home, record, newest) + 1
    while current <= newest.id:
        found = newest if current == newest.id else try_snapshot(home, current)
        if found is not None:
            yield found
            current += 1
            continue
        ids = snapshot_ids(home)
        first = min(max(ids[0], current + 1), newest.id) if ids else newest.id
        _LOG.warning("%s: snapshots %d to %d were expired before their callback", home.paths.root, current, first - 1)
        current = first


def _last_settled(home: TableHome, record: Record, newest: Snapshot) -> int:
    """The id of the last snapshot of the record that no rollback has undone; 0 where there is none."""
    for entry in reversed(record):
        found = None if entry.snapshot_id == 0 else try_snapshot(home, entry.snapshot_id)
        # Ids have no gaps: one that is missing below the newest was expired.
        if entry.is_of(found) if found is not None else entry.snapshot_id < newest.id:
            return entry.snapshot_id
    return 0
