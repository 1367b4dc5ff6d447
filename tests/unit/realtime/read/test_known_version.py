"""A writer that knows of no change asks the store nothing, and its reads are as strict as ever."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lakelet
from lakelet.errors import UnavailableError
from lakelet.read.lookup.block_cache import BLOCKS
from lakelet.realtime.read import point_lookup
from lakelet.realtime.row_writer import RowWriter
from lakelet.storage.disk.inotify import INOTIFY
from lakelet.storage.disk.local_store import LocalStore
from lakelet.table.read import kept_lookup
from lakelet.table.read.kept_lookup import THREAD_NAME

COLUMNS = [("k", "STRING NOT NULL"), ("v", "BIGINT")]


@pytest.fixture(autouse=True)
def _lookup_files_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if INOTIFY is None or not INOTIFY.is_local(str(tmp_path)):
        pytest.skip("nobody tells of changes here")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(kept_lookup, "_FEW_GETS", 0)
    kept_lookup._ASKED.clear()
    # Other tests may have left a writer open.
    before = dict(INOTIFY._listeners)
    yield
    made()
    BLOCKS.clear()
    assert before == INOTIFY._listeners


def made() -> None:
    """Wait for the threads that make lookup files."""
    for thread in threading.enumerate():
        if thread.name == THREAD_NAME:
            thread.join()


def new_table(tmp_path: Path, **options: str) -> lakelet.Table:
    (tmp_path / "real").mkdir(exist_ok=True)
    (tmp_path / "lake").symlink_to("real")
    lake = lakelet.connect(str(tmp_path / "lake"))
    lake.create_database("d")
    table = lake.create_table("d.t", COLUMNS, primary_key=["k"], options={"bucket": "1", **options})
    table.write([{"k": f"k{number}", "v": number} for number in range(20)])
    return table


def warm(writer: RowWriter) -> None:
    """Read until lookup files are there and the version is known."""
    for _ in range(3):
        for number in range(20):
            writer.get({"k": f"k{number}"})
        made()


def by_another_process(tmp_path: Path, program: str) -> None:
    start = f"import lakelet; lake = lakelet.connect({str(tmp_path / 'lake')!r}); table = lake.table('d.t')\n"
    subprocess.run([sys.executable, "-c", start + program], check=True)


def test_a_known_version_takes_no_call_of_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = new_table(tmp_path)
    with table.writer(wal_folder=tmp_path / "wal") as writer:
        warm(writer)
        calls: list[str] = []
        for name in ("get", "head", "list_folder", "get_range"):
            monkeypatch.setattr(LocalStore, name, lambda self, *asked, _name=name: calls.append(f"{_name} {asked}"))
        for _ in range(2):
            assert [writer.get({"k": one}) for one in ("k1", "k19", "none")] == [
                {"k": "k1", "v": 1},
                {"k": "k19", "v": 19},
                None,
            ]
        writer.put({"k": "k1", "v": 100})
        assert writer.get({"k": "k1"}) == {"k": "k1", "v": 100}
        assert calls == []
        monkeypatch.undo()
        # What a caller does with a row is no concern of others.
        row = writer.get({"k": "k2"})
        assert row is not None
        row["v"] = -1
        assert writer.get({"k": "k2"}) == {"k": "k2", "v": 2}


PROGRAMS: dict[str, tuple[str, list[Any]]] = {
    "commit": ("table.write([{'k': 'k1', 'v': -1}, {'k': 'new', 'v': 5}])", [-1, 5]),
    "delete": ("lake.sql(\"DELETE FROM d.t WHERE k = 'k1'\")", [None, None]),
    "rollback": ("table.write([{'k': 'k1', 'v': 7}]); table.rollback(1)", [1, None]),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_another_process_has_done_is_seen(tmp_path: Path, program: str) -> None:
    table = new_table(tmp_path)
    with table.writer(wal_folder=tmp_path / "wal") as writer:
        warm(writer)
        by_another_process(tmp_path, PROGRAMS[program][0])
        for _ in range(2):
            found = [writer.get({"k": one}) for one in ("k1", "new")]
            assert [None if row is None else row["v"] for row in found] == PROGRAMS[program][1]
            made()


def test_an_alter_by_another_process_is_seen_by_reads_and_puts(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    with table.writer(wal_folder=tmp_path / "wal") as writer:
        warm(writer)
        writer.put({"k": "mine", "v": 1})
        by_another_process(tmp_path, "lake.sql('ALTER TABLE d.t ADD COLUMN w STRING')")
        assert writer.get({"k": "k3"}) == {"k": "k3", "v": 3, "w": None}
        assert writer.get({"k": "mine"}) == {"k": "mine", "v": 1, "w": None}
        writer.put({"k": "k3", "v": 4, "w": "w"})
        assert writer.get({"k": "k3"}) == {"k": "k3", "v": 4, "w": "w"}


def test_a_warehouse_that_is_exchanged_by_its_link_is_the_other_one(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    with table.writer(wal_folder=tmp_path / "wal") as writer:
        warm(writer)
        program = (
            "import os, shutil\n"
            f"shutil.copytree({str(tmp_path / 'real')!r}, {str(tmp_path / 'copy')!r})\n"
            f"lakelet.connect({str(tmp_path / 'copy')!r}).table('d.t').write([{{'k': 'k1', 'v': 77}}])\n"
            f"os.symlink('copy', {str(tmp_path / 'new')!r})\n"
            f"os.replace({str(tmp_path / 'new')!r}, {str(tmp_path / 'lake')!r})\n"
        )
        by_another_process(tmp_path, program)
        assert writer.get({"k": "k1"}) == {"k": "k1", "v": 77}


def test_a_table_that_was_dropped_has_no_rows(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    writer = table.writer(wal_folder=tmp_path / "wal")
    warm(writer)
    by_another_process(tmp_path, "lake.drop_table('d.t')")
    assert writer.get({"k": "k1"}) is None
    writer.put({"k": "k1", "v": 1})
    with pytest.raises(UnavailableError, match="dropped"):
        writer.close()


def test_rows_that_are_flushed_while_memory_is_read_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The memtable that has a row is committed and dropped between the look into memory and the look for changes."""
    table = new_table(tmp_path)
    with table.writer(wal_folder=tmp_path / "wal") as writer:
        warm(writer)
        writer.put({"k": "k1", "v": 50})
        writer.get({"k": "k1"})
        look, flushed = point_lookup.PointLookup.find_recent, []

        def flushed_before(self: point_lookup.PointLookup, *asked: Any) -> bytes | None:
            if not flushed:
                flushed.append(True)
                writer.flush()
            return look(self, *asked)

        monkeypatch.setattr(point_lookup.PointLookup, "find_recent", flushed_before)
        assert writer.get({"k": "k1"}) == {"k": "k1", "v": 50}


def test_threads_read_their_own_writes_while_others_commit(tmp_path: Path) -> None:
    """Memtables of a kilobyte are flushed all the time; whatever a thread has put, it reads."""
    table = new_table(tmp_path, **{"memtable.size": "1 kb"})
    wrong: list[object] = []
    with table.writer(wal_folder=tmp_path / "wal") as writer:
        warm(writer)

        def work(own: int) -> None:
            try:
                for number in range(60):
                    writer.put({"k": f"own{own}", "v": number})
                    for one in (f"own{own}", "k5"):
                        found = writer.get({"k": one})
                        expected = {"k": one, "v": number if one != "k5" else 5}
                        if found != expected:
                            wrong.append((found, expected))
            except BaseException as error:
                wrong.append(error)

        threads = [threading.Thread(target=work, args=(own,)) for own in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []
