"""Persisted metadata of native tables: restored, revalidated in every mode, discarded when damaged, shared without harm."""

from __future__ import annotations

import logging
import math
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from lakelet.cache.settings import CacheSettings
from lakelet.cache.upkeep.persisted_file import Piece
from lakelet.catalog.lake import Lake
from lakelet.catalog.metadata_cache.open import cached_metadata
from lakelet.storage.disk.local_store import LocalStore
from lakelet.testing import CountingStore

NAME = "shop.orders"


def opened(
    folder: Path, persisted: Path, *, saves_by_itself: bool = False, **options: str
) -> tuple[Lake, CountingStore]:
    """A lake like that of another process: it hears of no changes, and has only the folder in common with others.

    It saves when it is told to: when a thread does it depends on how busy the machine is.
    """
    store = CountingStore(LocalStore(str(folder)))
    given = {"cache.persist-folder": str(persisted), **{name.replace("_", "."): text for name, text in options.items()}}
    source = cached_metadata(store, CacheSettings.of(given), listens=False)
    if not saves_by_itself:
        source.cache.upkeep._next_save = math.inf
    return Lake(store, metadata=source, cache=source.cache), store


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    lake, _ = opened(tmp_path / "lake", tmp_path / "cache")
    lake.create_database("shop")
    table = lake.create_table(NAME, [("id", "BIGINT NOT NULL"), ("dt", "STRING NOT NULL")], partitioned_by=["dt"])
    for number in range(4):
        table.write([{"id": number, "dt": f"d{number % 2}"}])
    table.scan().plan()
    table.scan(where="dt = 'd1'").plan()
    assert lake.cache.persist() == 1
    assert lake.cache.persist() == 0
    return tmp_path / "lake", tmp_path / "cache"


def manifests_read(store: CountingStore) -> list[str]:
    return [path for call, path in store.log if call != "list_folder" and "/manifest/" in path]


def saved_in_background(lake: Lake) -> None:
    """Waits for the save that the first cached values have begun; what is cached after it waits for the interval."""
    for thread in threading.enumerate():
        begun = isinstance(thread, threading.Timer) and thread.function == lake.cache.upkeep._timed_save
        if begun and thread.interval < 60:
            thread.join()


def rows(lake: Lake) -> int:
    return len(lake.table(NAME).scan().to_arrow())


@pytest.mark.parametrize("staleness", ["strict", "manual", "bounded(100000)"])
def test_a_new_process_reads_no_manifest(places: tuple[Path, Path], staleness: str) -> None:
    plain, counted = opened(places[0], places[1].with_name("none"))
    expected = plain.table(NAME).scan(cache=False).plan()
    assert manifests_read(counted)
    lake, store = opened(*places, cache_staleness=staleness)
    assert lake.table(NAME).scan().plan() == expected
    assert manifests_read(store) == []


@pytest.mark.parametrize("staleness", ["strict", "manual", "bounded(100000)"])
def test_a_persisted_pointer_is_checked_before_its_first_use(places: tuple[Path, Path], staleness: str) -> None:
    opened(places[0], places[1].with_name("none"))[0].table(NAME).write([{"id": 9, "dt": "d9"}])
    lake, _ = opened(*places, cache_staleness=staleness)
    assert rows(lake) == 5
    lake.cache.persist()
    other, _ = opened(*places, cache_staleness=staleness)
    other.table(NAME).add_column("v", "STRING")
    lake, _ = opened(*places, cache_staleness=staleness)
    assert lake.table(NAME).scan().schema.fields[-1].name == "v"


def test_a_recreated_table_never_shows_the_old_one(places: tuple[Path, Path]) -> None:
    other, _ = opened(places[0], places[1].with_name("none"))
    other.drop_table(NAME)
    other.create_table(NAME, [("id", "BIGINT NOT NULL"), ("dt", "STRING NOT NULL")], partitioned_by=["dt"])
    for staleness in ("strict", "manual"):
        assert rows(opened(*places, cache_staleness=staleness)[0]) == 0
    other.table(NAME).write([{"id": 7, "dt": "x"}])
    for staleness in ("strict", "manual"):
        found = opened(*places, cache_staleness=staleness)[0].table(NAME).scan().to_arrow()
        assert found.to_pylist() == [{"id": 7, "dt": "x"}]
    other.drop_table(NAME)
    lake, _ = opened(*places, cache_staleness="manual")
    assert not lake.table_exists(NAME)


def test_a_rollback_and_another_commit_to_the_same_id_are_seen(places: tuple[Path, Path]) -> None:
    other, _ = opened(places[0], places[1].with_name("none"))
    other.table(NAME).rollback(to=3)
    other.table(NAME).write([{"id": 77, "dt": "z"}])
    for staleness in ("strict", "manual"):
        found = opened(*places, cache_staleness=staleness)[0].table(NAME).scan().to_arrow().column("id").to_pylist()
        assert sorted(found) == [0, 1, 2, 77]


def test_a_damaged_file_is_discarded_and_written_anew(
    places: tuple[Path, Path], caplog: pytest.LogCaptureFixture
) -> None:
    (path,) = (one for one in places[1].rglob("*") if one.is_file() and one.name != "history")
    path.write_bytes(path.read_bytes()[:100])
    with caplog.at_level(logging.WARNING):
        lake, store = opened(*places)
        assert rows(lake) == 4
    assert "discarded" in caplog.text
    assert manifests_read(store)
    lake.cache.persist()
    again, store = opened(*places)
    assert rows(again) == 4
    assert manifests_read(store) == []


class Bomb:
    """What a pickle would run."""

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, ("exploded",)


HOSTILE = [
    Piece("manifest", ("m", "all"), b"garbage"),
    Piece("manifest", ("m", "all"), pickle.dumps(Bomb())),
    Piece("manifest", ("m",), b""),
    Piece("manifest list", ("l",), pickle.dumps(Bomb())),
    Piece("manifest list", ("l",), b"Obj\x01" + b"\xff" * 50),
    Piece("manifest list", ("l",), b"[" * 100_000),
    Piece("snapshot pointer", ("main", "1"), b"{}"),
    Piece("snapshot pointer", ("main", "4"), b"[" * 100_000),
    Piece("snapshot pointer", ("main",), b"{}"),
    Piece("schema pointer", ("main", "zero"), b"{}"),
    Piece("schema pointer", ("main", "0"), pickle.dumps(Bomb())),
    Piece("something else", (), b""),
]


@pytest.mark.parametrize("piece", HOSTILE, ids=range(len(HOSTILE)))
def test_a_prepared_file_runs_nothing_and_is_discarded(
    places: tuple[Path, Path],
    piece: Piece,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.chdir(tmp_path)
    persistence = opened(*places)[0].cache.upkeep.persistence
    assert persistence is not None
    persistence._folder.write_table("lakelet.shop.orders", [piece])
    with caplog.at_level(logging.WARNING):
        assert rows(opened(*places)[0]) == 4
    assert "discarded" in caplog.text
    assert not Path("exploded").exists()


def test_branches_are_restored_with_their_table(places: tuple[Path, Path]) -> None:
    lake, _ = opened(*places)
    table = lake.table(NAME)
    table.branches.create("dev", version=2)
    table.on_branch("dev").write([{"id": 50, "dt": "d1"}])
    assert len(table.on_branch("dev").scan().to_arrow()) == 3
    assert rows(lake) == 4
    lake.cache.persist()
    again, store = opened(*places)
    assert len(again.table(NAME).on_branch("dev").scan().to_arrow()) == 3
    assert rows(again) == 4
    assert manifests_read(store) == []


def test_a_table_that_was_invalidated_is_not_restored(places: tuple[Path, Path]) -> None:
    lake, store = opened(*places)
    lake.cache.invalidate_table(NAME)
    other, counted = opened(*places)
    assert rows(other) == 4
    assert manifests_read(counted)
    assert rows(lake) == 4
    assert manifests_read(store)
    lake.cache.persist()
    lake, store = opened(*places)
    lake.cache.invalidate_catalog("lakelet")
    assert rows(lake) == 4
    assert manifests_read(store)


def test_two_processes_share_a_folder(places: tuple[Path, Path]) -> None:
    first, _ = opened(*places)
    second, _ = opened(*places, cache_staleness="manual")
    for number in range(6):
        writer, reader = (first, second) if number % 2 else (second, first)
        writer.table(NAME).write([{"id": 100 + number, "dt": f"d{number % 2}"}])
        writer.cache.refresh_table(NAME)
        assert rows(writer) == 5 + number
        writer.cache.persist()
        reader.cache.refresh_table(NAME)
        assert rows(reader) == 5 + number
        reader.cache.persist()
        assert rows(opened(*places)[0]) == 5 + number


def test_the_history_is_persisted_and_added_up(places: tuple[Path, Path]) -> None:
    before = dict(opened(*places)[0].cache.hottest_tables())
    counts = []
    for _ in range(2):
        lake, _ = opened(*places)
        rows(lake)
        lake.cache.persist()
        counts.append(dict(lake.cache.hottest_tables())["lakelet.shop.orders"])
    assert before["lakelet.shop.orders"] < counts[0] < counts[1]


def test_queries_alone_are_saved_too(places: tuple[Path, Path]) -> None:
    lake, _ = opened(*places)
    rows(lake)
    lake.cache.persist()
    assert lake.cache.persist() == 0
    before = dict(opened(*places)[0].cache.hottest_tables())["lakelet.shop.orders"]
    rows(lake)
    assert lake.cache.upkeep.has_changes
    assert lake.cache.persist() == 0
    assert dict(opened(*places)[0].cache.hottest_tables())["lakelet.shop.orders"] > before


def test_a_damaged_history_is_forgotten(places: tuple[Path, Path]) -> None:
    (path,) = places[1].rglob("history")
    path.write_bytes(b"LKCACHE\nnonsense")
    lake, _ = opened(*places)
    assert lake.cache.hottest_tables() == []
    assert rows(lake) == 4
    assert len(lake.cache.hottest_tables()) == 1


def test_a_forked_process_writes_nothing_of_its_parent(places: tuple[Path, Path]) -> None:
    lake, _ = opened(*places, saves_by_itself=True, **{"cache.persist-interval": "1 h"})
    lake.table(NAME).write([{"id": 9, "dt": "d9"}])
    rows(lake)
    saved_in_background(lake)
    persistence = lake.cache.upkeep.persistence
    assert persistence is not None
    persistence.changed(lake.cache.key(NAME))
    child = os.fork()
    if child == 0:
        os._exit(0 if lake.cache.persist() == 0 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert lake.cache.persist() == 1


def test_the_first_values_are_saved_soon_and_others_after_the_interval(places: tuple[Path, Path]) -> None:
    lake, _ = opened(*places, saves_by_itself=True, **{"cache.persist-interval": "1 h"})
    lake.create_table("shop.other", [("id", "BIGINT")]).write([{"id": 1}])
    lake.table("shop.other").scan().to_arrow()
    saved_in_background(lake)
    assert len([one for one in places[1].rglob("*") if one.is_file() and one.name != "history"]) == 2
    lake.create_table("shop.third", [("id", "BIGINT")]).scan().to_arrow()
    timer = lake.cache.upkeep._timer
    assert timer is not None
    assert timer.interval > 3000
    lake.cache.close()
    assert not timer.is_alive()
    assert len([one for one in places[1].rglob("*") if one.is_file() and one.name != "history"]) == 3


def test_a_lake_that_is_dropped_or_at_the_end_of_a_process_is_saved(tmp_path: Path) -> None:
    code = (
        "import gc, sys, threading, lakelet\n"
        "options = {'cache.persist-folder': sys.argv[2], 'cache.persist-interval': '1 h', 'cache.refresh-interval': '1 h'}\n"
        "def use(name):\n"
        "    lake = lakelet.connect(sys.argv[1], options)\n"
        "    lake.sql('CREATE DATABASE IF NOT EXISTS db')\n"
        "    lake.cache.upkeep._next_save = float('inf')\n"
        "    lake.sql(f'CREATE TABLE db.{name} (id INT)')\n"
        "    lake.sql(f'INSERT INTO db.{name} VALUES (1)')\n"
        "    lake.sql(f'SELECT * FROM db.{name}').rows()\n"
        "    return lake\n"
        "use('dropped')\n"
        "gc.collect()\n"
        "kept = use('kept')\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "lake"), str(tmp_path / "cache")]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert (run.returncode, run.stderr) == (0, "")
    store = CountingStore(LocalStore(str(tmp_path / "lake")))
    source = cached_metadata(store, CacheSettings.of({"cache.persist-folder": str(tmp_path / "cache")}), listens=False)
    lake = Lake(store, metadata=source, cache=source.cache)
    for name in ("db.dropped", "db.kept"):
        assert len(lake.table(name).scan().to_arrow()) == 1
    assert manifests_read(store) == []


def test_closing_saves_what_is_left(places: tuple[Path, Path]) -> None:
    lake, _ = opened(*places)
    lake.table(NAME).write([{"id": 9, "dt": "d9"}])
    rows(lake)
    lake.cache.close()
    again, store = opened(*places)
    assert rows(again) == 5
    assert manifests_read(store) == []


def test_statements_name_no_folder(places: tuple[Path, Path], tmp_path: Path) -> None:
    lake, _ = opened(*places)
    with pytest.raises(Exception, match="given to connect"):
        lake.sql(f"ADMIN SET FRONTEND CONFIG (\"cache.persist-folder\" = '{tmp_path}/elsewhere')")
