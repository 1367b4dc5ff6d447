"""Rule 27: deletions follow no link, and take no live name for a leftover that begins like one."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from lakelet.catalog.lake import Lake
from lakelet.commit.metadata.schemas import latest_schema
from lakelet.errors import InvalidError
from lakelet.format.metadata.schema_json import encode_schema
from lakelet.ids import RandomIds
from lakelet.storage.disk.local_store import LocalStore
from lakelet.table import Table
from tests.unit.moving_clock import MovingClock

FAR_MS = 4_000_000_000_000


def lake_on(folder: Path) -> Lake:
    """A lake whose clock is so far ahead that every file is old."""
    return Lake(LocalStore(folder, durable=False), clock=MovingClock(FAR_MS))


def filled(lake: Lake, **options: str) -> Table:
    lake.create_database("d", if_not_exists=True)
    columns = [("id", "BIGINT"), ("p", "STRING")]
    table = lake.create_table("d.t", columns, partitioned_by=["p"], options={"write-only": "true"} | options)
    put(table, 1)
    put(table, 2)
    return table


def put(table: Table, number: int, mode: str = "append") -> None:
    table.write(pa.table({"id": [number, number], "p": ["a", "b"]}), mode=mode)


def ids(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow().column("id").to_pylist())


def foreign(folder: Path) -> dict[str, bytes]:
    """Somebody else's files, old, under names that a table could have."""
    names = ("data-1.parquet", "bucket-0/data-2.parquet", "snapshot/left-over", ".tmp-x", f".tmp-{RandomIds().uuid()}")
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(name.encode())
        os.utime(folder / name, (0, 0))
    return {name: (folder / name).read_bytes() for name in names}


def still(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


LINKS = [
    "bucket-7",
    "p=a/bucket-7",
    "p=linked",
    "p=linked/bucket-0",
    "manifest/more",
    "index",
    "statistics",
    "changelog",
    "branch/branch-linked",
    "anything",
]


@pytest.mark.parametrize("link", LINKS)
def test_27_orphans_are_not_looked_for_behind_links(tmp_path: Path, link: str) -> None:
    table = filled(lake_on(tmp_path / "w"))
    theirs = tmp_path / "elsewhere"
    kept = foreign(theirs)
    path = tmp_path / "w/d.db/t" / link
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(theirs)
    assert table.remove_orphan_files(dry_run=True).count == 0
    assert table.remove_orphan_files().count == 0
    assert still(theirs) == kept
    assert path.is_symlink()
    assert ids(table) == [1, 1, 2, 2]


@pytest.mark.parametrize("link", [*LINKS, "snapshot/more", "tag"])
def test_27_dropping_a_table_takes_links_and_not_what_they_lead_to(tmp_path: Path, link: str) -> None:
    lake = lake_on(tmp_path / "w")
    filled(lake)
    theirs = tmp_path / "elsewhere"
    kept = foreign(theirs)
    path = tmp_path / "w/d.db/t" / link
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(theirs)
    lake.drop_table("d.t")
    assert still(theirs) == kept
    assert not (tmp_path / "w/d.db/t").exists()
    assert [path.name for path in (tmp_path / "w/d.db").iterdir()] == []


@pytest.mark.parametrize("part", ["", "d.db", "d.db/t"])
def test_27_a_warehouse_database_or_table_that_is_linked_from_elsewhere_works(tmp_path: Path, part: str) -> None:
    filled(lake_on(tmp_path / "w"))
    place = tmp_path / "w" / part
    (tmp_path / "disk").mkdir()
    place.rename(tmp_path / "disk/moved")
    place.symlink_to(tmp_path / "disk/moved")
    lake = lake_on(tmp_path / "w")
    table = lake.table("d.t")
    put(table, 3, mode="overwrite")
    put(table, 4)
    assert ids(table) == [3, 3, 4, 4]
    before = sum(1 for _ in tmp_path.rglob("data-*"))
    assert table.expire_snapshots(retain_last=1).files > 0
    assert sum(1 for _ in tmp_path.rglob("data-*")) < before
    table.branches.create("dev")
    table.branches.delete("dev")
    assert ids(table) == [3, 3, 4, 4]
    stray = tmp_path / "w/d.db/t/p=a/bucket-0/data-lost.parquet"
    stray.write_bytes(b"x")
    os.utime(stray, (0, 0))
    assert table.remove_orphan_files().paths == ("d.db/t/p=a/bucket-0/data-lost.parquet",)


@pytest.mark.parametrize(
    "drop", [lambda lake: lake.drop_table("d.t"), lambda lake: lake.drop_database("d", cascade=True)]
)
@pytest.mark.parametrize("part", ["d.db/t", "d.db"])
def test_27_what_is_linked_from_elsewhere_leaves_the_warehouse_alone(
    tmp_path: Path, part: str, drop: Callable[[Lake], None]
) -> None:
    lake = lake_on(tmp_path / "w")
    filled(lake)
    place = tmp_path / "w" / part
    place.rename(tmp_path / "moved")
    place.symlink_to(tmp_path / "moved")
    kept = still(tmp_path / "moved")
    drop(lake)
    assert not lake.table_exists("d.t")
    if part == "d.db/t" or not place.exists():
        assert still(tmp_path / "moved") == kept


def test_27_expired_files_behind_a_link_stay(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table = filled(lake_on(tmp_path / "w"))
    bucket = tmp_path / "w/d.db/t/p=a/bucket-0"
    bucket.rename(tmp_path / "moved")
    bucket.symlink_to(tmp_path / "moved")
    put(table, 3, mode="overwrite")
    kept = still(tmp_path / "moved")
    assert ids(table) == [3, 3]
    table.expire_snapshots(retain_last=1)
    assert still(tmp_path / "moved") == kept
    assert "symbolic link" in caplog.text
    assert ids(table) == [3, 3]
    assert table.expire_snapshots(retain_last=1).ids == ()


def test_27_a_branch_that_is_linked_is_only_unlinked(tmp_path: Path) -> None:
    table = filled(lake_on(tmp_path / "w"))
    table.branches.create("dev")
    folder = tmp_path / "w/d.db/t/branch/branch-dev"
    folder.rename(tmp_path / "moved")
    folder.symlink_to(tmp_path / "moved")
    kept = still(tmp_path / "moved")
    table.branches.delete("dev")
    assert still(tmp_path / "moved") == kept
    assert not folder.is_symlink()


# ---------------------------------------------------------------- names


# Written out: the workers of a test run compare the names of their tests.
UUID = "0b3f2a9e-5c1d-4e7a-9f60-1d2c3b4a5e6f"


@pytest.mark.parametrize("name", [".tmp-", ".deleted-", ".", ".x", ".tmp-" + UUID])
@pytest.mark.parametrize("option", ["data-file.prefix", "changelog-file.prefix", "data-file.path-directory"])
def test_27_names_that_begin_with_a_dot_are_refused(tmp_path: Path, option: str, name: str) -> None:
    lake = lake_on(tmp_path)
    lake.create_database("d")
    with pytest.raises(InvalidError, match=r"data-file|changelog-file"):
        lake.create_table("d.u", [("id", "BIGINT")], options={option: name})
    table = filled(lake)
    with pytest.raises(InvalidError, match=r"data-file|changelog-file"):
        table.set_options({option: name})


@pytest.mark.parametrize("folder", ["a/.b", "branch/branch-x", "snapshot", "manifest/a", "tag", "index"])
def test_27_data_has_no_place_in_hidden_folders_and_among_metadata(tmp_path: Path, folder: str) -> None:
    lake = lake_on(tmp_path)
    lake.create_database("d")
    with pytest.raises(InvalidError, match=r"data-file\.path-directory"):
        lake.create_table("d.u", [("id", "BIGINT")], options={"data-file.path-directory": folder})
    with pytest.raises(InvalidError, match="does not begin with"):
        lake.create_table("d.u", [("id", "BIGINT"), (".tmp-p", "INT")], partitioned_by=[".tmp-p"])


@pytest.mark.parametrize(
    "options",
    [
        {"data-file.prefix": ".tmp-"},
        {"data-file.prefix": ".deleted-"},
        {"data-file.prefix": f".tmp-{UUID}"},
        {"data-file.path-directory": ".deleted-x"},
        {"data-file.path-directory": f".deleted-{UUID}"},
        {"data-file.path-directory": f".tmp-{UUID}/y"},
    ],
    ids=str,
)
def test_27_live_files_under_such_names_that_another_engine_chose_stay(tmp_path: Path, options: dict[str, str]) -> None:
    lake = lake_on(tmp_path)
    table = filled(lake)
    schema = latest_schema(table.home)
    written = replace(schema, options={**schema.options, **options})
    lake.create_table("d.u", [("id", "BIGINT"), ("p", "STRING")], partitioned_by=["p"])
    other = lake.table("d.u")
    other.home.store.put(other.home.paths.schema(0), encode_schema(written))
    put(other, 1)
    put(other, 2)
    for path in tmp_path.rglob("*"):
        os.utime(path, (0, 0))
    assert other.remove_orphan_files(dry_run=True).count == 0
    assert other.remove_orphan_files().count == 0
    assert ids(other) == [1, 1, 2, 2]


def test_leftovers_are_counted_with_the_orphans(tmp_path: Path) -> None:
    table = filled(lake_on(tmp_path))
    folder = tmp_path / "d.db/t"
    (folder / f"p=a/bucket-0/.tmp-{UUID}").write_bytes(b"12345")
    (folder / f"snapshot/.snapshot-9.{UUID}.tmp").write_bytes(b"123")
    (folder / f".deleted-{UUID}/below").mkdir(parents=True)
    (folder / f".deleted-{UUID}/below/x").write_bytes(b"12")
    (folder / f"manifest/.deleted-{UUID}").symlink_to(tmp_path)
    found = table.remove_orphan_files(dry_run=True)
    assert (found.count, found.bytes, found.leftovers, found.dry_run) == (3, 10, 3, True)
    assert f"d.db/t/p=a/bucket-0/.tmp-{UUID}" in found.paths
    removed = table.remove_orphan_files()
    assert (removed.count, removed.bytes, removed.paths) == (found.count, found.bytes, found.paths)
    assert not list(folder.rglob(".tmp-*"))
    assert table.remove_orphan_files().count == 0
    assert ids(table) == [1, 1, 2, 2]
