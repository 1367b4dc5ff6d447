"""Older versions of a table, and its files and manifests over many commits."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lakelet import NotFoundError
from tests.conformance.tables import DATABASE, JAVA, LAKELET, NATIVE, PYTHON, READERS, Rows, Warehouse, in_order, same

T = f"{DATABASE}.t"


def ids(rows: Rows) -> list[int]:
    return sorted(row["id"] for row in rows)


def one(id_: int) -> Rows:
    return [{"id": id_, "p": f"p{id_ % 3}"}]


COLUMNS = [("id", "INT"), ("p", "STRING")]


def snapshot_json(warehouse: Warehouse, id_: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((warehouse.path("t") / "snapshot" / f"snapshot-{id_}").read_text())
    return found


def manifests_of(warehouse: Warehouse) -> int:
    """How many manifests the newest snapshot has, by Java's count."""
    return len(warehouse.java.read(warehouse.folder, f"{T}$manifests"))


# ---------------------------------------------------------------- versions


def test_snapshots_tags_and_branches(warehouse: Warehouse) -> None:
    warehouse.create(JAVA, "t", COLUMNS, partitioned_by=["p"])
    for id_, writer in enumerate((JAVA, LAKELET, PYTHON, NATIVE, LAKELET), start=1):
        warehouse.write(writer, "t", one(id_))
    java, table = warehouse.java, warehouse.table("t")
    for version in range(1, 6):
        assert ids(warehouse.agree("t", snapshot=version)) == list(range(1, version + 1))

    java.tag(warehouse.folder, T, "three", 3)
    warehouse.pypaimon.tag(warehouse.folder, T, "four", 4)
    assert ids(warehouse.agree("t", tag="three")) == [1, 2, 3]
    assert ids(warehouse.agree("t", tag="four")) == [1, 2, 3, 4]
    assert sorted(table.tag_names()) == ["four", "three"]
    assert ids(table.scan(version="three").to_arrow().to_pylist()) == [1, 2, 3]

    java.branch(warehouse.folder, T, "dev", "three")
    java.branch(warehouse.folder, T, "empty")
    java.write(warehouse.folder, T, one(30), branch="dev")
    assert ids(warehouse.agree("t", branch="dev", readers=(LAKELET, JAVA, PYTHON))) == [1, 2, 3, 30]
    assert warehouse.rows(LAKELET, "t", branch="empty") == []
    assert sorted(table.branch_names()) == ["dev", "empty"]
    # A branch has its own schema.
    java.call(
        "alter",
        warehouse.folder,
        T,
        "-",
        "--branch",
        "dev",
        stdin=json.dumps([{"op": "add", "name": "note", "type": "STRING"}]),
    )
    java.write(warehouse.folder, T, [{"id": 31, "p": "p1", "note": "new"}], branch="dev")
    assert ids(warehouse.agree("t", branch="dev", readers=(LAKELET, JAVA))) == [1, 2, 3, 30, 31]
    assert ids(warehouse.agree("t")) == [1, 2, 3, 4, 5]

    java.rollback(warehouse.folder, T, 4)
    assert ids(warehouse.agree("t")) == [1, 2, 3, 4]
    warehouse.write(LAKELET, "t", one(50))
    assert ids(warehouse.agree("t")) == [1, 2, 3, 4, 50]
    java.fast_forward(warehouse.folder, T, "dev")
    assert ids(warehouse.agree("t", readers=(LAKELET, JAVA))) == [1, 2, 3, 30, 31]


def test_travel_by_time_as_java_does(warehouse: Warehouse) -> None:
    warehouse.create(LAKELET, "t", COLUMNS)
    for id_, writer in enumerate((LAKELET, JAVA, LAKELET, JAVA), start=1):
        warehouse.write(writer, "t", one(id_))
    times = [snapshot["timeMillis"] for snapshot in warehouse.java.snapshots(warehouse.folder, T)]
    for moment in {*times, *(time + 1 for time in times), *(time - 1 for time in times[1:])}:
        expected = ids(warehouse.java.read(warehouse.folder, T, options={"scan.timestamp-millis": str(moment)}))
        assert ids(warehouse.table("t").scan(timestamp=moment).to_arrow().to_pylist()) == expected
    with pytest.raises(NotFoundError):
        warehouse.table("t").scan(timestamp=times[0] - 1).to_arrow()


def test_java_sees_the_changes_that_lakelet_sees(warehouse: Warehouse) -> None:
    warehouse.create(LAKELET, "t", COLUMNS, partitioned_by=["p"])
    for id_, writer in enumerate((LAKELET, JAVA, PYTHON, LAKELET, NATIVE), start=1):
        warehouse.write(writer, "t", one(id_))
    for first in range(1, 6):
        for last in range(first, 6):
            expected = [{**row, "_kind": "+I"} for row in warehouse.java.changes(warehouse.folder, T, first, last)]
            changes = warehouse.table("t").changes(first - 1, last).rename_columns(["_kind", "id", "p"])
            assert in_order(changes.to_pylist()) == in_order(expected)


# ---------------------------------------------------------------- compaction and expiry


@pytest.mark.parametrize("options", [{}, {"bucket": "2", "bucket-key": "id"}], ids=["unaware", "fixed"])
@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_after_java_compacted(warehouse: Warehouse, options: dict[str, str], file_format: str) -> None:
    options = {**options, "compaction.min.file-num": "2", "file.format": file_format, "write-only": "true"}
    warehouse.create(LAKELET, "t", COLUMNS, partitioned_by=["p"], options=options)
    for id_ in range(1, 13):
        warehouse.write((LAKELET, JAVA)[id_ % 2], "t", one(id_))
    before = len(warehouse.table("t").files())
    warehouse.java.compact(warehouse.folder, T)
    assert warehouse.java.snapshots(warehouse.folder, T)[-1]["commitKind"] == "COMPACT"
    assert len(warehouse.table("t").files()) < before
    assert ids(warehouse.agree("t")) == list(range(1, 13))
    assert ids(warehouse.agree("t", snapshot=12)) == list(range(1, 13))
    # A compaction changes nothing.
    last = warehouse.java.snapshots(warehouse.folder, T)[-1]["id"]
    assert warehouse.table("t").changes(last - 1, last).num_rows == 0
    warehouse.write(LAKELET, "t", one(13))
    warehouse.table("t").delete(where="id = 5")
    assert ids(warehouse.agree("t")) == [1, 2, 3, 4, *range(6, 14)]


def test_after_java_compacted_old_schemas(warehouse: Warehouse) -> None:
    warehouse.create(
        LAKELET, "t", [("id", "INT"), ("r", "ROW<a INT, b STRING>")], options={"compaction.min.file-num": "2"}
    )
    table = warehouse.table("t")
    warehouse.write(LAKELET, "t", [{"id": 1, "r": {"a": 1, "b": "x"}}, {"id": 2, "r": None}])
    table.rename_column("r.b", "c")
    table.add_column("r.b", "DATE")
    table.change_type("r.a", "BIGINT")
    warehouse.write(LAKELET, "t", [{"id": 3, "r": {"a": 2**40, "c": "y", "b": None}}])
    warehouse.write(JAVA, "t", [{"id": 4, "r": {"a": 4, "c": None, "b": None}}])
    before = warehouse.agree("t")
    warehouse.java.compact(warehouse.folder, T)
    assert len(table.files()) == 1
    same(warehouse.agree("t"), before, "all")


def test_after_java_expired_snapshots(warehouse: Warehouse) -> None:
    warehouse.create(LAKELET, "t", COLUMNS, partitioned_by=["p"])
    for id_ in range(1, 7):
        warehouse.write((LAKELET, JAVA)[id_ % 2], "t", one(id_))
    warehouse.table("t").delete(where="id = 2")
    warehouse.write(LAKELET, "t", one(7), overwrite={"p": "p1"})
    warehouse.java.tag(warehouse.folder, T, "kept", 3)
    expected = warehouse.agree("t")
    warehouse.java.expire(warehouse.folder, T, 2)
    same(warehouse.agree("t"), expected, "all")
    assert [snapshot.id for snapshot in warehouse.table("t").snapshots()] == [7, 8]
    assert ids(warehouse.agree("t", tag="kept")) == [1, 2, 3]
    with pytest.raises(NotFoundError):
        warehouse.table("t").scan(version=2).to_arrow()
    for id_, writer in ((8, LAKELET), (9, JAVA), (10, PYTHON)):
        warehouse.write(writer, "t", one(id_))
    assert ids(warehouse.agree("t")) == sorted([*ids(expected), 8, 9, 10])


# ---------------------------------------------------------------- manifests


@pytest.mark.parametrize(
    "options",
    [{"manifest.merge-min-count": "3"}, {"manifest.merge-min-count": "2", "manifest.target-file-size": "1 kb"}],
)
def test_many_commits_merge_manifests(warehouse: Warehouse, options: dict[str, str]) -> None:
    warehouse.create(LAKELET, "t", COLUMNS, partitioned_by=["p"], options=options)
    expected: list[int] = []
    for id_ in range(40):
        warehouse.write((LAKELET, LAKELET, JAVA)[id_ % 3], "t", one(id_))
        expected.append(id_)
        if id_ % 10 == 9:
            warehouse.table("t").delete(where=f"id = {id_ - 3}")
            expected.remove(id_ - 3)
        if id_ == 25:
            warehouse.write(JAVA, "t", one(100), overwrite={"p": "p1"})
            expected = [n for n in expected if n % 3 != 1] + [100]
    assert ids(warehouse.agree("t")) == sorted(expected)
    if "manifest.target-file-size" not in options:
        assert manifests_of(warehouse) < 12
    totals = [snapshot["totalRecordCount"] for snapshot in warehouse.java.snapshots(warehouse.folder, T)]
    assert totals[-1] == len(expected)
    for version in (10, 27, 30):
        warehouse.agree("t", snapshot=version)


def test_manifests_in_json_and_back(warehouse: Warehouse) -> None:
    """Paimon reads no JSON manifests; once the table is back at Avro and they were merged away it reads all rows again."""
    warehouse.create(LAKELET, "t", COLUMNS, partitioned_by=["p"], options={"manifest.merge-min-count": "2"})
    table = warehouse.table("t")
    warehouse.write(LAKELET, "t", one(1))
    table.set_options({"manifest.format": "json"})
    for id_ in (2, 3):
        warehouse.write(LAKELET, "t", one(id_))
    assert ids(warehouse.rows(LAKELET, "t")) == [1, 2, 3]
    table.set_options({"manifest.format": "avro"})
    for id_ in (4, 5):
        warehouse.write(LAKELET, "t", one(id_))
    assert ids(warehouse.agree("t")) == [1, 2, 3, 4, 5]
    for writer, id_ in ((JAVA, 6), (PYTHON, 7), (LAKELET, 8)):
        warehouse.write(writer, "t", one(id_))
    assert ids(warehouse.agree("t", readers=READERS)) == list(range(1, 9))


def test_streaming_writers_share_a_table(warehouse: Warehouse) -> None:
    warehouse.create(JAVA, "t", COLUMNS)
    warehouse.java.write(warehouse.folder, T, one(1), stream=("java-job", 1))
    warehouse.table("t").write(one(2), commit_user="our-job", commit_identifier=1)
    warehouse.table("t").write(one(2), commit_user="our-job", commit_identifier=1)
    warehouse.java.write(warehouse.folder, T, one(3), stream=("java-job", 2))
    # A job that Java began goes on here, and its repeated commit is recognised.
    warehouse.table("t").write(one(3), commit_user="java-job", commit_identifier=2)
    warehouse.table("t").write(one(4), commit_user="java-job", commit_identifier=3)
    assert ids(warehouse.agree("t")) == [1, 2, 3, 4]
    users = [
        (snapshot["commitUser"], snapshot["commitIdentifier"])
        for snapshot in warehouse.java.snapshots(warehouse.folder, T)
    ]
    assert users == [("java-job", 1), ("our-job", 1), ("java-job", 2), ("java-job", 3)]
