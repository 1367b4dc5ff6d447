"""Reads of many keys and of ranges through a writer: memory over files, in the order that was asked for."""

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelet.errors import InvalidError, UnavailableError
from lakelet.realtime.read.pinned_memtables import with_pinned
from lakelet.realtime.wal.key_file import KeyFile
from tests.unit.realtime.written_table import WrittenTable

MODES: dict[str, dict[str, str]] = {"fixed": {"bucket": "3"}, "dynamic": {"dynamic-bucket.target-row-num": "2"}}


def row(number: int, text: str) -> dict[str, Any]:
    return {"id": number, "v": text, "x": float(number)}


@pytest.mark.parametrize("mode", sorted(MODES))
def test_many_keys_keep_their_places(tmp_path: Path, mode: str) -> None:
    written = WrittenTable(tmp_path, options=MODES[mode])
    with written.writer() as writer:
        writer.put_many([row(number, "file") for number in range(6)])
        writer.flush()
        writer.put_many([row(number, "memory") for number in (1, 4, 8)])
        writer.delete({"id": 2})
        asked = [8, 2, 0, 99, 1, 8, 2, 5]
        texts = ["memory", None, "file", None, "memory", "memory", None, "file"]
        expected = [None if text is None else row(number, text) for number, text in zip(asked, texts, strict=True)]
        assert writer.get_many([{"id": number} for number in asked]) == expected
        assert writer.get_many(pa.table({"id": asked})) == expected
        found = writer.get_many([{"id": 4}, {"id": 3}, {"id": 2}], columns=["v"])
        assert found == [{"v": "memory"}, {"v": "file"}, None]
        assert writer.get_many([]) == []
        with pytest.raises(InvalidError, match="'id' is missing"):
            writer.get_many([{"v": "memory"}])
        writer.flush()
        assert writer.get_many([{"id": number} for number in asked]) == expected


def test_memtables_of_two_schemas_are_read_together(tmp_path: Path) -> None:
    written = WrittenTable(tmp_path)
    with written.writer() as writer:
        writer.put(row(1, "old"))
        written.table.add_column("w", "INT")
        writer.put({**row(2, "new"), "w": 5})
        assert writer.get_many([{"id": 2}, {"id": 1}]) == [{**row(2, "new"), "w": 5}, {**row(1, "old"), "w": None}]
        assert [one["w"] for one in writer.scan(start={"id": 1}).to_arrow().to_pylist()] == [None, 5]


@pytest.mark.parametrize("mode", sorted(MODES))
def test_a_range_comes_in_the_order_of_keys(tmp_path: Path, mode: str) -> None:
    written = WrittenTable(tmp_path, options=MODES[mode])
    with written.writer() as writer:
        writer.put_many([row(number, "file") for number in range(20, -20, -1)])
        writer.flush()
        writer.put_many([row(number, "memory") for number in (7, 30, -3, 12)])
        writer.delete({"id": 5})

        def ids(**bounds: Any) -> list[int]:
            return [one["id"] for one in writer.scan(**bounds).to_arrow().to_pylist()]

        assert ids(start={"id": 3}, end={"id": 9}) == [3, 4, 6, 7, 8]
        assert ids(start={"id": 19}) == [19, 20, 30]
        assert ids(end={"id": -17}) == [-19, -18]
        assert ids(start={"id": 4}, limit=3) == [4, 6, 7]
        assert ids(start={"id": 3}, end={"id": 13}, where="v = 'memory'") == [7, 12]
        assert ids(start={"id": 9}, end={"id": 3}) == []
        assert ids(prefix={"id": 7}) == [7]
        only = writer.scan(["v"], start={"id": 6}, end={"id": 8}).to_arrow().to_pylist()
        assert only == [{"v": "file"}, {"v": "memory"}]
        assert writer.scan(start={"id": 6}, end={"id": 8}).count() == 2
        with pytest.raises(InvalidError, match="expected the first columns of the key"):
            writer.scan(start={"v": "x"})


def test_a_range_goes_across_partitions(tmp_path: Path) -> None:
    columns = [("p", "STRING NOT NULL"), ("id", "INT NOT NULL"), ("v", "INT")]
    written = WrittenTable(tmp_path, columns=columns, key=("p", "id"), partitions=("p",))
    with written.writer() as writer:
        writer.put_many([{"p": p, "id": number, "v": 0} for number in range(4) for p in ("b", "ab", "a", "aa\x00")])
        writer.flush()
        writer.put({"p": "ab", "id": 9, "v": 1})

        def keys(**bounds: Any) -> list[tuple[str, int]]:
            return [(one["p"], one["id"]) for one in writer.scan(**bounds).to_arrow().to_pylist()]

        assert keys(prefix={"p": "a"}) == sorted(
            [*((p, number) for p in ("a", "aa\x00", "ab") for number in range(4)), ("ab", 9)]
        )
        assert keys(prefix={"p": "ab", "id": 9}) == [("ab", 9)]
        assert keys(start={"p": "ab", "id": 3}, end={"p": "b", "id": 1}) == [("ab", 3), ("ab", 9), ("b", 0)]


def test_an_append_table_has_no_keys_to_look_for(tmp_path: Path) -> None:
    written = WrittenTable(tmp_path, key=(), options={})
    with written.writer() as writer:
        for call in (
            lambda: writer.get_many([{"id": 1}]),
            lambda: writer.scan(start={"id": 1}),
            lambda: writer.put_if_absent(row(1, "a")),
        ):
            with pytest.raises(InvalidError, match="no primary key"):
                call()


def test_a_row_is_put_where_there_is_none(tmp_path: Path) -> None:
    written = WrittenTable(tmp_path)
    with written.writer() as writer:
        assert writer.put_if_absent(row(1, "first"))
        assert not writer.put_if_absent(row(1, "second"))
        writer.flush()
        assert not writer.put_if_absent(row(1, "third"))
        assert writer.get({"id": 1}) == row(1, "first")
        assert writer.delete({"id": 1})
        assert writer.put_if_absent(row(1, "fourth"))
        assert writer.get({"id": 1}) == row(1, "fourth")
        with pytest.raises(InvalidError, match="expected a mapping"):
            writer.put_if_absent([row(1, "x")])  # type: ignore[arg-type]
    assert written.rows() == [(1, "fourth", 1.0)]


@pytest.mark.parametrize("small", [False, True])
def test_insertions_and_deletions_of_threads_alternate(tmp_path: Path, small: bool) -> None:
    """Of each key, an insertion that was made and a deletion that was made take turns, whoever made them."""
    written = WrittenTable(tmp_path)
    options = {"memtable.size": "600 b", "memtable.flush-threshold": "0.5"} if small else {}
    balance = [0] * 3
    guard = threading.Lock()

    with written.writer(options) as writer:

        def work(number: int) -> None:
            for turn in range(12):
                key = (number + turn) % len(balance)
                change = 0
                if (number + turn // 3) % 2:
                    change = writer.put_if_absent(row(key, f"{number}/{turn}"))
                else:
                    change = -writer.delete({"id": key})
                with guard:
                    balance[key] += change

        threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        there = [found is not None for found in writer.get_many([{"id": key} for key in range(len(balance))])]
        assert balance == [int(one) for one in there]


@pytest.mark.parametrize("is_known", [True, False])
def test_a_flush_whose_snapshot_is_expired_is_seen_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_known: bool
) -> None:
    """The rows are committed, the writer cannot say so yet, and other writers commit and expire meanwhile."""
    made = WrittenTable(tmp_path, columns=[("id", "BIGINT"), ("v", "STRING")], key=(), options={})

    def failing(*_: object) -> None:
        raise UnavailableError("the disk is full")

    with made.writer() as writer:
        writer.put_many([{"id": 1, "v": "a"}, {"id": 2, "v": "b"}])
        with monkeypatch.context() as patched:
            patched.setattr(KeyFile, "keep", failing)
            with pytest.raises(UnavailableError):
                writer.flush()
            if not is_known:
                # Nor has the outcome of the commit come back.
                writer._memtables.all[0].committed_in = None
            for number in range(3):
                made.table.write([{"id": 10 + number, "v": "c"}])
            made.table.expire_snapshots(1)
            assert writer.scan().count() == 5
            pinned = writer.pin()
            assert with_pinned(made.table.scan(), pinned).count() == 5
        writer.flush()
        assert writer.scan().count() == 5
