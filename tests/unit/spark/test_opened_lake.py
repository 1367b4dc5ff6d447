"""The lakes of Spark jobs share a cache, and see what is there now."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import lakelet
from lakelet.errors import InvalidError
from lakelet.spark.opened_lake import open_lake

COLUMNS = [("id", "INT NOT NULL"), ("v", "INT")]


def make(folder: Path, value: int) -> None:
    lake = lakelet.connect(folder)
    lake.create_database("d")
    lake.create_table("d.t", COLUMNS).write([{"id": 1, "v": value}])


def rows(folder: Path | str) -> list[dict[str, object]]:
    return open_lake(folder).table("d.t").scan().to_arrow().to_pylist()


def test_what_one_job_read_the_next_one_knows(tmp_path: Path) -> None:
    make(tmp_path, 1)
    first = open_lake(tmp_path)
    first.table("d.t").scan().plan()
    again = open_lake(f"{tmp_path}/.", {"write-buffer-size": "1 mb"})
    before = again.cache.get_all_metrics().overall_hit_ratio
    again.table("d.t").scan().plan()
    assert again.cache is first.cache
    assert again.cache.get_all_metrics().overall_hit_ratio > before


def test_other_options_and_credentials_have_another_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, 1)
    caches = [open_lake(tmp_path).cache, open_lake(tmp_path, {"cache.max-bytes": "1000000"}).cache]
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "somebody else")
    caches.append(open_lake(tmp_path).cache)
    assert len({id(cache) for cache in caches}) == 3


def test_a_folder_is_the_one_of_the_current_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in (1, 2):
        folder = tmp_path / str(number)
        folder.mkdir()
        make(folder / "lake", number)
        monkeypatch.chdir(folder)
        assert rows("lake") == [{"id": 1, "v": number}]


def test_changes_of_others_are_seen(tmp_path: Path) -> None:
    folder = tmp_path / "lake"
    make(folder, 1)
    assert rows(folder) == [{"id": 1, "v": 1}]
    lakelet.connect(folder).table("d.t").write([{"id": 2, "v": 2}])
    assert len(rows(folder)) == 2
    shutil.rmtree(folder)
    make(folder, 3)
    assert rows(folder) == [{"id": 1, "v": 3}]


def test_no_location(tmp_path: Path) -> None:
    with pytest.raises((InvalidError, TypeError)):
        open_lake(b"lake")  # type: ignore[arg-type]
