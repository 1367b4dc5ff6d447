"""Expiry, orphans and rewrites on real tables, judged by pyiceberg and by the files that are there."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.table.statistics import StatisticsFile
from pyiceberg.typedef import Record

from lakelet.errors import ConflictError, InvalidError
from lakelet.iceberg.branches import create_branch, create_tag, drop_branch, drop_tag, rollback_to_snapshot
from lakelet.iceberg.catalog.iceberg_catalog import IcebergCatalog
from lakelet.iceberg.maintenance import orphans
from lakelet.iceberg.maintenance.data_file_rewrite import rewrite_data_files
from lakelet.iceberg.maintenance.expiry import expire_snapshots
from lakelet.iceberg.maintenance.manifest_rewrite import rewrite_manifests
from lakelet.iceberg.maintenance.orphans import normalised, remove_orphan_files
from lakelet.iceberg.table import IcebergTable
from tests.iceberg.delete_commits import commit_deletes, data_paths, equality_deletes, position_deletes
from tests.unit.iceberg.commit.tables import (
    CatalogHooks,
    begin,
    check_sums,
    files_below,
    new_catalog,
    new_table,
    rows_of,
    set_partitions,
    write,
)
from tests.unit.moving_clock import MovingClock

COLUMNS = pa.schema([("id", pa.int64()), ("day", pa.int32())])
FAR_MS = 4_000_000_000_000


@pytest.fixture
def catalog(tmp_path: Path) -> IcebergCatalog:
    return new_catalog(tmp_path)


@pytest.fixture
def table(catalog: IcebergCatalog) -> IcebergTable:
    return new_table(catalog, COLUMNS, {"day": "identity"})


def row(number: int, day: int = 1) -> dict[str, object]:
    return {"id": number, "day": day}


def ids(table: IcebergTable, branch: str | None = None) -> list[object]:
    return sorted(one["id"] for one in rows_of(table, branch))  # type: ignore[type-var]


def all_readable(table: IcebergTable) -> None:
    library = table.reloaded().library
    for snapshot in library.snapshots():
        library.scan(snapshot_id=snapshot.snapshot_id).to_arrow()


def parquet_files(folder: Path) -> set[str]:
    return {path for path in files_below(folder) if path.endswith(".parquet")}


# ---------------------------------------------------------------- expiry


def test_expiry_removes_what_only_old_snapshots_had(table: IcebergTable, tmp_path: Path) -> None:
    for number in range(4):
        write(table, [row(number), row(10 + number, 2)], "overwrite" if number % 2 else "append")
    before = parquet_files(tmp_path)
    done = expire_snapshots(table, older_than_ms=FAR_MS)
    assert len(done.snapshots) == 3
    assert ids(table) == [3, 13]
    assert len(parquet_files(tmp_path)) == 2
    assert done.removed_files == len(before) - 2
    assert done.removed_manifest_lists == 3
    library = table.reloaded().library
    lists = {path for path in files_below(tmp_path) if "/snap-" in path}
    assert len(lists) == len(library.snapshots()) == 1
    all_readable(table)
    write(table, [row(99)])
    check_sums(table)


def test_expiry_keeps_what_names_lead_to(table: IcebergTable) -> None:
    first = write(table, [row(1)])
    assert first is not None
    create_tag(table, "v1")
    write(table, [row(2)], "overwrite")
    create_branch(table, "dev")
    write(table, [row(3)], "overwrite", branch="dev")
    write(table, [row(4)], "overwrite")
    done = expire_snapshots(table, older_than_ms=FAR_MS)
    assert len(done.snapshots) == 1
    assert (ids(table), ids(table, "dev"), ids(table, "v1")) == ([4], [3], [1])
    drop_tag(table, "v1")
    drop_branch(table, "dev")
    expire_snapshots(table, older_than_ms=FAR_MS)
    assert ids(table) == [4]
    assert len(table.reloaded().library.snapshots()) == 1


def test_by_default_days_are_kept(table: IcebergTable) -> None:
    clock = MovingClock()
    for number in range(3):
        write(table, [row(number)], clock=clock)
    assert expire_snapshots(table, clock=clock).snapshots == ()
    clock.move(days=6)
    assert len(expire_snapshots(table, clock=clock).snapshots) == 2
    assert ids(table) == [0, 1, 2]


def test_the_tables_properties_count(catalog: IcebergCatalog) -> None:
    settings = {"history.expire.max-snapshot-age-ms": "0", "history.expire.min-snapshots-to-keep": "2"}
    table = new_table(catalog, COLUMNS, properties=settings)
    for number in range(4):
        write(table, [row(number)])
    clock = MovingClock(FAR_MS)
    assert len(expire_snapshots(table, clock=clock).snapshots) == 2
    assert len(table.reloaded().library.snapshots()) == 2


def test_one_snapshot_by_its_id(table: IcebergTable) -> None:
    made = [write(table, [row(number)]) for number in range(4)]
    assert made[1] is not None
    done = expire_snapshots(table, snapshot_ids=[made[1].id])
    assert done.snapshots == (made[1].id,)
    assert done.removed_files == 0
    all_readable(table)
    assert ids(table) == [0, 1, 2, 3]


def test_a_snapshot_by_its_id_takes_no_old_names_along(table: IcebergTable) -> None:
    made = [write(table, [row(number)]) for number in range(3)]
    assert made[0] is not None
    assert made[1] is not None
    create_tag(table, "old", snapshot_id=made[0].id, keep=timedelta(milliseconds=1))
    done = expire_snapshots(table, snapshot_ids=[made[1].id], clock=MovingClock(FAR_MS))
    assert (done.snapshots, done.refs) == ((made[1].id,), ())
    assert table.reloaded().tag_names() == ["old"]


def test_files_of_a_shared_table_stay(catalog: IcebergCatalog) -> None:
    table = new_table(catalog, COLUMNS, properties={"gc.enabled": "false"})
    with pytest.raises(InvalidError, match=r"gc\.enabled"):
        expire_snapshots(table)
    with pytest.raises(InvalidError, match=r"gc\.enabled"):
        remove_orphan_files(table)


def test_expiry_is_worked_out_anew_after_a_conflict(catalog: IcebergCatalog, table: IcebergTable) -> None:
    for number in range(3):
        write(table, [row(number)], "overwrite")
    first = table.reloaded().library.snapshots()[0].snapshot_id
    hooks = CatalogHooks(catalog)
    hooks.before = [lambda: _ignored(rollback_to_snapshot(table, first))]
    expire_snapshots(table, older_than_ms=FAR_MS)
    assert hooks.calls == 3
    assert ids(table) == [0]


def test_statistics_go_with_their_snapshot(table: IcebergTable, tmp_path: Path) -> None:
    write(table, [row(1)])
    library = table.reloaded().library
    snapshot = library.current_snapshot()
    assert snapshot is not None
    path = f"{library.location()}/metadata/old.stats"
    with library.io.new_output(path).create() as sink:
        sink.write(b"x")
    statistics = StatisticsFile.model_validate(
        {
            "snapshot-id": snapshot.snapshot_id,
            "statistics-path": path,
            "file-size-in-bytes": 1,
            "file-footer-size-in-bytes": 1,
            "blob-metadata": [],
        }
    )
    with library.update_statistics() as update:
        update.set_statistics(statistics)
    assert remove_orphan_files(table, older_than_ms=FAR_MS, clock=MovingClock(FAR_MS)).paths == ()
    write(table, [row(2)])
    assert expire_snapshots(table, older_than_ms=FAR_MS).removed_statistics == 1
    assert "shop/orders/metadata/old.stats" not in files_below(tmp_path)


# ---------------------------------------------------------------- orphans


def test_only_orphans_go(table: IcebergTable, tmp_path: Path) -> None:
    write(table, [row(1)])
    write(table, [row(2)], "overwrite")
    create_branch(table, "dev")
    write(table, [row(3)], branch="dev")
    known = files_below(tmp_path)
    begin(table, [row(4)])
    root = tmp_path / "shop" / "orders"
    (root / "metadata" / "version-hint.text").write_text("3")
    (root / "data" / "_temporary").mkdir()
    (root / "data" / "_temporary" / "x").write_text("x")
    (root / "data" / "_day=1").mkdir()
    (root / "data" / "_day=1" / "lost.parquet").write_text("x")
    other = root / "nested" / "metadata"
    other.mkdir(parents=True)
    (other / "00000-x.metadata.json").write_text("{}")
    (root / "nested" / "data.parquet").write_text("x")
    kept = known | {
        "shop/orders/metadata/version-hint.text",
        "shop/orders/data/_temporary/x",
        "shop/orders/nested/metadata/00000-x.metadata.json",
        "shop/orders/nested/data.parquet",
    }
    clock = MovingClock(FAR_MS)
    dry = remove_orphan_files(table, older_than_ms=FAR_MS, dry_run=True, clock=clock)
    assert len(dry.paths) == 2
    assert files_below(tmp_path) - kept == {str(Path(path).relative_to(tmp_path)) for path in dry.paths}
    done = remove_orphan_files(table, older_than_ms=FAR_MS, clock=clock)
    assert done == dry
    assert files_below(tmp_path) == kept
    all_readable(table)


def test_27_orphans_are_not_looked_for_behind_links(table: IcebergTable, tmp_path: Path) -> None:
    write(table, [row(1)])
    theirs = tmp_path / "elsewhere"
    theirs.mkdir()
    (theirs / "data.parquet").write_bytes(b"theirs")
    root = Path(normalised(table.metadata.location))
    (root / "data/linked").symlink_to(theirs)
    (root / "data/file-link.parquet").symlink_to(theirs / "data.parquet")
    assert remove_orphan_files(table, older_than_ms=FAR_MS, clock=MovingClock(FAR_MS)).paths == ()
    assert (theirs / "data.parquet").read_bytes() == b"theirs"
    assert ids(table) == [1]


def test_orphans_that_another_removes_meanwhile(
    table: IcebergTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(table, [row(1)])
    data = tmp_path / "shop" / "orders" / "data"
    lost = [data / "a.parquet", data / "b.parquet"]
    for path in lost:
        path.write_bytes(b"lost")

    whole = orphans.orphans

    def slow(*given: Any) -> set[str]:
        found = whole(*given)
        lost[0].unlink()
        return found

    monkeypatch.setattr(orphans, "orphans", slow)
    remove_orphan_files(table, older_than_ms=FAR_MS, clock=MovingClock(FAR_MS))
    assert not any(path.exists() for path in lost)
    assert ids(table) == [1]


def test_files_of_a_table_that_was_renamed_are_no_orphans(
    catalog: IcebergCatalog, table: IcebergTable, tmp_path: Path
) -> None:
    """The next table of the old name gets the same folder."""
    write(table, [row(1)])
    write(table, [row(2)], "overwrite")
    catalog.rename_table("shop.orders", "shop.older")
    new = new_table(catalog, COLUMNS)
    older = catalog.table("shop.older")
    assert new.location == older.location
    write(new, [row(3)])
    write(older, [row(4)])
    lost = tmp_path / "shop" / "orders" / "metadata" / "00009-lost.metadata.json"
    lost.write_text("{")
    for one in (new, older):
        remove_orphan_files(one, older_than_ms=FAR_MS, clock=MovingClock(FAR_MS))
        assert not lost.exists()
        assert (ids(new), ids(older)) == ([3], [2, 4])
        all_readable(older)
    lost.write_text('{"format-version": 9}')
    with pytest.raises(InvalidError, match="cannot be understood"):
        remove_orphan_files(new, older_than_ms=FAR_MS, clock=MovingClock(FAR_MS))


def test_young_files_are_no_orphans(table: IcebergTable, tmp_path: Path) -> None:
    begin(table, [row(4)])
    assert remove_orphan_files(table).paths == ()
    (lost,) = parquet_files(tmp_path)
    os.utime(tmp_path / lost, (1_700_000_000, 1_700_000_000))
    assert len(remove_orphan_files(table).paths) == 1
    with pytest.raises(InvalidError, match="in the future"):
        remove_orphan_files(table, older_than_ms=FAR_MS)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("file:/a/b", "/a/b"),
        ("file:///a/b", "/a/b"),
        ("file://host/a/b", "/a/b"),
        ("s3a://bucket/a b%20c", "bucket/a b%20c"),
        ("s3://bucket/a", "s3n://bucket/a"),
        ("s3://bucket//a", "bucket/a"),
        ("hdfs://node:8020/a", "/a"),
    ],
)
def test_paths_of_one_file(one: str, other: str) -> None:
    assert normalised(one) == normalised(other)


# ---------------------------------------------------------------- rewrites


def test_small_files_become_one_for_each_partition(table: IcebergTable) -> None:
    for number in range(6):
        write(table, [row(number), row(10 + number, 2)])
    before = rows_of(table)
    done = rewrite_data_files(table)
    assert (done.rewritten_files, done.added_files) == (12, 2)
    assert done.snapshot is not None
    assert done.snapshot.operation == "replace"
    assert rows_of(table) == before
    assert len(data_paths(table.reloaded().library)) == 2
    check_sums(table)
    assert rewrite_data_files(table).snapshot is None


def test_a_rewrite_of_some_partitions(table: IcebergTable) -> None:
    for number in range(3):
        write(table, [row(number), row(10 + number, 2)])
    assert rewrite_data_files(table, where="day = 2", min_input_files=2).rewritten_files == 3
    assert len(data_paths(table.reloaded().library)) == 4


def test_deleted_rows_are_left_out(table: IcebergTable) -> None:
    write(table, [row(1), row(2), row(3)])
    write(table, [row(4, 2)])
    library = table.reloaded().library
    first = data_paths(library)[0]
    commit_deletes(library, position_deletes(library, {first: [1]}, partition=Record(1), bounds=True))
    commit_deletes(library, equality_deletes(library, pa.table({"id": [3]}), partition=Record(1)))
    done = rewrite_data_files(table)
    assert done.rewritten_files == 1
    assert ids(table) == [1, 4]
    assert table.reloaded().library.inspect.delete_files().num_rows == 0
    assert rewrite_data_files(table).snapshot is None


def test_files_of_old_specs_come_into_the_current_one(table: IcebergTable) -> None:
    write(table, [row(1), row(2, 2)])
    set_partitions(table, {"id": "bucket[2]"})
    write(table, [row(3)])
    set_partitions(table, {"day": "identity", "id": "bucket[2]"})
    write(table, [row(4)])
    before = rows_of(table)
    rewrite_data_files(table)
    library = table.reloaded().library
    assert {task.file.spec_id for task in library.scan().plan_files()} == {library.spec().spec_id}
    assert rows_of(table) == before
    write(table, [row(9)], "overwrite", {"day": 1})
    assert ids(table) == [2, 9]


def test_rows_deleted_during_a_rewrite_are_a_conflict(
    catalog: IcebergCatalog, table: IcebergTable, tmp_path: Path
) -> None:
    write(table, [row(1), row(2)])
    write(table, [row(3)])
    library = table.reloaded().library
    first = data_paths(library)[0]

    def deleted() -> None:
        now = table.reloaded().library
        commit_deletes(now, position_deletes(now, {first: [0]}, partition=Record(1), bounds=True))

    hooks = CatalogHooks(catalog)
    hooks.before = [deleted]
    with pytest.raises(ConflictError, match="deleted meanwhile"):
        rewrite_data_files(table, min_input_files=2, clock=MovingClock())
    assert len(parquet_files(tmp_path)) == 3
    assert ids(table) == [2, 3]


def test_a_rewrite_on_a_branch_and_after_a_rename(table: IcebergTable) -> None:
    write(table, [row(1)])
    create_branch(table, "dev")
    write(table, [row(2)], branch="dev")
    with table.reloaded().library.update_schema() as update:
        update.rename_column("id", "number")
    rewrite_data_files(table, branch="dev", min_input_files=2)
    assert [one["number"] for one in rows_of(table, "dev")] == [1, 2]
    assert [one["number"] for one in rows_of(table)] == [1]


def test_manifests_become_few(table: IcebergTable) -> None:
    for number in range(6):
        write(table, [row(number, number % 3)])
    library = table.reloaded().library
    commit_deletes(library, equality_deletes(library, pa.table({"id": [0]}), partition=Record(0)))
    before = table.reloaded().library.inspect.entries().to_pylist()
    done = rewrite_manifests(table)
    assert done.manifests == 6
    library = table.reloaded().library
    snapshot = library.current_snapshot()
    assert snapshot is not None
    assert len(snapshot.manifests(library.io)) == 2
    after = library.inspect.entries().to_pylist()
    kept = ("snapshot_id", "sequence_number", "file_sequence_number")

    def known(entries: list[dict[str, object]]) -> set[tuple[object, ...]]:
        return {(one["data_file"]["file_path"], *(one[name] for name in kept)) for one in entries}  # type: ignore[index]

    assert known(after) == known(before)
    assert rewrite_manifests(table).snapshot is None


def _ignored(_: object) -> None:
    return None
