"""`table.get` again and again: strict whatever is kept, by lookup files once they pay, and without them where they cannot be."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lakelet
from lakelet import Lake, Table
from lakelet.read.lookup.block_cache import BLOCKS
from lakelet.read.lookup.point_reader import PointReader
from lakelet.read.serve.lookup_folder import lookup_folder
from lakelet.read.serve.serving_reader import ServingReader
from lakelet.table.read import kept_lookup
from lakelet.table.read.kept_lookup import THREAD_NAME

COLUMNS = [("id", "BIGINT NOT NULL"), ("v", "STRING")]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    kept_lookup._ASKED.clear()
    yield
    made()
    BLOCKS.clear()


@pytest.fixture
def table(tmp_path: Path) -> Table:
    lake = lakelet.connect(str(tmp_path / "warehouse"))
    lake.create_database("d")
    table = lake.create_table("d.t", COLUMNS, primary_key=["id"], options={"bucket": "2"})
    table.write([{"id": number, "v": f"v{number}"} for number in range(300)])
    return table


def made() -> None:
    """Wait for the threads that make lookup files."""
    for thread in threading.enumerate():
        if thread.name == THREAD_NAME:
            thread.join()


def ask(table: Table, times: int = 300) -> None:
    for number in range(times):
        assert table.get({"id": number}) == {"id": number, "v": f"v{number}"}


def local_files(tmp_path: Path) -> list[Path]:
    return sorted(tmp_path.glob("cache/lakelet/lookup/*/*.sst"))


class _Forbidden:
    def __init__(self, monkeypatch: pytest.MonkeyPatch, kind: type, name: str) -> None:
        monkeypatch.setattr(kind, name, lambda *_: pytest.fail(f"{kind.__name__}.{name} is not asked"))


def test_a_few_gets_make_no_lookup_file(table: Table, tmp_path: Path) -> None:
    ask(table, 60)
    made()
    assert local_files(tmp_path) == []


def test_many_gets_are_served_by_lookup_files(table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ask(table)
    made()
    assert len(local_files(tmp_path)) == 2
    with monkeypatch.context() as patch:
        _Forbidden(patch, PointReader, "get")
        ask(table)
        assert table.get({"id": -1}) is None
    # Other columns open the files that are there.
    assert table.get({"id": 5}, columns=["v"]) == {"v": "v5"}
    made()
    with monkeypatch.context() as patch:
        _Forbidden(patch, PointReader, "get")
        assert table.get({"id": 5}, columns=["v"]) == {"v": "v5"}


def test_gets_stay_strict(table: Table, tmp_path: Path) -> None:
    """A commit of this process or another, an ALTER, a delete and a rollback are seen by the next get."""
    ask(table)
    made()
    for turn in range(3):
        table.write([{"id": 5, "v": f"turn {turn}"}])
        assert table.get({"id": 5}) == {"id": 5, "v": f"turn {turn}"}
        made()
        assert table.get({"id": 5}) == {"id": 5, "v": f"turn {turn}"}
    table.delete([{"id": 5}])
    assert table.get({"id": 5}) is None
    script = f"import lakelet; lakelet.connect({str(tmp_path / 'warehouse')!r}).table('d.t').write([{{'id': 5, 'v': 'other'}}])"
    subprocess.run([sys.executable, "-c", script], check=True)
    assert table.get({"id": 5}) == {"id": 5, "v": "other"}
    newest = table.latest_snapshot()
    assert newest is not None
    table.rollback(newest.id - 1)
    assert table.get({"id": 5}) is None
    table.write([{"id": 5, "v": "again"}])
    again = table.latest_snapshot()
    assert again is not None
    assert again.id == newest.id
    assert table.get({"id": 5}) == {"id": 5, "v": "again"}
    table.rename_column("v", "V")
    table.add_column("v", "INT")
    assert table.get({"id": 5}) == {"id": 5, "V": "again", "v": None}
    assert table.get({"id": 6}) == {"id": 6, "V": "v6", "v": None}
    with pytest.raises(lakelet.InvalidError, match="'id' is missing"):
        table.get({"v": 1})


def test_a_small_commit_into_a_bucket_in_use_is_served_at_once(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    ask(table)
    made()
    table.write([{"id": number, "v": "newer"} for number in range(0, 300, 2)])
    assert table.get({"id": 4}) == {"id": 4, "v": "newer"}
    for number in range(8):
        table.get({"id": number})
    made()
    _Forbidden(monkeypatch, PointReader, "get")
    assert [table.get({"id": number}) for number in (4, 5)] == [{"id": 4, "v": "newer"}, {"id": 5, "v": "v5"}]


@pytest.mark.parametrize(("size", "most"), [("0 b", 0), ("10 b", 2)])
def test_gets_without_room_for_lookup_files(
    table: Table, tmp_path: Path, size: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit of 0 has none made; one that is too small is found out once for each bucket, not again and again."""
    opened: list[object] = []
    open_bucket = ServingReader.open

    def noted(reader: ServingReader, split: Any) -> None:
        opened.append(split)
        open_bucket(reader, split)

    monkeypatch.setattr(ServingReader, "open", noted)
    table.set_options({"lookup.cache-max-disk-size": size})
    for _ in range(5):
        ask(table)
        made()
    assert local_files(tmp_path) == []
    assert len(opened) == most


def test_gets_where_the_folder_cannot_be_made(table: Table, tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "lakelet").write_text("in the way")
    for _ in range(2):
        ask(table)
        made()


def test_lookup_files_that_vanish(table: Table, tmp_path: Path) -> None:
    ask(table)
    made()
    folder = lookup_folder(str(tmp_path / "cache" / "lakelet" / "lookup"))
    folder.sweep(1e12)
    assert local_files(tmp_path) == []
    ask(table)
    made()
    for path in local_files(tmp_path):
        path.write_bytes(b"damaged")
    BLOCKS.clear()
    ask(table)


def test_a_folder_that_is_lost_after_lookup_files_were_made(
    table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(table)
    made()

    def broken(*_: object) -> Any:
        raise lakelet.errors.UnavailableError("the disk is gone")

    monkeypatch.setattr(ServingReader, "find", broken)
    ask(table)


def test_a_forked_process_starts_anew(table: Table) -> None:
    ask(table)
    made()
    child = os.fork()
    if child == 0:
        ok = [table.get({"id": number}) for number in range(50)] == [
            {"id": number, "v": f"v{number}"} for number in range(50)
        ]
        os._exit(0 if ok else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_threads_and_commits(table: Table, tmp_path: Path) -> None:
    """Every get sees at least the commit that was made before it began."""
    ask(table)
    committed = [-1]
    wrong: list[object] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            least = committed[0]
            row = table.get({"id": 7})
            if row is None or (least >= 0 and int(row["v"]) < least):
                wrong.append((least, row))

    table.write([{"id": 7, "v": "-1"}])
    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    other = Lake(table.home.store).table("d.t")
    for turn in range(12):
        other.write([{"id": 7, "v": str(turn)}])
        committed[0] = turn
    done.set()
    for thread in threads:
        thread.join()
    assert wrong == []
