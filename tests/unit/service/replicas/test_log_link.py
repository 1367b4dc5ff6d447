"""The copy of a table's logs: what is acknowledged is in it, whatever ends where."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from lakelet.errors import OutcomeUnknownError, UnavailableError
from lakelet.format.wal.wal_group import WalKey
from lakelet.realtime import flush, flush_worker
from lakelet.realtime.row_writer import RowWriter
from lakelet.realtime.wal.key_file import KeyFile
from lakelet.realtime.wal.wal_file import WalFile
from lakelet.realtime.wal.wal_folder import WalFolder
from lakelet.service.replicas.replica_calls import NotCopiedError
from tests.unit.service.replicas.copied_table import CopiedTable, end, row


class ProcessEnd(BaseException):
    """The process ends here."""


def ends_at(wanted: str) -> Callable[[str, str], None]:
    def fault(node: str, point: str) -> None:
        if point == wanted:
            raise ProcessEnd

    return fault


def fails_at(node: str, wanted: str, times: int = 1) -> Callable[[str, str], None]:
    left = [times]

    def fault(id: str, point: str) -> None:
        if (id, point) == (node, wanted) and left[0]:
            left[0] -= 1
            raise NotCopiedError(f"{id} fails {point}")

    return fault


def _dies(function: Callable[..., Any], *, after: bool) -> Callable[..., Any]:
    def dying(*given: Any, **named: Any) -> Any:
        if after:
            function(*given, **named)
        raise ProcessEnd

    return dying


def _put_until_the_end(table: CopiedTable, writer: RowWriter, acknowledged: list[int]) -> None:
    for id in (3, 4):
        try:
            writer.put(row(id))
        except ProcessEnd:
            return
        acknowledged.append(id)


POINTS = (
    "before append",
    "after append",
    "before sync",
    "after sync",
    "after wait",
    "before commit",
    "after commit",
    "before remove",
)


@pytest.mark.parametrize("after", ["lost disk", "adopted first", "origin first"])
@pytest.mark.parametrize("point", POINTS)
def test_what_is_acknowledged_is_there_once_wherever_the_process_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str, after: str
) -> None:
    table = CopiedTable(tmp_path)
    writer = table.copied_writer()
    writer.put(row(1))
    writer.flush()
    writer.put(row(2))
    acknowledged = [1, 2]
    with monkeypatch.context() as patch:
        when, what = point.split()
        if what == "append":
            table.calls.fault = ends_at(point)
        elif what == "sync":
            patch.setattr(WalFile, "sync", _dies(WalFile.sync, after=when == "after"))
        elif what == "wait":
            assert table.link is not None
            patch.setattr(table.link, "wait", _dies(table.link.wait, after=True))
        elif what == "commit":
            patch.setattr(flush_worker, "flush_memtable", _dies_quietly(writer, flush_worker.flush_memtable, when))
        else:
            patch.setattr(WalFolder, "remove", _dies_quietly(writer, WalFolder.remove, when))
        if what in ("commit", "remove"):
            assert table.link is not None
            patch.setattr(table.link, "committed", lambda *_: None)
            with suppress(UnavailableError):
                writer.flush()
        else:
            _put_until_the_end(table, writer, acknowledged)
        # A process that has ended takes nothing back.
        patch.setattr(WalFile, "withdraw", lambda *_: None)
        end(writer)
    table.calls.fault = lambda node, point: None
    if after == "lost disk":
        shutil.rmtree(table.logs)
        assert table.adopt("p") + table.adopt("q") == 1
    elif after == "adopted first":
        table.adopt("p")
        table.copied_writer().close()
    else:
        table.copied_writer().close()
        table.adopt("p")
    found = table.ids()
    assert len(found) == len(set(found))
    assert set(acknowledged) <= set(found) <= {1, 2, 3, 4}


def _dies_quietly(writer: RowWriter, function: Callable[..., Any], when: str) -> Callable[..., Any]:
    """In a thread that flushes: from here on it does nothing more."""

    def dying(*given: Any, **named: Any) -> Any:
        if when == "after":
            function(*given, **named)
        writer._worker._stopped = True
        raise UnavailableError("the process has ended")

    return dying


@pytest.mark.parametrize("point", ["before append", "after append"])
def test_another_node_takes_over_without_an_error(tmp_path: Path, point: str) -> None:
    table = CopiedTable(tmp_path)
    writer = table.copied_writer()
    writer.put(row(1))
    table.calls.fault = fails_at("p", point, times=99)
    writer.put(row(2))
    assert table.link is not None
    assert table.link.holder == "q"
    end(writer)
    shutil.rmtree(table.logs)
    # The older copy has the first row, and may have the second.
    assert table.adopt("p") == 0
    assert table.adopt("q") == 1
    assert table.ids() == [1, 2]


def test_nothing_is_taken_where_no_node_takes_a_copy(tmp_path: Path) -> None:
    table = CopiedTable(tmp_path)
    table.calls.fault = lambda node, point: (_ for _ in ()).throw(NotCopiedError("away"))
    writer = table.copied_writer()
    with pytest.raises(UnavailableError, match="cannot be written to a second node") as refused:
        writer.put(row(1))
    assert refused.value.nothing_done
    assert writer.scan().to_arrow().num_rows == 0
    table.calls.fault = lambda node, point: None
    writer.put(row(2))
    writer.close()
    assert table.ids() == [2]
    assert not table.copies("p") + table.copies("q")
    assert table.records.of_origin("origin") == []


def test_a_row_whose_copy_is_lost_is_not_taken_and_its_outcome_is_unknown(tmp_path: Path) -> None:
    table = CopiedTable(tmp_path)
    writer = table.copied_writer()
    writer.put(row(1))
    table.calls.fault = lambda node, point: (
        (_ for _ in ()).throw(NotCopiedError("away")) if "drop" not in point else None
    )
    key = WalKey(b"request", table.table.home.clock.now_ms(), b"")
    with pytest.raises(OutcomeUnknownError, match="may be committed or not"):
        writer.put_together([row(2)], [key])
    # It is no longer in the log, so that the same request may be written.
    assert writer.find_keys([b"request"]) == {}
    table.calls.fault = lambda node, point: None
    writer.put_together([row(2)], [key])
    end(writer)
    table.copied_writer().close()
    assert table.ids() == [1, 2]


def test_a_node_that_was_taken_for_dead_goes_on_with_another_log(tmp_path: Path) -> None:
    table = CopiedTable(tmp_path)
    writer = table.copied_writer()
    writer.put(row(1))
    assert table.adopt("p") == 1
    with pytest.raises(OutcomeUnknownError):
        writer.put(row(2))
    # It has put its marker again before.
    assert table.nodes.marks == 1
    writer.put(row(3))
    assert table.ids() == [1]
    writer.close()
    assert table.ids() == [1, 3]


def test_an_adoption_is_not_forgotten_where_the_marker_cannot_be_put_at_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = CopiedTable(tmp_path)
    writer = table.copied_writer()
    writer.put(row(1))
    assert table.adopt("p") == 1

    def silent() -> None:
        raise UnavailableError("the store is silent")

    with monkeypatch.context() as patch:
        patch.setattr(table.nodes, "mark", silent)
        with pytest.raises(OutcomeUnknownError):
            writer.put(row(2))
    with pytest.raises(UnavailableError, match="commits what this one has acknowledged"):
        writer.put(row(3))
    writer.put(row(4))
    writer.close()
    assert table.ids() == [1, 4]


def test_a_node_whose_records_were_deleted_goes_on_with_another_log(tmp_path: Path) -> None:
    table = CopiedTable(tmp_path)
    writer = table.copied_writer()
    writer.put(row(1))
    assert table.adopt("p") == 1
    # Somebody took it for lost for good.
    table.records.forget("origin")
    with suppress(OutcomeUnknownError, UnavailableError):
        writer.put(row(2))
    writer.put(row(3))
    writer.close()
    assert table.ids() == [1, 3]


def test_a_marker_that_is_deleted_while_a_copy_begins_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = CopiedTable(tmp_path)
    writer = table.copied_writer()
    writer.put(row(1))
    table.adopt("p")
    with pytest.raises(OutcomeUnknownError):
        writer.put(row(2))
    marked = [False]
    monkeypatch.setattr(table.nodes, "mark", lambda: marked.__setitem__(0, True))

    def unmarked(node: str, point: str) -> None:
        # Somebody who has found all copies adopted deletes the marker just before the new one counts.
        marked[0] &= point != "after open"

    table.calls.fault = unmarked
    writer.put(row(3))
    table.calls.fault = lambda node, point: None
    assert marked == [True]
    writer.close()


def test_rows_that_another_node_has_committed_are_read_once(tmp_path: Path) -> None:
    table = CopiedTable(tmp_path)
    writer = table.copied_writer()
    for id in (1, 2):
        writer.put(row(id))
        # What is in memory still is in the table already, below a commit of somebody else.
        table.adopt("p")
        table.table.write([row(10 * id)])
        assert sorted(writer.scan().to_arrow()["id"].to_pylist()) == sorted(table.ids())
        (pinned,) = writer.pin()
        assert pinned.flush_base < table.table.snapshots()[-1].id - 1
        with suppress(OutcomeUnknownError):
            writer.put(row(100 * id))
        writer.flush()
    assert table.ids() == [1, 10, 2, 20]
    writer.close()


def test_what_others_have_committed_is_looked_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = CopiedTable(tmp_path)
    writer = table.copied_writer()
    for id in range(10, 22):
        table.table.write([row(id)])
    writer.put(row(1))
    assert writer.scan().to_arrow().num_rows == 13
    asked: list[int] = []
    original = flush.try_snapshot
    monkeypatch.setattr(flush, "try_snapshot", lambda home, number: asked.append(number) or original(home, number))
    assert writer.scan().to_arrow().num_rows == 13
    assert asked == []
    table.table.write([row(22)])
    (pinned,) = writer.pin()
    assert pinned.flush_base == table.table.snapshots()[-1].id
    assert asked == [pinned.flush_base]
    # A flush by another node is still found.
    assert table.adopt("p") == 1
    assert writer.scan().to_arrow().num_rows == 14
    writer.close()
    assert table.ids() == [1, *range(10, 23)]


def test_snapshots_that_are_expired_are_not_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = CopiedTable(tmp_path)
    writer = table.copied_writer()
    writer.put(row(1))
    assert table.adopt("p") == 1
    for id in range(10, 30):
        table.table.write([row(id)])
    table.table.expire_snapshots(retain_max=2)
    there = {one.id for one in table.table.snapshots()}
    asked: list[int] = []
    original = flush.try_snapshot
    monkeypatch.setattr(flush, "try_snapshot", lambda home, number: asked.append(number) or original(home, number))
    # Its own row is in the table, which only the last number of its user says.
    assert writer.scan().to_arrow().num_rows == 21
    assert set(asked) <= there
    writer.close()


def test_a_last_group_that_was_never_acknowledged_leaves_no_key(tmp_path: Path) -> None:
    table = CopiedTable(tmp_path)
    writer = table.copied_writer()
    now = table.table.home.clock.now_ms()
    writer.put_together([row(1)], [WalKey(b"first", now, b"")])
    appended = [False]

    def away(node: str, point: str) -> None:
        # The copy has the group, and its answer is lost; nobody else takes one.
        if point == "after append" or appended[0]:
            appended[0] = True
            raise NotCopiedError("away")

    table.calls.fault = away
    with pytest.raises(OutcomeUnknownError):
        writer.put_together([row(2)], [WalKey(b"second", now, b"")])
    writer.flush()
    end(writer)
    shutil.rmtree(table.logs)
    table.calls.fault = lambda node, point: None
    (copy,) = table.copies("p")
    kept: list[bytes] = []
    original = type(copy).delete
    try:
        type(copy).delete = lambda one: kept.extend(_keys(one.path, now))  # type: ignore[method-assign]
        assert table.adopt("p") == 1
    finally:
        type(copy).delete = original  # type: ignore[method-assign]
    assert kept == [b"first"]
    assert table.ids() == [1]


def test_another_copy_has_the_names_of_writes_that_are_committed(tmp_path: Path) -> None:
    table = CopiedTable(tmp_path)
    writer = table.copied_writer()
    now = table.table.home.clock.now_ms()
    writer.put_together([row(1)], [WalKey(b"first", now, b"")])
    writer.flush()
    table.calls.fault = fails_at("p", "before append", times=99)
    writer.put_together([row(2)], [WalKey(b"second", now, b"")])
    (copy,) = table.copies("q")
    assert _keys(copy.path, now) == [b"first"]
    end(writer)
    # The next process begins another one.
    writer = table.copied_writer()
    table.calls.fault = lambda node, point: None
    writer.put(row(3))
    newest = table.records.newest("origin", copy.folder)
    assert newest is not None
    (copy,) = [one for one in table.copies("p") if one.token == newest.token]
    assert _keys(copy.path, now) == [b"first", b"second"]
    writer.close()


def test_names_of_a_log_go_to_the_copy_though_it_did_not_answer_at_first(tmp_path: Path) -> None:
    table = CopiedTable(tmp_path)
    writer = table.copied_writer()
    link, told = table.link, threading.Semaphore(0)
    assert link is not None
    original = link.committed

    def committed(number: int, keys: Sequence[WalKey]) -> None:
        original(number, keys)
        told.release()

    link.committed = committed  # type: ignore[method-assign]
    now = table.table.home.clock.now_ms()
    table.calls.fault = fails_at("p", "before drop_logs")
    for id in (1, 2):
        writer.put_together([row(id)], [WalKey(b"%d" % id, now, b"")])
        writer.flush()
        # A flush returns before its copy has heard of it.
        assert told.acquire(timeout=60)
    (copy,) = table.copies("p")
    assert _keys(copy.path, now) == [b"1", b"2"]
    writer.close()


def _keys(path: str, now_ms: int) -> list[bytes]:
    file = KeyFile(path)
    try:
        return [key.name for part in file.valid(now_ms) for key in part]
    finally:
        file.close()


def test_large_groups_travel_in_parts(tmp_path: Path) -> None:
    table = CopiedTable(tmp_path)
    table.part_bytes = 100
    writer = table.copied_writer()
    writer.put_many([row(id) for id in range(50)])
    end(writer)
    shutil.rmtree(table.logs)
    assert table.adopt("p") == 1
    assert sorted(table.ids()) == list(range(50))
