"""Inserts of every mode, judged by pyiceberg."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.table.refs import SnapshotRefType
from pyiceberg.types import IntegerType, StringType

from lakelet.errors import ConflictError, InvalidError, NotFoundError
from lakelet.iceberg.branches import create_branch, create_tag, fast_forward
from lakelet.iceberg.catalog.iceberg_catalog import IcebergCatalog
from lakelet.iceberg.commit.snapshot.summary import COMMIT_ID
from lakelet.iceberg.transaction import IcebergTransaction
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

COLUMNS = pa.schema([("id", pa.int64()), ("day", pa.date32()), ("city", pa.string()), ("at", pa.timestamp("us"))])


@pytest.fixture
def catalog(tmp_path: Path) -> IcebergCatalog:
    return new_catalog(tmp_path)


def row(number: int, day: int | None = 1, city: str | None = "Oslo") -> dict[str, object]:
    at = datetime(2026, 1, day or 1, number % 24)
    return {"id": number, "day": None if day is None else date(2026, 1, day), "city": city, "at": at}


def ids(found: list[dict[str, object]]) -> list[object]:
    return sorted(one["id"] for one in found)  # type: ignore[type-var]


@pytest.mark.parametrize("version", ["1", "2"])
def test_appends_keep_all_rows_and_sums(catalog: IcebergCatalog, version: str) -> None:
    table = new_table(catalog, COLUMNS, {"day": "identity"}, properties={"format-version": version})
    made = [write(table, [row(number, number % 3 + 1)]) for number in range(7)]
    assert ids(rows_of(table)) == list(range(7))
    check_sums(table)
    library = table.reloaded().library
    assert library.metadata.format_version == int(version)
    assert [one.snapshot_id for one in library.snapshots()] == [one.id for one in made if one is not None]
    assert {one.summary.operation.value for one in library.snapshots() if one.summary} == {"append"}
    assert len(library.scan("day = '2026-01-02'").to_arrow()) == 2
    assert len(list(library.scan("day = '2026-01-02'").plan_files())) == 2


def test_an_insert_without_rows_makes_no_snapshot(catalog: IcebergCatalog) -> None:
    table = new_table(catalog, COLUMNS)
    assert write(table, []) is None
    assert table.reloaded().library.snapshots() == []


def test_overwrite_replaces_the_whole_table_in_one_snapshot(catalog: IcebergCatalog) -> None:
    table = new_table(catalog, COLUMNS, {"day": "identity"})
    write(table, [row(1, 1), row(2, 2)])
    made = write(table, [row(3, 3)], "overwrite")
    assert made is not None
    assert (made.operation, made.added_files, made.removed_files) == ("overwrite", 1, 2)
    assert ids(rows_of(table)) == [3]
    assert len(table.reloaded().library.snapshots()) == 2
    check_sums(table)


def test_overwrite_with_no_rows_empties_the_table(catalog: IcebergCatalog) -> None:
    table = new_table(catalog, COLUMNS, {"day": "identity"})
    write(table, [row(1, 1), row(2, 2)])
    made = write(table, [], "overwrite")
    assert made is not None
    assert made.operation == "delete"
    assert rows_of(table) == []
    check_sums(table)
    assert write(table, [], "overwrite") is None


def test_static_overwrite_replaces_one_partition(catalog: IcebergCatalog) -> None:
    table = new_table(catalog, COLUMNS, {"day": "identity", "city": "identity"})
    write(table, [row(1, 1), row(2, 2), row(3, 2, "Rome")])
    write(table, [row(4, 2, "Bern")], "overwrite", {"day": "2026-01-02"})
    assert ids(rows_of(table)) == [1, 4]
    write(table, [], "overwrite", {"day": date(2026, 1, 2), "city": "Bern"})
    assert ids(rows_of(table)) == [1]
    check_sums(table)


def test_static_overwrite_of_null(catalog: IcebergCatalog) -> None:
    table = new_table(catalog, COLUMNS, {"city": "identity"})
    write(table, [row(1, 1, None), row(2, 1, "null"), row(3)])
    write(table, [row(4, 1, None)], "overwrite", {"city": None})
    assert ids(rows_of(table)) == [2, 3, 4]


@pytest.mark.parametrize(
    ("partition", "told"),
    [
        ({"nothing": 1}, "no such column"),
        ({"id": 1}, "bucket\\[4\\]\\(id\\)"),
        ({"at": 1}, "no partition column"),
        ({"day": "soon"}, "expected a value of type date"),
        ({"price": "1.234"}, "more than 2 decimal places"),
        ({"price": 12345678}, "expected a value of type decimal"),
        ({"price": "much"}, "expected a value of type decimal"),
        ({"small": 2**40}, "does not fit into int"),
    ],
)
def test_static_overwrite_refuses(catalog: IcebergCatalog, partition: dict[str, object], told: str) -> None:
    columns = COLUMNS.append(pa.field("price", pa.decimal128(9, 2))).append(pa.field("small", pa.int32()))
    partitions = {"day": "identity", "id": "bucket[4]", "price": "identity", "small": "identity"}
    table = new_table(catalog, columns, partitions)
    with pytest.raises(InvalidError, match=told):
        IcebergTransaction(table).begin_insert("overwrite", partition)


def test_rows_outside_the_static_partition_are_refused(catalog: IcebergCatalog, tmp_path: Path) -> None:
    table = new_table(catalog, COLUMNS, {"day": "identity"})
    before = files_below(tmp_path)
    with pytest.raises(InvalidError, match="not of that partition"):
        write(table, [row(1, 2)], "overwrite", {"day": date(2026, 1, 1)})
    assert files_below(tmp_path) == before


@pytest.mark.parametrize(
    "partitions",
    [
        {"day": "identity"},
        {"city": "identity"},
        {"id": "bucket[8]"},
        {"city": "truncate[2]"},
        {"id": "truncate[10]"},
        {"at": "year"},
        {"day": "month"},
        {"day": "day"},
        {"at": "hour"},
        {"id": "void", "day": "month", "city": "bucket[3]"},
    ],
    ids=str,
)
def test_dynamic_overwrite_of_every_transform(catalog: IcebergCatalog, partitions: dict[str, str]) -> None:
    table = new_table(catalog, COLUMNS, partitions)
    first = [row(number, number % 5 + 1, ("Oslo", "Rome", None, "Osaka")[number % 4]) for number in range(40)]
    write(table, first)
    library = table.reloaded().library
    filed = {task.file.file_path: task.file.partition for task in library.scan().plan_files()}
    made = write(table, [row(100, 3, "Oslo"), row(101, None, None)], "overwrite_partitions")
    assert made is not None
    library = table.reloaded().library
    fresh = [task.file for task in library.scan().plan_files() if task.file.file_path not in filed]
    written = {repr(file.partition) for file in fresh}
    kept = {path for path, partition in filed.items() if repr(partition) not in written}
    assert {task.file.file_path for task in library.scan().plan_files()} == kept | {file.file_path for file in fresh}
    assert made.removed_files == len(filed) - len(kept)
    assert len(library.snapshots()) == 2
    check_sums(table)


def test_dynamic_overwrite_without_partitions_replaces_all(catalog: IcebergCatalog) -> None:
    table = new_table(catalog, COLUMNS)
    write(table, [row(1)])
    write(table, [row(2)], "overwrite_partitions")
    assert ids(rows_of(table)) == [2]


def test_dynamic_overwrite_without_rows_does_nothing(catalog: IcebergCatalog) -> None:
    table = new_table(catalog, COLUMNS, {"day": "identity"})
    write(table, [row(1)])
    assert write(table, [], "overwrite_partitions") is None
    assert ids(rows_of(table)) == [1]


def test_nan_is_one_partition(catalog: IcebergCatalog) -> None:
    schema = pa.schema([("id", pa.int64()), ("x", pa.float64())])
    table = new_table(catalog, schema, {"x": "identity"})
    nan = float("nan")
    write(table, [{"id": 1, "x": nan}, {"id": 2, "x": None}, {"id": 3, "x": 0.0}])
    write(table, [{"id": 4, "x": nan}], "overwrite_partitions")
    assert ids(rows_of(table)) == [2, 3, 4]


def test_three_specs(catalog: IcebergCatalog) -> None:
    table = new_table(catalog, COLUMNS, {"day": "month"})
    write(table, [row(1, 1), row(2, 2)])
    set_partitions(table, {"day": "day"})
    write(table, [row(3, 3)])
    set_partitions(table, {"day": "identity", "city": "identity"})
    write(table, [row(4, 4), row(5, 3, "Rome")])
    library = table.reloaded().library
    assert len({task.file.spec_id for task in library.scan().plan_files()}) == 3
    assert ids(rows_of(table)) == [1, 2, 3, 4, 5]
    assert library.scan("day = '2026-01-03'").to_arrow().num_rows == 2
    # All rows of the third are of that day, and none of the first: nothing is partly replaced.
    write(table, [row(6, 3, "Bern")], "overwrite", {"day": date(2026, 1, 3)})
    assert ids(rows_of(table)) == [1, 2, 4, 6]
    # The first file's rows are of two days.
    with pytest.raises(InvalidError, match=r"PARTITION \(day = 2026-01-01\).*partition spec 1"):
        write(table, [row(7, 1)], "overwrite", {"day": date(2026, 1, 1)})
    write(table, [row(8, 4)], "overwrite_partitions")
    assert ids(rows_of(table)) == [1, 2, 6, 8]
    with pytest.raises(InvalidError, match=r"2026-01-02.*partition spec 1"):
        write(table, [row(9, 2)], "overwrite_partitions")
    assert ids(rows_of(table)) == [1, 2, 6, 8]
    check_sums(table)


def test_a_spec_that_changed_meanwhile_is_a_conflict(catalog: IcebergCatalog, tmp_path: Path) -> None:
    table = new_table(catalog, COLUMNS, {"day": "identity"})
    transaction = begin(table, [row(1)])
    set_partitions(table, {"city": "identity"})
    with pytest.raises(ConflictError, match="partition spec 1, and the table's is 2"):
        transaction.finish_insert()
    assert rows_of(table) == []
    assert not [path for path in files_below(tmp_path) if path.endswith((".parquet", ".avro"))]


def test_a_spec_that_changes_during_the_request_is_a_conflict(catalog: IcebergCatalog, tmp_path: Path) -> None:
    table = new_table(catalog, COLUMNS, {"day": "identity"})
    transaction = begin(table, [row(1)], clock=MovingClock())
    hooks = CatalogHooks(catalog)
    hooks.before = [lambda: set_partitions(table, {"city": "identity"})]
    with pytest.raises(ConflictError, match="partition spec 1, and the table's is 2"):
        transaction.finish_insert()
    assert not [path for path in files_below(tmp_path) if path.endswith((".parquet", ".avro"))]


def test_columns_that_come_and_go_meanwhile(catalog: IcebergCatalog) -> None:
    table = new_table(catalog, COLUMNS)
    transaction = begin(table, [row(1)])
    with table.reloaded().library.update_schema() as update:
        update.add_column("note", StringType())
        update.rename_column("city", "town")
        update.delete_column("at")
    transaction.finish_insert()
    assert rows_of(table) == [{"id": 1, "day": date(2026, 1, 1), "town": "Oslo", "note": None}]


def test_a_column_that_became_required_meanwhile_is_a_conflict(catalog: IcebergCatalog) -> None:
    table = new_table(catalog, COLUMNS)
    transaction = begin(table, [row(1)])
    with table.reloaded().library.update_schema(allow_incompatible_changes=True) as update:
        update.add_column("size", IntegerType(), required=True)
    with pytest.raises(ConflictError, match="column size became required"):
        transaction.finish_insert()


def test_a_table_that_was_made_anew_meanwhile_is_a_conflict(catalog: IcebergCatalog) -> None:
    table = new_table(catalog, COLUMNS)
    transaction = begin(table, [row(1)])
    catalog.drop_table("shop.orders")
    again = new_table(catalog, COLUMNS)
    with pytest.raises(ConflictError, match="made anew"):
        transaction.finish_insert()
    assert rows_of(again) == []


def test_branch_then_fast_forward(catalog: IcebergCatalog) -> None:
    table = new_table(catalog, COLUMNS, {"day": "identity"})
    write(table, [row(1)])
    create_branch(table, "dev")
    write(table, [row(2, 2)], branch="dev")
    write(table, [row(3)], "overwrite_partitions", branch="dev")
    assert ids(rows_of(table)) == [1]
    assert ids(rows_of(table, "dev")) == [2, 3]
    check_sums(table, "dev")
    fast_forward(table, "main", "dev")
    assert ids(rows_of(table)) == [2, 3]


def test_a_branch_keeps_its_ages(catalog: IcebergCatalog) -> None:
    table = new_table(catalog, COLUMNS)
    write(table, [row(1)])
    with table.reloaded().library.manage_snapshots() as change:
        current = table.reloaded().metadata.current_snapshot_id
        assert current is not None
        change.create_branch(current, "dev", max_ref_age_ms=9, max_snapshot_age_ms=8, min_snapshots_to_keep=7)
    write(table, [row(2)], branch="dev")
    ref = table.reloaded().metadata.refs["dev"]
    assert (ref.max_ref_age_ms, ref.max_snapshot_age_ms, ref.min_snapshots_to_keep) == (9, 8, 7)
    assert ref.snapshot_ref_type == SnapshotRefType.BRANCH


def test_only_branches_that_exist_are_written_to(catalog: IcebergCatalog) -> None:
    table = new_table(catalog, COLUMNS)
    write(table, [row(1)])
    create_branch(table, "dev")
    create_tag(table, "v1")
    with pytest.raises(NotFoundError, match="no branch 'test'; there are dev, main"):
        IcebergTransaction(table.reloaded(), branch="test").begin_insert()
    with pytest.raises(InvalidError, match="'v1' is a tag"):
        IcebergTransaction(table.reloaded(), branch="v1").begin_insert()


def test_a_named_commit_is_applied_once(catalog: IcebergCatalog, tmp_path: Path) -> None:
    table = new_table(catalog, COLUMNS)
    first = write(table, [row(1)], commit_id="load-1")
    before = files_below(tmp_path)
    transaction = begin(table, [row(1)], commit_id="load-1")
    assert transaction.applied() == first
    assert transaction.finish_insert() == first
    assert ids(rows_of(table)) == [1]
    assert files_below(tmp_path) == before
    assert write(table, [row(2)], commit_id="load-2") != first


def test_rollback_leaves_nothing_and_may_be_repeated(catalog: IcebergCatalog, tmp_path: Path) -> None:
    table = new_table(catalog, COLUMNS)
    before = files_below(tmp_path)
    transaction = begin(table, [row(1)])
    transaction.rollback()
    transaction.rollback()
    assert files_below(tmp_path) == before


def test_rollback_after_the_commit_changes_nothing(catalog: IcebergCatalog) -> None:
    table = new_table(catalog, COLUMNS)
    transaction = begin(table, [row(1)])
    made = transaction.finish_insert()
    transaction.rollback()
    assert transaction.finish_insert() == made
    assert ids(rows_of(table)) == [1]


def test_the_summary_names_the_commit(catalog: IcebergCatalog) -> None:
    table = new_table(catalog, COLUMNS)
    write(table, [row(1)], commit_id="load-1")
    summary = table.reloaded().library.snapshots()[0].summary
    assert summary is not None
    assert summary[COMMIT_ID] == "load-1"


def test_many_small_appends_leave_few_manifests(catalog: IcebergCatalog) -> None:
    settings = {"commit.manifest.min-count-to-merge": "4"}
    table = new_table(catalog, COLUMNS, {"day": "identity"}, properties=settings)
    for number in range(40):
        write(table, [row(number, number % 2 + 1)])
    library = table.reloaded().library
    snapshot = library.current_snapshot()
    assert snapshot is not None
    assert len(snapshot.manifests(library.io)) <= 12
    assert ids(rows_of(table)) == list(range(40))
    added = {task.file.file_path for task in library.scan().plan_files()}
    assert len(added) == 40
    entries = library.inspect.entries().to_pylist()
    assert len({one["snapshot_id"] for one in entries}) == 40
    assert sorted({one["sequence_number"] for one in entries}) == list(range(1, 41))
    check_sums(table)
