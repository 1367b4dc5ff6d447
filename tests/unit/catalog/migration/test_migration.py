"""A folder of Parquet files becomes a table, in this process: nothing is lost, nothing is adopted twice."""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelet.catalog.connect import connect
from lakelet.catalog.lake import Lake
from lakelet.catalog.migration import migrate, migration
from lakelet.catalog.migration.journal import NAME
from lakelet.errors import InvalidError, NotFoundError, UnavailableError


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    found = connect(str(tmp_path / "warehouse"))
    found.create_database("db")
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "events"


def put(first: int, *path: str | Path, **columns: Any) -> None:
    target = Path(*path)
    target.parent.mkdir(parents=True, exist_ok=True)
    numbers = pa.array(range(first, first + 3), pa.int64())
    pq.write_table(pa.table({"id": numbers, "name": pa.array(["x", None, "y"]), **columns}), target)


def ids(lake: Lake, **scan: Any) -> list[int]:
    return sorted(lake.table("db.t").scan(**scan).to_arrow().column("id").to_pylist())


def left(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_partitions_and_another_call(lake: Lake, folder: Path) -> None:
    put(0, folder, "dt=2026-01-01", "a.parquet")
    put(10, folder, "dt=__HIVE_DEFAULT_PARTITION__", "b.parquet")
    done = migrate(
        lake, "db.t", str(folder), partitioned_by=[("dt", "DATE")], table_options={"file.compression": "zstd"}
    )
    assert (done.files, done.rows) == (2, 6)
    found = lake.table("db.t").scan().to_arrow().sort_by("id").to_pylist()
    assert found[0] == {"id": 0, "name": "x", "dt": date(2026, 1, 1)}
    assert found[3]["dt"] is None
    assert ids(lake, where="dt = DATE '2026-01-01'") == [0, 1, 2]
    assert lake.table("db.t").options["file.compression"] == "zstd"
    assert left(folder) == []
    assert migrate(lake, "db.t", str(folder)).snapshot is None
    put(20, folder, "dt=2026-01-02", "c.parquet")
    assert migrate(lake, "db.t", str(folder)).files == 1
    assert lake.table("db.t").scan().count() == 9


@pytest.mark.parametrize("stop", ["place", "commit", "delete", "journal"])
def test_the_next_call_finishes(lake: Lake, folder: Path, monkeypatch: pytest.MonkeyPatch, stop: str) -> None:
    for number in range(3):
        put(10 * number, folder, f"part-{number}.parquet")

    def fails(*_: object, **__: object) -> None:
        raise UnavailableError("the lights went out")

    with monkeypatch.context() as patched:
        match stop:
            case "place":
                patched.setattr(migration, "data_file", fails)
            case "commit":
                patched.setattr(migration, "_messages", fails)
            case "delete":
                patched.setattr(type(lake._store), "delete", fails)
            case _:
                patched.setattr(migration, "remove_journal", fails)
        with pytest.raises(UnavailableError, match="lights"):
            migrate(lake, "db.t", str(folder))
    assert (folder / NAME).exists()
    assert len(ids(lake)) == (9 if stop in ("delete", "journal") else 0)
    with pytest.raises(InvalidError, match=r"a migration into .*/t was begun"):
        migrate(lake, "db.other", str(folder))
    done = migrate(lake, "db.t", str(folder))
    assert (done.files, done.rows) == (3, 9)
    assert ids(lake) == [0, 1, 2, 10, 11, 12, 20, 21, 22]
    assert left(folder) == []
    assert len(lake.table("db.t").snapshots()) == 1


def test_files_that_do_not_fit(lake: Lake, folder: Path) -> None:
    put(0, folder, "a.parquet")
    put(0, folder, "b.parquet", more=pa.array([1, 2, 3]))
    before = left(folder)
    with pytest.raises(
        InvalidError, match=r"1 files cannot be adopted .*\n.*b\.parquet: column 'more' is not in the table"
    ):
        migrate(lake, "db.t", str(folder))
    assert (left(folder), lake.table_exists("db.t")) == (before, False)


def test_tables_and_folders_that_do_not_fit(lake: Lake, folder: Path, tmp_path: Path) -> None:
    put(0, folder, "a.parquet")
    lake.create_table("db.keyed", [("id", "BIGINT"), ("name", "STRING")], primary_key=["id"], options={"bucket": "1"})
    with pytest.raises(InvalidError, match="without buckets"):
        migrate(lake, "db.keyed", str(folder))
    with pytest.raises(InvalidError, match="lie within each other"):
        migrate(lake, "db.t", str(tmp_path))
    with pytest.raises(NotFoundError, match="is no folder"):
        migrate(lake, "db.t", str(tmp_path / "none"))
    with pytest.raises(InvalidError, match="expected the columns that the folders"):
        migrate(lake, "db.t", str(folder), partitioned_by=["dt"])
    assert left(folder) == ["a.parquet"]


def test_disks_that_cannot_be_linked(lake: Lake, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(0, folder, "a.parquet")

    link = os.link

    def refuses(source: str, target: str, **options: Any) -> None:
        if source.endswith("a.parquet"):
            raise OSError(18, "Invalid cross-device link")
        link(source, target, **options)

    monkeypatch.setattr(os, "link", refuses)
    with pytest.raises(InvalidError, match="different file systems"):
        migrate(lake, "db.t", str(folder))
    assert (ids(lake), left(folder)) == ([], [NAME, "a.parquet"])
