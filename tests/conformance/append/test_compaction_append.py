"""Append tables that Lakelet and Java Paimon compact in turn: all readers see the same rows, before and after."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.append.test_turns import COLUMNS, rows_for
from tests.conformance.tables import JAVA, LAKELET, NATIVE, PYTHON, Rows, Warehouse, json_type, same, spell_rows
from tests.unit.compact.append_tables import compact, delete_rows, files_of, planned

NAMES = [name for name, _ in COLUMNS]
LAYOUTS: dict[str, dict[str, Any]] = {
    "plain": {"options": {"write-only": "true"}},
    "partitioned": {"partitioned_by": ["p"], "options": {"write-only": "true"}},
    "buckets": {"options": {"bucket": "3", "bucket-key": "id", "write-only": "true"}},
}


@pytest.mark.parametrize("layout", list(LAYOUTS))
def test_compactors_take_turns(warehouse: Warehouse, layout: str) -> None:
    warehouse.create(JAVA, "t", COLUMNS, **LAYOUTS[layout])
    written: Rows = []
    for turn, compactor in enumerate((LAKELET, JAVA, LAKELET)):
        for number, writer in enumerate((JAVA, LAKELET, PYTHON, NATIVE, LAKELET, JAVA)):
            rows = rows_for(NAMES, (turn * 6 + number) * 8)
            warehouse.write(writer, "t", rows)
            written += rows
        table = warehouse.table("t")
        before = len(files_of(table))
        if compactor == LAKELET:
            snapshot = compact(table, full=True)
            assert snapshot is not None
            assert planned(table, full=True) == []
        else:
            warehouse.java.compact(warehouse.folder, "db.t")
        assert len(files_of(table)) < before
        expected = spell_rows(written, table.schema.fields)
        same(warehouse.agree("t"), expected, f"all after {compactor} compacted, turn {turn}")
        latest = warehouse.java.snapshots(warehouse.folder, "db.t")[-1]
        assert (latest["commitKind"], latest["totalRecordCount"], latest["deltaRecordCount"]) == (
            "COMPACT",
            len(written),
            0,
        )


def test_rows_of_a_bucket_stay_in_order(warehouse: Warehouse) -> None:
    options = {"bucket": "1", "bucket-key": "id", "write-only": "true", "target-file-size": "1 kb"}
    warehouse.create(LAKELET, "t", [("id", "BIGINT"), ("s", "STRING")], options=options)

    def in_order(expected: list[int]) -> None:
        assert warehouse.table("t").scan().to_arrow().column("id").to_pylist() == expected
        assert [row["id"] for row in warehouse.java.read(warehouse.folder, "db.t")] == expected

    for start in range(0, 50, 5):
        rows = [{"id": id_, "s": "x" * (id_ % 7)} for id_ in range(start, start + 5)]
        warehouse.write(JAVA if start % 2 else LAKELET, "t", rows)
    in_order(list(range(50)))
    assert compact(warehouse.table("t"), full=True) is not None
    in_order(list(range(50)))
    warehouse.write(JAVA, "t", [{"id": 50, "s": "y"}])
    warehouse.write(LAKELET, "t", [{"id": 51, "s": "y"}])
    in_order(list(range(52)))
    warehouse.java.compact(warehouse.folder, "db.t")
    in_order(list(range(52)))


def test_files_of_older_schemas(warehouse: Warehouse) -> None:
    columns = [("id", "INT"), ("x", "FLOAT"), ("gone", "STRING")]
    warehouse.create(JAVA, "t", columns, options={"write-only": "true"})
    warehouse.write(JAVA, "t", [{"id": 1, "x": 1.5, "gone": "a"}])
    warehouse.write(LAKELET, "t", [{"id": 2, "x": float("nan"), "gone": "b"}])
    warehouse.java.alter(
        warehouse.folder,
        "db.t",
        {"op": "rename", "name": ["x"], "to": "y"},
        {"op": "type", "name": ["y"], "type": json_type("DOUBLE")},
        {"op": "drop", "name": ["gone"]},
        {"op": "add", "name": ["z"], "type": json_type("STRING")},
    )
    warehouse.write(PYTHON, "t", [{"id": 3, "y": 3.5, "z": "new"}])
    before = warehouse.agree("t", readers=(LAKELET, JAVA))
    assert compact(warehouse.table("t"), full=True) is not None
    assert len(files_of(warehouse.table("t"))) == 1
    same(warehouse.agree("t"), before, "all after compaction")


def test_deleted_rows_stay_deleted(warehouse: Warehouse) -> None:
    options = {"deletion-vectors.enabled": "true", "write-only": "true"}
    warehouse.create(LAKELET, "t", [("id", "BIGINT")], options=options)
    for start in (0, 10):
        warehouse.write(LAKELET, "t", [{"id": id_} for id_ in range(start, start + 10)])
    table = warehouse.table("t")
    first, second = files_of(table)
    delete_rows(table, {first.name: [0, 1, 2], second.name: [9]})
    expected = [{"id": id_} for id_ in range(3, 19)]
    same(warehouse.agree("t", readers=(LAKELET, JAVA)), expected, "all before")
    compact(table, full=True)
    same(warehouse.agree("t"), expected, "all after compaction")
    assert [snapshot.get("indexManifest") for snapshot in warehouse.java.snapshots(warehouse.folder, "db.t")][
        -1
    ] is None
