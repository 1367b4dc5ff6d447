"""Persisted metadata of Iceberg tables: a new process reads no manifest that an earlier one has read."""

from __future__ import annotations

import logging
import math
from pathlib import Path

import pytest

from lakelet.catalog.lake import Lake
from lakelet.iceberg.metadata.uncached import UncachedIcebergMetadata
from tests.unit.iceberg.metadata.cached_lakes import FULL, NAME, appended, create, foreign, ids, opened, scan, uncached


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The manifests that are read from the store."""
    found: list[str] = []
    original = UncachedIcebergMetadata.manifest

    def noted(self, io, manifest, *rest):  # type: ignore[no-untyped-def]
        found.append(manifest.manifest_path)
        return original(self, io, manifest, *rest)

    monkeypatch.setattr(UncachedIcebergMetadata, "manifest", noted)
    return found


def persisting(folder: Path, cache: Path) -> Lake:
    """A lake that persists its cache when it is told to."""
    lake = opened(folder, {"cache.persist-folder": str(cache)})
    lake.cache.upkeep._next_save = math.inf
    return lake


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    lake = persisting(tmp_path / "lake", tmp_path / "cache")
    create(lake)
    for number in range(4):
        lake.sql(f"INSERT INTO {FULL} VALUES ({number}, 'd{number % 3}', {number}.5)")
    lake.sql(f"DELETE FROM {FULL} WHERE id = 2")
    assert ids(lake) == [0, 1, 3]
    scan(lake, "v > 1.0")
    scan(lake, "v > 1.5")
    assert lake.cache.persist() == 1
    return tmp_path / "lake", tmp_path / "cache"


@pytest.mark.parametrize("where", [None, "dt = 'd1'", "v > 1.0"])
def test_a_new_process_reads_no_manifest(places: tuple[Path, Path], read: list[str], where: str | None) -> None:
    expected = scan(uncached(places[0]), where).plan.files
    assert read
    read.clear()
    lake = persisting(*places)
    assert scan(lake, where).plan.files == expected
    assert read == []


def test_only_what_is_new_is_read(places: tuple[Path, Path], read: list[str]) -> None:
    appended(foreign(places[0]).load_table(NAME), 7, 8)
    lake = persisting(*places)
    assert ids(lake) == [0, 1, 3, 7, 8]
    assert len(set(read)) == 1


def test_a_table_of_the_same_name_has_nothing_of_the_old_one(places: tuple[Path, Path]) -> None:
    other = uncached(places[0])
    other.sql(f"DROP TABLE {FULL}")
    create(other)
    other.sql(f"INSERT INTO {FULL} VALUES (50, 'd0', 1.0)")
    assert ids(persisting(*places)) == [50]


def test_damaged_ones_are_discarded(
    places: tuple[Path, Path], read: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    for path in places[1].rglob("*"):
        if path.is_file():
            path.write_bytes(path.read_bytes()[:-9] + b"\x00" * 9)
    with caplog.at_level(logging.WARNING):
        assert ids(persisting(*places)) == [0, 1, 3]
    assert "discarded" in caplog.text
    assert read
