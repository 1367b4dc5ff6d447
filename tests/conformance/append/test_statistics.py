"""Statistics files between Java Paimon and Lakelet."""

from __future__ import annotations

import pytest

from lakelet.model.table_statistics import ColumnStatistics
from tests.conformance.tables import DATABASE, PYTHON, Warehouse

NAME = f"{DATABASE}.t"

COLUMNS = [
    ("id", "BIGINT"),
    ("s", "STRING"),
    ("b", "BOOLEAN"),
    ("f", "DOUBLE"),
    ("small", "DECIMAL(10, 2)"),
    ("large", "DECIMAL(30, 4)"),
    ("d", "DATE"),
    ("t", "TIME(3)"),
    ("ts", "TIMESTAMP(6)"),
    ("z", "TIMESTAMP(3) WITH LOCAL TIME ZONE"),
    ("raw", "BYTES"),
]
ROWS = [
    {
        "id": number,
        "s": "é" * number,
        "b": number > 0,
        "f": "NaN" if number == 3 else number / 7,
        "small": f"{number}.25",
        "large": f"-{number}.0001",
        "d": f"2026-01-0{number + 1}",
        "t": f"01:02:0{number}.004",
        "ts": f"2026-01-01 10:11:1{number}.000001",
        "z": f"2026-01-01 10:11:1{number}.123Z",
        "raw": "00ff",
    }
    for number in range(4)
]


def test_java_reads_ours_and_goes_on(warehouse: Warehouse) -> None:
    java, path = warehouse.java, warehouse.folder
    java.create(path, NAME, COLUMNS)
    java.write(path, NAME, ROWS)
    assert java.statistics(path, NAME) is None
    table = warehouse.table("t")
    table.analyze()
    found = java.statistics(path, NAME)
    assert found is not None
    ours = table.statistics()
    assert ours is not None
    assert (found["snapshotId"], found["schemaId"], found["mergedRecordCount"]) == (1, 0, 4)
    assert found["mergedRecordSize"] == ours.record_bytes
    expected = {
        "id": ("0", "3", 4, 8),
        "s": (None, None, 4, 3),
        "b": ("false", "true", 2, 1),
        "f": ("-0.0", "NaN", 4, 8),
        "small": ("0.25", "3.25", 4, 8),
        "large": ("-3.0001", "-0.0001", 4, 16),
        "d": ("20454", "20457", 4, 4),
        "t": ("3720004", "3723004", 4, 4),
        "ts": ("2026-01-01T10:11:10.000001", "2026-01-01T10:11:13.000001", 4, 8),
        "z": ("2026-01-01T10:11:10.123", "2026-01-01T10:11:13.123", 4, 8),
        "raw": (None, None, 1, 2),
    }
    for name, (low, high, distinct, longest) in expected.items():
        column = found["colStats"][name]
        assert (column.get("min"), column.get("max")) == (low, high), name
        assert (column["distinctCount"], column["nullCount"], column["maxLen"]) == (distinct, 0, longest), name
    # Java reads the file at its own commits, and hands it on.
    java.write(path, NAME, ROWS)
    assert java.statistics(path, NAME) == found
    assert repr(table.statistics()) == repr(ours)
    kinds = [snapshot["commitKind"] for snapshot in java.snapshots(path, NAME)]
    assert kinds == ["APPEND", "ANALYZE", "APPEND"]
    assert len(java.read(path, NAME)) == 8


def test_we_read_javas_and_hand_it_on(warehouse: Warehouse) -> None:
    java, path = warehouse.java, warehouse.folder
    java.create(path, NAME, [("id", "INT"), ("s", "STRING")])
    java.write(path, NAME, [{"id": 1, "s": "a"}, {"id": 5, "s": None}])
    given = {
        "snapshotId": 1,
        "schemaId": 0,
        "mergedRecordCount": 2,
        "mergedRecordSize": 77,
        "colStats": {
            "id": {"colId": 0, "distinctCount": 2, "min": "1", "max": "5", "nullCount": 0, "avgLen": 4, "maxLen": 4},
            "s": {"colId": 1, "distinctCount": 1, "nullCount": 1, "avgLen": 1, "maxLen": 1},
        },
    }
    java.analyze(path, NAME, given)
    table = warehouse.table("t")
    found = table.statistics()
    assert found is not None
    assert (found.snapshot_id, found.schema_id, found.record_count, found.record_bytes) == (1, 0, 2, 77)
    assert found.columns == {
        "id": ColumnStatistics(0, 2, 1, 5, 0, 4, 4),
        "s": ColumnStatistics(1, 1, None, None, 1, 1, 1),
    }
    table.write([{"id": 9, "s": "z"}])
    assert java.statistics(path, NAME) == given
    assert table.changes(0).num_rows == 3


@pytest.mark.parametrize("primary_key", [(), ("id",)])
def test_statistics_of_merged_rows(warehouse: Warehouse, primary_key: tuple[str, ...]) -> None:
    java, path = warehouse.java, warehouse.folder
    java.create(
        path,
        NAME,
        [("id", "INT"), ("s", "STRING")],
        primary_key=primary_key,
        options={"bucket": "1", "bucket-key": "id"},
    )
    for text in ("a", "b"):
        java.write(path, NAME, [{"id": number, "s": text} for number in range(10)])
    warehouse.table("t").analyze()
    found = java.statistics(path, NAME)
    assert found is not None
    assert found["mergedRecordCount"] == (10 if primary_key else 20)
    assert found["colStats"]["s"]["distinctCount"] == (1 if primary_key else 2)
    # A snapshot without data is in nobody's way; pypaimon hands no statistics on.
    assert len(warehouse.agree("t")) == (10 if primary_key else 20)
    warehouse.write(PYTHON, "t", [{"id": 10, "s": "c"}])
    assert len(warehouse.agree("t")) == (11 if primary_key else 21)
    assert java.statistics(path, NAME) is None
