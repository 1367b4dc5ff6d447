"""Replacement of files: what is validated, and which delete files are removed."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.manifest import ManifestContent
from pyiceberg.typedef import Record

from lakelet.errors import ConflictError, InvalidError
from lakelet.format.avro import read_schema
from lakelet.iceberg.catalog.iceberg_catalog import IcebergCatalog
from lakelet.iceberg.commit.replace_files import replace_files
from lakelet.iceberg.commit_data import CommitData
from lakelet.iceberg.maintenance.data_file_rewrite import rewrite_data_files
from lakelet.iceberg.maintenance.expiry import expire_snapshots
from lakelet.iceberg.scan.scan import comparable_fields
from lakelet.iceberg.table import IcebergTable
from lakelet.iceberg.write.table_writer import TableWriter
from lakelet.iceberg.write.write_plan import write_plan
from lakelet.predicate.tree import Predicate
from lakelet.predicate.where import parse_where
from tests.iceberg.delete_commits import commit_deletes, equality_deletes, position_deletes
from tests.unit.iceberg.commit.tables import check_sums, files_below, new_catalog, new_table, rows_of, write

COLUMNS = pa.schema([("id", pa.int64()), ("day", pa.int32())])


@pytest.fixture
def catalog(tmp_path: Path) -> IcebergCatalog:
    return new_catalog(tmp_path)


@pytest.fixture
def table(catalog: IcebergCatalog) -> IcebergTable:
    made = new_table(catalog, COLUMNS, {"day": "identity"})
    write(made, [row(1, 1), row(2, 1)])
    write(made, [row(3, 1)])
    write(made, [row(4, 2)])
    return made.reloaded()


def row(number: int, day: int) -> dict[str, object]:
    return {"id": number, "day": day}


def ids(table: IcebergTable) -> list[object]:
    return sorted(one["id"] for one in rows_of(table))  # type: ignore[type-var]


def paths(table: IcebergTable, day: int) -> list[str]:
    return [
        task.file.file_path for task in table.reloaded().library.scan().plan_files() if task.file.partition[0] == day
    ]


def written(table: IcebergTable, *rows: dict[str, object]) -> list[CommitData]:
    writer = TableWriter(write_plan(table, "job"), str(len(rows)))
    writer.write(pa.RecordBatch.from_pylist(list(rows), COLUMNS))
    return writer.close()


def condition(table: IcebergTable, text: str) -> Predicate:
    return parse_where(text, comparable_fields(table))


def delete_manifests(table: IcebergTable) -> int:
    library = table.reloaded().library
    return len(library.inspect.delete_files())


def test_files_are_exchanged_in_one_snapshot(table: IcebergTable) -> None:
    base = table.metadata.current_snapshot_id
    made = replace_files(
        table, paths(table, 1), written(table, row(1, 1), row(9, 1)), base_snapshot_id=base, operation="overwrite"
    )
    assert made is not None
    assert (made.operation, made.added_files, made.removed_files) == ("overwrite", 1, 2)
    assert ids(table) == [1, 4, 9]
    check_sums(table)


def test_files_that_came_since_stay(table: IcebergTable) -> None:
    base = table.metadata.current_snapshot_id
    gone = paths(table, 1)
    write(table, [row(5, 1)])
    replace_files(table, gone, written(table, row(1, 1)), base_snapshot_id=base, operation="replace")
    assert ids(table) == [1, 4, 5]
    check_sums(table)


def test_a_file_that_is_gone_already_is_a_conflict(table: IcebergTable, tmp_path: Path) -> None:
    base = table.metadata.current_snapshot_id
    gone = paths(table, 1)
    write(table, [row(5, 1)], "overwrite_partitions")
    before = files_below(tmp_path)
    with pytest.raises(ConflictError, match="2 of 2 files to replace are not live"):
        replace_files(table, gone, written(table, row(1, 1)), base_snapshot_id=base, operation="replace")
    assert files_below(tmp_path) == before
    assert ids(table) == [4, 5]


def test_new_rows_are_a_conflict_where_asked(table: IcebergTable) -> None:
    base = table.metadata.current_snapshot_id
    gone = paths(table, 1)
    write(table, [row(50, 2)])

    def replaced(where: Predicate | None) -> None:
        replace_files(
            table,
            gone,
            written(table, row(1, 1)),
            base_snapshot_id=base,
            operation="overwrite",
            serializable=True,
            where=where,
        )

    with pytest.raises(ConflictError, match="added meanwhile"):
        replaced(None)
    with pytest.raises(ConflictError, match="added meanwhile"):
        replaced(condition(table, "id > 40"))
    with pytest.raises(ConflictError, match="added meanwhile"):
        replaced(condition(table, "day = 2"))
    replaced(condition(table, "day = 1 and id < 40"))
    assert ids(table) == [1, 4, 50]


def test_rows_that_only_moved_are_no_conflict(table: IcebergTable) -> None:
    base = table.metadata.current_snapshot_id
    write(table, [row(5, 2)])
    base = table.reloaded().metadata.current_snapshot_id
    rewrite_data_files(table, where="day = 2", min_input_files=2)
    replace_files(
        table,
        paths(table, 1),
        written(table, row(1, 1)),
        base_snapshot_id=base,
        operation="overwrite",
        serializable=True,
    )
    assert ids(table) == [1, 4, 5]


@pytest.mark.parametrize("append_expired", [False, True])
def test_rows_that_were_added_and_then_moved_are_a_conflict(table: IcebergTable, append_expired: bool) -> None:
    base = table.metadata.current_snapshot_id
    appended = write(table, [row(5, 2)])
    rewrite_data_files(table, where="day = 2", min_input_files=2)
    if append_expired:
        assert appended is not None
        expire_snapshots(table, snapshot_ids=[appended.id])
    with pytest.raises(ConflictError, match="added meanwhile"):
        replace_files(
            table,
            paths(table, 1),
            written(table, row(1, 1)),
            base_snapshot_id=base,
            operation="overwrite",
            serializable=True,
        )
    assert ids(table) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("kind", ["position", "equality"])
def test_rows_deleted_meanwhile_are_a_conflict(table: IcebergTable, kind: str) -> None:
    base = table.metadata.current_snapshot_id
    gone, library = paths(table, 1), table.library
    if kind == "position":
        deletes = position_deletes(library, {gone[0]: [0]}, partition=Record(1), bounds=True)
    else:
        deletes = equality_deletes(library, pa.table({"id": [3]}), partition=Record(1))
    commit_deletes(library, deletes)
    with pytest.raises(ConflictError, match="were deleted meanwhile"):
        replace_files(table, gone, written(table, row(1, 1)), base_snapshot_id=base, operation="replace")


def test_rows_deleted_elsewhere_are_none(table: IcebergTable) -> None:
    base = table.metadata.current_snapshot_id
    gone, other = paths(table, 1), paths(table, 2)
    commit_deletes(table.library, position_deletes(table.library, {other[0]: [0]}, partition=Record(2)))
    replace_files(table, gone, written(table, row(1, 1)), base_snapshot_id=base, operation="replace")
    assert ids(table) == [1]
    assert delete_manifests(table) == 1


def test_delete_files_go_with_the_files_they_are_for(table: IcebergTable) -> None:
    first, second = paths(table, 1)
    for path in (first, second):
        commit_deletes(table.library, position_deletes(table.library, {path: [0]}, partition=Record(1), bounds=True))
    now = table.reloaded()
    replace_files(
        now, [first], written(now, row(1, 1)), base_snapshot_id=now.metadata.current_snapshot_id, operation="replace"
    )
    left = table.reloaded().library.inspect.delete_files().to_pylist()
    assert len(left) == 1


def test_delete_files_of_a_partition_stay_while_a_file_of_it_does(table: IcebergTable) -> None:
    first, second = paths(table, 1)
    shared = position_deletes(table.library, {first: [0], second: [0]}, partition=Record(1))
    commit_deletes(table.library, shared)
    now = table.reloaded()
    replace_files(now, [first], [], base_snapshot_id=now.metadata.current_snapshot_id, operation="delete")
    assert delete_manifests(table) == 1
    now = table.reloaded()
    replace_files(now, [second], [], base_snapshot_id=now.metadata.current_snapshot_id, operation="delete")
    assert delete_manifests(table) == 0
    assert ids(table) == [4]


def test_overwriting_a_partition_drops_its_delete_files(table: IcebergTable) -> None:
    first = paths(table, 1)[0]
    commit_deletes(table.library, position_deletes(table.library, {first: [0]}, partition=Record(1)))
    write(table, [row(9, 1)], "overwrite_partitions")
    assert delete_manifests(table) == 0
    assert ids(table) == [4, 9]


def test_operations_are_checked(table: IcebergTable) -> None:
    with pytest.raises(InvalidError, match="'merge': expected one of"):
        replace_files(table, [], [], base_snapshot_id=None, operation="merge")
    with pytest.raises(InvalidError, match="append' removes nothing"):
        replace_files(table, ["x"], [], base_snapshot_id=None, operation="append")


def test_ids_of_equality_deletes_stay_ints(table: IcebergTable) -> None:
    """Java reads nothing else; a delete manifest that loses a file is written anew."""
    library = table.library
    commit_deletes(
        library,
        equality_deletes(library, pa.table({"id": [2]}), partition=Record(1)),
        equality_deletes(library, pa.table({"id": [4]}), partition=Record(2)),
    )
    write(table, [row(9, 2)], "overwrite_partitions")
    now = table.reloaded().library
    snapshot = now.current_snapshot()
    assert snapshot is not None
    (manifest,) = [one for one in snapshot.manifests(now.io) if one.content == ManifestContent.DELETES]
    assert manifest.added_snapshot_id == snapshot.snapshot_id
    with now.io.new_input(manifest.manifest_path).open() as stream:
        schema = read_schema(stream.read(), path=manifest.manifest_path).schema
    file = next(field["type"] for field in schema["fields"] if field["name"] == "data_file")
    ids_ = next(field["type"] for field in file["fields"] if field["name"] == "equality_ids")
    assert [one["items"] for one in ids_ if isinstance(one, dict)] == ["int"]
    (kept,) = manifest.fetch_manifest_entry(now.io)
    assert list(kept.data_file.equality_ids or ()) == [1]
