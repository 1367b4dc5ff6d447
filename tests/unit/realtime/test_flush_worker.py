"""Files of several memtables are written at the same time, and committed in the order of their logs."""

import threading
from pathlib import Path
from typing import Any

import pytest

from lakelet.errors import UnavailableError
from lakelet.realtime import flush_worker
from lakelet.table.write import committed_write
from lakelet.table.write.committed_write import CommittedWrite
from lakelet.table.write.table_write import TableWrite
from tests.unit.realtime.written_table import WAIT_SECONDS, WrittenTable, sorted_rows

SMALL = {"memtable.size": "300 b", "memtable.flush-threshold": "0.1", "memtable.max-number": "4"}


def row(number: int, text: str) -> dict[str, Any]:
    return {"id": number, "v": text, "x": None}


@pytest.mark.parametrize("vectors", [False, True])
def test_files_are_written_together_and_committed_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vectors: bool
) -> None:
    options = {"bucket": "2", "deletion-vectors.enabled": "true"} if vectors else {"bucket": "2"}
    written = WrittenTable(tmp_path, options=options)
    both = threading.Barrier(2)
    prepare, restamped = TableWrite.prepare_commit, []

    def prepared(self: TableWrite) -> Any:
        # Nobody goes on before the files of both are written.
        both.wait(60)
        return prepare(self)

    monkeypatch.setattr(TableWrite, "prepare_commit", prepared)
    monkeypatch.setattr(committed_write, "restamp", lambda *_: restamped.append(1) or 1 / 0)
    with written.writer(SMALL) as writer:
        writer.put(row(1, "first"))
        writer.put(row(1, "second"))
        writer.flush()
        assert writer.get({"id": 1}) == row(1, "second")
        assert written.rows() == [(1, "second", None)]
    assert restamped == []
    made = [one for one in written.table.snapshots() if one.commit_kind.value == "APPEND"]
    assert [one.commit_identifier for one in made] == [1, 2]


def test_a_memtable_behind_one_that_fails_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = WrittenTable(tmp_path)
    flush, failing = flush_worker.flush_memtable, threading.Event()
    failing.set()
    second = threading.Event()

    def fails(*arguments: Any) -> Any:
        if arguments[3].sequence_number == 1 and failing.is_set():
            assert second.wait(60)
            raise UnavailableError("away")
        if arguments[3].sequence_number == 2:
            second.set()
        return flush(*arguments)

    monkeypatch.setattr(flush_worker, "flush_memtable", fails)
    with written.writer(SMALL) as writer:
        writer.put(row(1, "first"))
        writer.put(row(1, "second"))
        with pytest.raises(UnavailableError, match="away"):
            writer.flush()
        assert written.table.latest_snapshot() is None
        assert sorted_rows(writer.scan().to_arrow()) == [(1, "second", None)]
        failing.clear()
        writer.flush()
        assert [one.commit_identifier for one in written.table.snapshots()][:2] == [1, 2]
    assert written.rows() == [(1, "second", None)]


def test_a_writer_that_stops_leaves_no_files_of_the_one_that_waited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = WrittenTable(tmp_path)
    run, waits = CommittedWrite.run, threading.Event()

    def fails(self: CommittedWrite, *arguments: Any) -> Any:
        if self.turn is None:
            assert waits.wait(60)
            raise UnavailableError("away")
        turn = self.turn

        def told() -> None:
            waits.set()
            turn()

        return run(replaced(self, told), *arguments)

    def replaced(write: CommittedWrite, turn: Any) -> CommittedWrite:
        return CommittedWrite(
            write.home, write.schema, write.commit, {}, table_uuid=write.table_uuid, turn=turn, sequence_room=1
        )

    writer = written.writer(SMALL)
    with monkeypatch.context() as patch:
        patch.setattr(CommittedWrite, "run", fails)
        writer.put(row(1, "first"))
        writer.put(row(2, "second"))
        with pytest.raises(UnavailableError):
            writer.close()
    assert list((written.folder / "warehouse").rglob("data-*")) == []
    with written.writer() as writer:
        assert [one.outcome for one in writer.recovered] == ["committed", "committed", "empty"]
    assert written.rows() == [(1, "first", None), (2, "second", None)]


@pytest.mark.parametrize("options", [{}, {"dynamic-bucket.target-row-num": "2"}], ids=["append", "dynamic"])
def test_elsewhere_a_flush_begins_at_its_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, str]
) -> None:
    written = WrittenTable(tmp_path, key=("id",) if options else (), options=options)
    run, running = CommittedWrite.run, []

    def alone(self: CommittedWrite, *arguments: Any) -> Any:
        running.append(1)
        assert len(running) == 1
        assert self.turn is None
        try:
            return run(self, *arguments)
        finally:
            running.pop()

    monkeypatch.setattr(CommittedWrite, "run", alone)
    with written.writer(SMALL) as writer:
        for number in range(6):
            writer.put(row(number, "a"))
    ids = [one["id"] for one in written.table.scan().to_arrow().to_pylist()]
    assert (ids if not options else sorted(ids)) == list(range(6))
    assert writer.status().failed_flushes == 0


def test_a_flush_without_room_holds_up_no_put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = WrittenTable(tmp_path, options={"bucket": "2"})
    begun, go, flush = threading.Event(), threading.Event(), flush_worker.flush_memtable

    def waits(*arguments: object) -> object:
        begun.set()
        assert go.wait(WAIT_SECONDS)
        return flush(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(flush_worker, "flush_memtable", waits)
    with written.writer({"memtable.wait-timeout": f"{WAIT_SECONDS} s"}) as writer:
        flushes = []
        for number in range(3):
            writer.put(row(number, "a"))
            flushes.append(threading.Thread(target=writer.flush))
            flushes[-1].start()
            if number < 2:
                with writer._memtables.changed:
                    assert writer._memtables.changed.wait_for(
                        lambda wanted=number + 2: len(writer._memtables.all) == wanted, WAIT_SECONDS
                    )
        # Three memtables, the third flush waits for room, and the active one takes rows.
        for number in range(3, 20):
            writer.put(row(number, "a"))
        assert begun.wait(WAIT_SECONDS)
        assert len(writer.status().memtables) == 3
        go.set()
        for thread in flushes:
            thread.join()
    assert len(written.rows()) == 20
