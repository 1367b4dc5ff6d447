"""A writer of a table with `sequence.field`: rows that come late lose, in memory, against files, and after a crash."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lakelet.realtime import flush_worker
from lakelet.realtime.row_writer import RowWriter
from tests.unit.realtime.written_table import WAIT_SECONDS, WrittenTable, kill, sorted_rows

ORDERS = {"ascending": 1, "descending": -1}
ONLY = {"bucket": "1", "write-only": "true", "sequence.field": "x"}


def made(folder: Path, **more: str) -> WrittenTable:
    return WrittenTable(folder, options=ONLY | {key.replace("_", "-"): text for key, text in more.items()})


def row(text: str, sequence: float | None, key: int = 1) -> dict[str, Any]:
    return {"id": key, "v": text, "x": sequence}


def texts(writer: RowWriter) -> list[str]:
    """The text of every key by all ways to read, which agree."""
    scanned = {one["id"]: one["v"] for one in writer.scan().to_arrow().to_pylist()}
    ranged = {one["id"]: one["v"] for one in writer.scan(start={"id": 0}).to_arrow().to_pylist()}
    gotten = {key: found["v"] for key in range(9) if (found := writer.get({"id": key})) is not None}
    many = writer.get_many([{"id": key} for key in range(9)])
    assert scanned == ranged == gotten == {one["id"]: one["v"] for one in many if one is not None}
    return [scanned[key] for key in sorted(scanned)]


@contextmanager
def held_flushes(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Flushes that wait until they are let go."""
    flush, go = flush_worker.flush_memtable, threading.Event()

    def waiting(*arguments: Any) -> Any:
        assert go.wait(WAIT_SECONDS)
        return flush(*arguments)

    monkeypatch.setattr(flush_worker, "flush_memtable", waiting)
    try:
        yield go
    finally:
        go.set()


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("flushed", [0, 1, 2])
def test_the_greater_sequence_wins_wherever_it_is(tmp_path: Path, order: str, flushed: int) -> None:
    written = made(tmp_path, **{"sequence.field.sort-order": order})
    sign = ORDERS[order]
    with written.writer() as writer:
        steps = [(row("a", 5.0 * sign), "a"), (row("late", 3.0 * sign), "a"), (row("none", None), "a")]
        steps += [(row("tie", 5.0 * sign), "tie"), (row("new", 6.0 * sign), "new"), (row("late", 5.5 * sign), "new")]
        for number, (given, expected) in enumerate(steps):
            writer.put(given)
            assert texts(writer) == [expected]
            if flushed and number % flushed == 0:
                writer.flush()
                assert texts(writer) == [expected]
                assert [one[1] for one in written.rows()] == [expected]
    assert [one[1] for one in written.rows()] == ["new"]


def test_a_batch_in_any_order(tmp_path: Path) -> None:
    written = made(tmp_path)
    with written.writer() as writer:
        writer.put_many([row("b", 2.0), row("c", 3.0), row("a", 1.0), row("x", None, 2), row("y", None, 2)])
        assert texts(writer) == ["c", "y"]
        sizes = writer.status().memtables[0].bytes
        writer.put_many([row("much longer than the others" * 20, 0.0)])
        assert writer.status().memtables[0].bytes == sizes
    assert written.rows() == [(1, "c", 3.0), (2, "y", None)]


def test_a_committed_deletion_wins_over_what_comes_late(tmp_path: Path) -> None:
    written = made(tmp_path)
    with written.writer() as writer:
        writer.put(row("a", 5.0))
        writer.flush()
        assert writer.delete({"id": 1})
        assert texts(writer) == []
        writer.put(row("late", 4.0))
        assert texts(writer) == []
        writer.flush()
        assert texts(writer) == []
        writer.put(row("late", 4.5))
        assert texts(writer) == []
        assert not writer.delete({"id": 1})
        writer.put(row("tie", 5.0))
        assert texts(writer) == ["tie"]
    assert written.rows() == [(1, "tie", 5.0)]


def test_where_flushes_are_compacted_deletions_are_forgotten(tmp_path: Path) -> None:
    options = {"bucket": "1", "deletion-vectors.enabled": "true", "sequence.field": "x"}
    written = WrittenTable(tmp_path, options=options)
    with written.writer() as writer:
        writer.put(row("a", 5.0))
        writer.delete({"id": 1})
        writer.put(row("late", 4.0))
        assert texts(writer) == []
        writer.flush()
        assert texts(writer) == []
        writer.put(row("late", 4.0))
        assert texts(writer) == ["late"]
    assert written.rows() == [(1, "late", 4.0)]


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_several_memtables_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vectors: str) -> None:
    options = {"bucket": "1", "deletion-vectors.enabled": vectors, "sequence.field": "x"}
    written = WrittenTable(tmp_path, options=options)
    written.table.write([row("stored", 4.0), row("stored", 4.0, 2), row("stored", 4.0, 3), row("stored", 9.0, 4)])
    with written.writer() as writer, held_flushes(monkeypatch) as go:
        writer.put_many([row("old", 6.0), row("low", 1.0, 2), row("old", 5.0, 3), row("low", 8.0, 4)])
        writer.delete({"id": 3})
        writer._log.seal()
        writer.put_many([row("late", 5.0), row("newer", 4.0, 2), row("late", 4.5, 3), row("low", 8.5, 4)])
        before = texts(writer)
        assert before == (["old", "newer", "late", "stored"] if vectors == "true" else ["old", "newer", "stored"])
        go.set()
        writer.flush()
        assert texts(writer) == before
    assert [one[1] for one in written.rows()] == before


def test_a_condition_does_not_bring_back_a_row_that_lost(tmp_path: Path) -> None:
    written = made(tmp_path)
    with written.writer() as writer:
        writer.put(row("winner", 5.0))
        writer.flush()
        writer.put(row("late", 4.0))
        assert writer.scan(where="v = 'late'").count() == 0
        assert writer.scan(where="x < 4.5").count() == 0
        writer.put(row("newest", 6.0))
        assert writer.scan(where="v = 'winner'").count() == 0
        assert writer.scan(where="v = 'newest'").count() == 1


def test_a_crash_changes_nothing(tmp_path: Path) -> None:
    written = made(tmp_path)
    writer = written.writer()
    writer.put_many([row("a", 5.0), row("late", 4.0), row("b", 1.0, 2)])
    writer.put(row("late", 3.0))
    writer.delete({"id": 2})
    writer.put(row("late", 0.5, 2))
    seen = texts(writer)
    kill(writer)
    with written.writer() as writer:
        assert texts(writer) == seen == ["a"]
    assert written.rows() == [(1, "a", 5.0)]


def test_a_sequence_column_that_is_widened_and_renamed_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = [("id", "BIGINT NOT NULL"), ("v", "STRING"), ("x", "INT")]
    written = WrittenTable(tmp_path, columns=columns, options=ONLY)
    with written.writer() as writer, held_flushes(monkeypatch) as go:
        writer.put_many([{"id": 1, "v": "a", "x": 300}, {"id": 2, "v": "a", "x": -1}])
        written.table.change_type("x", "BIGINT")
        writer.put_many(
            [{"id": 1, "v": "late", "x": 256}, {"id": 2, "v": "b", "x": 2**40}, {"id": 2, "v": "c", "x": -5}]
        )
        assert texts(writer) == ["a", "b"]
        go.set()
        writer.flush()
        assert texts(writer) == ["a", "b"]
    assert sorted_rows(written.table.scan().to_arrow()) == [(1, "a", 300), (2, "b", 2**40)]


def test_put_if_absent_and_deletes_carry_the_sequence(tmp_path: Path) -> None:
    written = made(tmp_path)
    with written.writer() as writer:
        assert writer.put_if_absent(row("a", 5.0))
        assert not writer.put_if_absent(row("b", 9.0))
        writer.flush()
        assert not writer.put_if_absent(row("b", 9.0))
        assert writer.delete({"id": 1})
        assert writer.put_if_absent(row("again", 5.0))
        assert texts(writer) == ["again"]
