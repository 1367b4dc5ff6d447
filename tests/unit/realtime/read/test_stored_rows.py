"""What is committed is read through a writer by lookup files, as by `table.get`: strictly, and for every kind of table alike."""

import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lakelet
from lakelet.read.lookup.block_cache import BLOCKS
from lakelet.read.lookup.point_reader import PointReader
from lakelet.read.serve.serving_reader import ServingReader, SstHits
from lakelet.realtime.row_writer import RowWriter
from lakelet.table.read import kept_lookup
from lakelet.table.read.kept_lookup import THREAD_NAME
from tests.unit.realtime.written_table import WrittenTable

NEVER_COMPACTED = {"num-sorted-run.compaction-trigger": "100", "num-sorted-run.stop-trigger": "100"}
KINDS: dict[str, dict[str, str]] = {
    "newest": {"bucket": "2", **NEVER_COMPACTED},
    "one bucket": {"bucket": "1", **NEVER_COMPACTED},
    "dynamic": {"dynamic-bucket.target-row-num": "4"},
    "first": {"bucket": "1", "merge-engine": "first-row"},
    "sequence": {"bucket": "2", "sequence.field": "x", **NEVER_COMPACTED},
    "vectors": {"bucket": "2", "deletion-vectors.enabled": "true"},
    "partial": {
        "bucket": "1",
        "merge-engine": "partial-update",
        "partial-update.ignore-delete": "true",
        **NEVER_COMPACTED,
    },
    "sums": {
        "bucket": "2",
        "merge-engine": "aggregation",
        "fields.x.aggregate-function": "sum",
        "fields.default-aggregate-function": "last_value",
        **NEVER_COMPACTED,
    },
    "sst": {"bucket": "1", "file.format": "sst", **NEVER_COMPACTED},
}
KEYS, TURNS = 8, 9


@pytest.fixture(autouse=True)
def _lookup_files_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(kept_lookup, "_FEW_GETS", 0)
    kept_lookup._ASKED.clear()
    yield
    made()
    BLOCKS.clear()


def made() -> None:
    """Wait for the threads that make lookup files."""
    for thread in threading.enumerate():
        if thread.name == THREAD_NAME:
            thread.join()


def row(number: int, text: str, size: float = 0.0) -> dict[str, Any]:
    return {"id": number, "v": text, "x": size}


def check(writer: RowWriter) -> None:
    """All reads by key agree with a scan, whatever they go through."""
    expected = {one["id"]: one for one in writer.scan().to_arrow().to_pylist()}
    for _ in range(2):
        # The second time lookup files are there.
        for number in range(-1, KEYS + 1):
            assert writer.get({"id": number}) == expected.get(number)
        asked = [*range(KEYS + 1), 3, -1]
        keys = [{"id": number} for number in asked]
        assert writer.get_many(keys) == [expected.get(number) for number in asked]
        texts = [None if (one := expected.get(number)) is None else {"v": one["v"]} for number in asked]
        assert writer.get_many(keys, columns=["v"]) == texts
        assert writer.get({"id": 3}, columns=["v"]) == texts[3]
        made()


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_rows_of_every_kind_of_table(tmp_path: Path, kind: str) -> None:
    """Puts, deletes, flushes, commits of others, ALTERs and rollbacks between the reads."""
    chosen = random.Random(kind)
    written = WrittenTable(tmp_path, options=KINDS[kind])
    others = written.table
    others.write([row(number, "begin", 20.0) for number in range(0, KEYS, 2)])
    with written.writer() as writer:
        for turn in range(TURNS):
            number, what = chosen.randrange(KEYS), chosen.randrange(8)
            if what < 4:
                writer.put(row(number, f"put {turn}", float(chosen.randrange(50))))
            elif what == 4 and kind not in ("first", "partial", "sums"):
                writer.delete({"id": number})
            elif what == 5:
                others.write([row(chosen.randrange(KEYS), f"other {turn}", float(chosen.randrange(50)))])
            elif what == 6:
                others.set_options({"snapshot.num-retained.min": str(turn + 10)})
            else:
                writer.flush()
            check(writer)
    assert list(tmp_path.glob("cache/lakelet/lookup/*/*.sst"))


def test_committed_rows_come_from_lookup_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = WrittenTable(tmp_path, options={"bucket": "1"})
    table = written.table
    table.write([row(number, "file") for number in range(KEYS)])
    with table.writer(wal_folder=written.logs) as writer:
        writer.get({"id": 0})
        made()
        for name in ("get", "_search_files"):
            monkeypatch.setattr(PointReader, name, lambda *_: pytest.fail("row groups are not asked"))
        assert writer.get({"id": 3}) == row(3, "file")
        assert writer.get({"id": 99}) is None
        assert writer.get_many([{"id": 3}, {"id": 99}]) == [row(3, "file"), None]
        writer.put(row(4, "memory"))
        assert writer.get_many([{"id": 3}, {"id": 4}]) == [row(3, "file"), row(4, "memory")]
        assert not writer.put_if_absent(row(5, "again"))
        assert writer.delete({"id": 6})
        # The same files serve the table.
        assert table.get_many([{"id": 6}, {"id": 7}]).to_pylist() == [row(6, "file"), row(7, "file")]
        monkeypatch.undo()


@pytest.mark.parametrize(
    "wrong", [{"id": 1, "z": 2}, {"id": "x"}, {"id": None}, {"id": True}, {"id": 2**70}, {}, {"v": "x"}], ids=str
)
def test_what_is_no_key_is_refused_by_every_read(tmp_path: Path, wrong: dict[str, Any]) -> None:
    """Also once lookup files serve the keys that are right."""
    written = WrittenTable(tmp_path, options={"bucket": "1"})
    table = written.table
    table.write([row(number, "file") for number in range(KEYS)])
    with table.writer(wal_folder=written.logs) as writer, table.lookup(folder=tmp_path / "lookup") as lookup:
        for _ in range(3):
            assert writer.get({"id": 1}) == lookup.get_many([{"id": 1}])[0] == row(1, "file")
            assert writer.get_many([{"id": 1}]) == table.get_many([{"id": 1}]).to_pylist() == [row(1, "file")]
            made()
        for read in (writer.get, table.get, lookup.get):
            with pytest.raises(lakelet.InvalidError):
                read(wrong)
        for read_many in (writer.get_many, table.get_many, lookup.get_many):
            with pytest.raises(lakelet.InvalidError):
                read_many([{"id": 1}, wrong])
        assert writer.get({"id": 1, "v": "another"}) == row(1, "file")
        assert writer.get_many([{"id": 1, "v": "another"}]) == [row(1, "file")]


def test_an_alter_of_options_costs_no_conversion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of an older schema with the same columns are read as those of the newest one."""
    written = WrittenTable(tmp_path, options={"bucket": "1"})
    written.table.write([row(number, "file") for number in range(KEYS)])
    written.table.set_options({"snapshot.num-retained.min": "7"})
    table = written.table
    table.get({"id": 0})
    made()
    monkeypatch.setattr(SstHits, "rows", lambda *_: pytest.fail("nothing is converted"))
    assert table.get({"id": 3}) == row(3, "file")
    with table.lookup(folder=tmp_path / "lookup") as lookup:
        assert lookup.get_many([{"id": 3}, {"id": 99}]) == [row(3, "file"), None]
        assert lookup.get({"id": 3}) == row(3, "file")
    monkeypatch.undo()
    table.rename_column("v", "w")
    assert table.get({"id": 3}) == {"id": 3, "w": "file", "x": 0.0}


def test_many_keys_of_a_broken_folder_come_from_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = WrittenTable(tmp_path, options={"bucket": "1"})
    written.table.write([row(number, "file") for number in range(KEYS)])
    table = written.table
    keys = [{"id": number} for number in range(3)]
    table.get_many(keys)
    made()

    def broken(*_: object, **__: object) -> None:
        raise lakelet.UnavailableError("the folder is gone")

    monkeypatch.setattr(ServingReader, "get_many", broken)
    monkeypatch.setattr(ServingReader, "find_many", broken)
    assert table.get_many(keys).num_rows == 3
    with written.writer() as writer:
        assert writer.get_many(keys) == [row(number, "file") for number in range(3)]


def test_a_writer_leaves_the_fallback_branch_to_the_table(tmp_path: Path) -> None:
    """What a writer has kept of the main branch is not the answer of a table that reads another one beside it."""
    columns = [("p", "STRING NOT NULL"), ("id", "INT NOT NULL"), ("v", "STRING")]
    written = WrittenTable(tmp_path, columns=columns, key=("p", "id"), partitions=("p",), options={"bucket": "1"})
    table = written.table
    table.write([{"p": "a", "id": 1, "v": "main"}])
    table.branches.create("spare")
    table.on_branch("spare").write([{"p": "b", "id": 2, "v": "spare"}])
    table.set_options({"scan.fallback-branch": "spare"})
    with table.writer(wal_folder=written.logs) as writer:
        assert writer.get({"p": "a", "id": 1}) == {"p": "a", "id": 1, "v": "main"}
        assert table.get({"p": "b", "id": 2}) == {"p": "b", "id": 2, "v": "spare"}
        assert table.get_many([{"p": "b", "id": 2}]).num_rows == 1
