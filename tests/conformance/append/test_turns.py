"""Lakelet, Java and pypaimon write one table in turn, change its schema in turn, and agree after each step."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pytest

from lakelet.sql.session import Session
from tests.conformance.line_process import HarnessError
from tests.conformance.tables import JAVA, LAKELET, NATIVE, PYTHON, Rows, Warehouse, json_type, same, spell_rows

COLUMNS = [
    ("id", "BIGINT"),
    ("price", "DECIMAL(12, 2)"),
    ("wide", "DECIMAL(30, 5)"),
    ("at", "TIMESTAMP(6)"),
    ("day", "DATE"),
    ("tags", "ARRAY<STRING>"),
    ("spot", "ROW<x INT, y FLOAT>"),
    ("p", "STRING"),
]


def rows_for(names: list[str], first: int) -> Rows:
    def row(id_: int) -> dict[str, Any]:
        full = {
            "id": id_,
            "price": Decimal(id_) / 4,
            "wide": None if id_ % 3 == 0 else Decimal(id_) * 10**15,
            "at": datetime.datetime(1969, 12, 31, 23, 59, 59) + datetime.timedelta(microseconds=id_ * 999_999),
            "day": datetime.date(2024, 2, 28) + datetime.timedelta(days=id_),
            "tags": [None, [], ["a", None], [f"tag {id_}"]][id_ % 4],
            "spot": None if id_ % 5 == 0 else {"x": id_, "y": id_ / 8},
            "p": [None, "", "a b", "x/y"][id_ % 4],
            "note": f"note {id_}",
            "count": id_ * 2,
        }
        return {name: full[name] for name in names}

    return [row(id_) for id_ in range(first, first + 8)]


LAYOUTS: dict[str, dict[str, Any]] = {
    "plain": {"options": {"write-only": "true"}},
    "partitioned": {"partitioned_by": ["p"], "options": {"write-only": "true"}},
    "merging": {"partitioned_by": ["p"], "options": {"manifest.merge-min-count": "3", "write-only": "true"}},
    "buckets": {"options": {"bucket": "3", "bucket-key": "id", "write-only": "true"}},
}


@pytest.mark.parametrize("layout", list(LAYOUTS))
def test_writers_take_turns(warehouse: Warehouse, layout: str) -> None:
    warehouse.create(JAVA, "t", COLUMNS, **LAYOUTS[layout])
    names = [name for name, _ in COLUMNS]
    written: Rows = []
    for number, writer in enumerate((JAVA, LAKELET, PYTHON, NATIVE, LAKELET, JAVA, PYTHON, LAKELET)):
        rows = rows_for(names, number * 8)
        warehouse.write(writer, "t", rows)
        written += rows
        if number % 2:
            expected = spell_rows(written, warehouse.table("t").schema.fields)
            same(warehouse.agree("t"), expected, f"all after {writer}, turn {number}")
    table = warehouse.table("t")
    assert table.scan().count() == len(written)
    snapshots = warehouse.java.snapshots(warehouse.folder, "db.t")
    assert [snapshot["id"] for snapshot in snapshots] == list(range(1, 9))
    totals = [snapshot["totalRecordCount"] for snapshot in snapshots]
    assert totals == [8 * turn for turn in range(1, 9)]


def test_turns_with_schema_changes(warehouse: Warehouse) -> None:
    warehouse.create(LAKELET, "t", COLUMNS, partitioned_by=["p"])
    java, table = warehouse.java, warehouse.table("t")

    def by_java(*changes: dict[str, Any]) -> None:
        java.alter(warehouse.folder, "db.t", *changes)

    steps: list[Any] = [
        lambda: by_java({"op": "add", "name": "note", "type": "STRING"}),
        lambda: table.add_column("count", "INT", after="id"),
        lambda: by_java({"op": "drop", "name": "day"}, {"op": "rename", "name": ["spot", "x"], "to": "east"}),
        lambda: table.change_type("count", "BIGINT"),
        lambda: by_java({"op": "add", "name": "day", "type": "DATE", "first": True}),
        lambda: table.rename_column("spot.east", "x"),
        lambda: by_java({"op": "type", "name": "price", "type": "DECIMAL(20, 2)"}),
        lambda: table.add_column("spot.z", "ARRAY<INT>"),
    ]
    first = 0
    for number, step in enumerate(steps):
        for writer in (JAVA, LAKELET, PYTHON):
            names = [name for name in table.schema.names if name != "spot"]
            rows = rows_for(names, first)
            warehouse.write(writer, "t", rows)
            first += 8
        before = {row["id"]: row for row in warehouse.agree("t")}
        assert sorted(before) == list(range(first))
        step()
        after = {row["id"]: row for row in warehouse.agree("t")}
        kept = set(next(iter(before.values()))) & set(next(iter(after.values()))) - {"day", "spot", "price"}
        assert {id_: {name: row[name] for name in kept} for id_, row in after.items()} == {
            id_: {name: row[name] for name in kept} for id_, row in before.items()
        }, f"step {number}"


def test_defaults_that_lakelet_and_java_know(warehouse: Warehouse) -> None:
    """A default fills in at the write; rows written before stay NULL."""
    warehouse.create(LAKELET, "t", [("id", "INT")])
    warehouse.write(LAKELET, "t", [{"id": 1}])
    warehouse.table("t").add_column("kind", "STRING", default="plain")
    warehouse.table("t").write([{"id": 2}])
    warehouse.java.alter(
        warehouse.folder,
        "db.t",
        {"op": "add", "name": "size", "type": json_type("INT")},
        {"op": "default", "name": "size", "value": "7"},
    )
    warehouse.table("t").write([{"id": 3}])
    warehouse.java.write(warehouse.folder, "db.t", [{"id": 4, "kind": None, "size": None}])
    rows = {row["id"]: (row["kind"], row["size"]) for row in warehouse.agree("t")}
    assert (rows[1], rows[2], rows[3]) == ((None, None), ("plain", None), ("plain", 7))


def test_expressions_that_java_does_not_know(warehouse: Warehouse) -> None:
    """Java reads the table, writes NULL where Lakelet would evaluate the default, and knows a literal that was folded."""
    warehouse.create(LAKELET, "t", [("id", "INT")])
    session = Session(warehouse.lake)
    session.run(
        "ALTER TABLE db.t ADD COLUMNS (u STRING DEFAULT uuid(), made TIMESTAMP DEFAULT now(), n INT DEFAULT 1 + 2)"
    )
    session.run("INSERT INTO db.t (id) VALUES (1), (2)")
    warehouse.java.write(warehouse.folder, "db.t", [{"id": 3, "u": None, "made": None, "n": None}])
    warehouse.java.alter(warehouse.folder, "db.t", {"op": "add", "name": "more", "type": json_type("INT")})
    warehouse.table("t").write([{"id": 4}])
    rows = {row["id"]: row for row in warehouse.agree("t")}
    assert [rows[number]["u"] is None for number in (1, 2, 3, 4)] == [False, False, True, False]
    assert [rows[number]["made"] is None for number in (1, 2, 3, 4)] == [False, False, True, False]
    assert {row["n"] for row in rows.values()} == {3}
    assert rows[1]["u"] != rows[2]["u"]
    # Java's own check of options keeps a name from being taken over by another column.
    for change in ({"op": "drop", "name": "u"}, {"op": "rename", "name": "u", "to": "v"}):
        with pytest.raises(HarnessError, match="Field u can not be found"):
            warehouse.java.alter(warehouse.folder, "db.t", change)
    warehouse.table("t").rename_column("u", "v")
    warehouse.table("t").write([{"id": 5}])
    assert len({row["v"] for row in warehouse.agree("t")}) == 5
