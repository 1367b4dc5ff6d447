"""Callbacks of the process: called for every commit of a served table, also for those that were missed."""

import asyncio
import threading
from pathlib import Path

import pytest

from lakelet.errors import InvalidError
from lakelet.model.snapshot import Snapshot
from lakelet.service.ingest.flush_callbacks import FlushCallbacks, loaded_callbacks
from tests.unit.realtime.written_table import WAIT_SECONDS, kill
from tests.unit.service.served_lake import ServedLake


class Audit:
    """Notes what it is called with; fails while it is told to."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, int]] = []
        self.fails = False
        self.changed = threading.Condition()

    def call(self, table: str, snapshot: Snapshot) -> None:
        with self.changed:
            self.changed.notify_all()
            if self.fails:
                raise ValueError("not now")
            self.seen.append((table, snapshot.id))

    def wait_for(self, seen: list[tuple[str, int]]) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: self.seen == seen, WAIT_SECONDS), self.seen


def test_every_flush_is_told_and_what_was_missed_comes_with_the_next(tmp_path: Path) -> None:
    audit = Audit()
    with ServedLake(tmp_path, callbacks={"audit": audit}) as served:
        served.create("t", buffer_size=1)
        served.write("t", {"n": 1})
        # Callbacks run in threads, which the event loop starts after the flush.
        served.run(asyncio.to_thread(audit.wait_for, [("t", 1)]))
        opened = served.service.tables.open("t")
        audit.fails = True
        served.write("t", {"n": 2})
        served.flush("t")
        served.service.callbacks.run(opened)
        assert audit.seen == [("t", 1)]
        audit.fails = False
        served.write("t", {"n": 3})
    newest = opened.table.latest_snapshot()
    assert newest is not None
    assert audit.seen == [("t", number) for number in range(1, newest.id + 1)]


def test_a_killed_process_leaves_its_calls_to_the_next_start(tmp_path: Path) -> None:
    audit = Audit()
    audit.fails = True
    with ServedLake(tmp_path, callbacks={"audit": audit}) as served:
        served.create("t")
        served.write("t", {"n": 1})
        served.flush("t")
        served.write("t", {"n": 2})
        writer = served.service.tables.open("t").writer
        assert writer is not None
        kill(writer)
    audit.fails = False
    # The rows in the log are committed by the start, and told, too.
    with ServedLake(tmp_path, callbacks={"audit": audit}):
        audit.wait_for([("t", 1), ("t", 2)])
    with ServedLake(tmp_path, callbacks={"audit": audit}):
        pass
    assert audit.seen == [("t", 1), ("t", 2)]


def test_a_callback_begins_with_the_commits_after_it_was_registered(tmp_path: Path) -> None:
    with ServedLake(tmp_path) as served:
        served.create("t")
        served.write("t", {"n": 1})
    first, second = Audit(), Audit()
    with ServedLake(tmp_path, callbacks={"first": first, "second": second}) as served:
        served.write("t", {"n": 2})
    assert first.seen == second.seen == [("t", 2)]


def test_a_rollback_makes_no_commit_unknown(tmp_path: Path) -> None:
    audit = Audit()
    with ServedLake(tmp_path, callbacks={"audit": audit}) as served:
        served.create("t")
        for number in range(3):
            served.write("t", {"n": number})
            served.flush("t")
        opened = served.service.tables.open("t")
        served.service.callbacks.run(opened)
        opened.table.rollback(1)
        served.write("t", {"n": 9})
        served.flush("t")
        served.service.callbacks.run(opened)
        assert audit.seen == [("t", 1), ("t", 2), ("t", 3), ("t", 2)]


def test_settings_name_classes() -> None:
    (name,) = (found := loaded_callbacks(f"{__name__}:Audit"))
    assert name == f"{__name__}.Audit"
    assert isinstance(found[name], Audit)
    assert loaded_callbacks(None) == {}
    assert not FlushCallbacks({})
    with pytest.raises(InvalidError, match="cannot be imported"):
        loaded_callbacks("no.such.module:Class")
