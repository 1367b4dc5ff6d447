"""Tables whose level 0 is hidden until it is compacted: a row that was read through the writer never vanishes."""

import threading
from pathlib import Path
from typing import Any

import pytest

from lakelet.compact.compaction import Compaction
from lakelet.errors import InvalidError, UnavailableError
from tests.unit.realtime.written_table import WrittenTable, kill, sorted_rows

VECTORS = {"bucket": "2", "deletion-vectors.enabled": "true"}
FIRST = {"bucket": "2", "merge-engine": "first-row"}
DYNAMIC = {"dynamic-bucket.target-row-num": "2", "deletion-vectors.enabled": "true"}


def row(number: int, text: str) -> dict[str, Any]:
    return {"id": number, "v": text, "x": None}


@pytest.mark.parametrize("options", [VECTORS, FIRST, DYNAMIC], ids=["vectors", "first-row", "dynamic"])
def test_what_is_read_through_the_writer_is_what_is_flushed(tmp_path: Path, options: dict[str, str]) -> None:
    written = WrittenTable(tmp_path, options=options)
    first = "merge-engine" in options
    with written.writer() as writer:
        writer.put_many([row(number, "a") for number in range(6)])
        writer.flush()
        writer.put_many([row(number, "b") for number in range(4, 9)])
        writer.put(row(8, "c"))
        if not first:
            assert writer.delete({"id": 1})
        if first:
            expected = {number: "a" if number < 6 else "b" for number in range(9)}
        else:
            expected = {
                number: "a" if number < 4 else "c" if number == 8 else "b" for number in range(9) if number != 1
            }
        rows = [(number, text, None) for number, text in expected.items()]
        for _ in range(2):
            assert sorted_rows(writer.scan().to_arrow()) == rows
            assert writer.scan(where="v = 'a'").count() == list(expected.values()).count("a")
            found = writer.get_many([{"id": number} for number in range(10)])
            assert found == [row(number, expected[number]) if number in expected else None for number in range(10)]
            in_order = writer.scan(start={"id": 3}, end={"id": 7}).to_arrow().column("v").to_pylist()
            assert in_order == [expected[number] for number in range(3, 7)]
            writer.flush()
            assert written.rows() == rows


@pytest.mark.parametrize("options", [VECTORS, FIRST], ids=["vectors", "first-row"])
@pytest.mark.parametrize("crash", [False, True])
def test_a_flush_that_stops_before_its_compaction_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, str], crash: bool
) -> None:
    written = WrittenTable(tmp_path, options=options)
    writer = written.writer()
    writer.put(row(1, "a"))
    with monkeypatch.context() as patch:

        def fail(*_: object) -> None:
            raise UnavailableError("no disk")

        patch.setattr(Compaction, "run", fail)
        with pytest.raises(UnavailableError, match="stay hidden"):
            writer.flush()
        # The rows are committed, but nobody sees them in the table yet.
        assert written.table.latest_snapshot() is not None
        assert written.rows() == []
        assert writer.get({"id": 1}) == row(1, "a")
        assert sorted_rows(writer.scan().to_arrow()) == [(1, "a", None)]
        if crash:
            kill(writer)
    if crash:
        writer = written.writer()
        assert [one.outcome for one in writer.recovered] == ["committed before", "empty"]
        assert written.rows() == [(1, "a", None)]
    writer.close()
    assert written.rows() == [(1, "a", None)]


def test_rows_show_while_their_flush_compacts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the two commits of a flush, and after the second."""
    written = WrittenTable(tmp_path, options=VECTORS)
    begun, go, run = threading.Event(), threading.Event(), Compaction.run

    def slowly(self: Compaction, *arguments: Any) -> Any:
        begun.set()
        assert go.wait(60)
        return run(self, *arguments)

    monkeypatch.setattr(Compaction, "run", slowly)
    with written.writer({"memtable.size": "300 b", "memtable.flush-threshold": "0.1"}) as writer:
        writer.put(row(1, "a"))
        assert begun.wait(60)
        assert written.table.get({"id": 1}) is None
        assert writer.get({"id": 1}) == row(1, "a")
        assert writer.scan().count() == 1
        go.set()
    assert written.rows() == [(1, "a", None)]


@pytest.mark.parametrize(
    ("options", "message"),
    [(FIRST, "keeps the first row"), ({"bucket": "1", "ignore-delete": "true"}, "drops deletes")],
)
def test_deletes_that_would_do_nothing_are_refused(tmp_path: Path, options: dict[str, str], message: str) -> None:
    written = WrittenTable(tmp_path, options=options)
    with written.writer() as writer:
        writer.put(row(1, "a"))
        with pytest.raises(InvalidError, match=message):
            writer.delete({"id": 1})


@pytest.mark.parametrize("options", [VECTORS, FIRST], ids=["vectors", "first-row"])
def test_a_table_that_nobody_compacts_is_refused(tmp_path: Path, options: dict[str, str]) -> None:
    written = WrittenTable(tmp_path, options={**options, "write-only": "true"})
    with pytest.raises(InvalidError, match="write-only"):
        written.writer()
