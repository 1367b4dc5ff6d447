"""A nested type in place of another, in one change of Lakelet's: the schema that Java gives in several, and the same rows."""

from __future__ import annotations

import datetime
from decimal import Decimal

from tests.conformance.tables import JAVA, LAKELET, Rows, Warehouse, spell_rows
from tests.conformance.versions.test_evolution import Change, add, apply, schema_json, widen

COLUMNS = [
    ("id", "INT"),
    ("l", "ARRAY<INT>"),
    ("m", "MAP<STRING, FLOAT>"),
    ("r", "ROW<a INT, b ROW<c DECIMAL(5, 1)>>"),
    ("n", "ARRAY<MAP<INT, ROW<x SMALLINT>>>"),
]
# What Lakelet does at once, and how Java gets there.
CHANGES: list[tuple[Change, list[Change]]] = [
    (widen("l", "ARRAY<BIGINT>"), [widen(["l", "element"], "BIGINT")]),
    (widen("m", "MAP<STRING, DOUBLE>"), [widen(["m", "value"], "DOUBLE")]),
    (
        widen("r", "ROW<a BIGINT, z STRING, b ROW<c DECIMAL(9, 3), d DATE>>"),
        [
            widen(["r", "a"], "BIGINT"),
            add(["r", "z"], "STRING", after="a"),
            widen(["r", "b", "c"], "DECIMAL(9, 3)"),
            add(["r", "b", "d"], "DATE"),
        ],
    ),
    (
        widen("n", "ARRAY<MAP<INT, ROW<x INT, y ARRAY<STRING>>>>"),
        [
            widen(["n", "element", "value", "x"], "INT"),
            add(["n", "element", "value", "y"], "ARRAY<STRING>"),
        ],
    ),
]


def test_the_schema_is_the_one_that_java_gives(warehouse: Warehouse) -> None:
    for changer in (JAVA, LAKELET):
        warehouse.create(changer, changer, COLUMNS)
    for ours, theirs in CHANGES:
        apply(warehouse, LAKELET, LAKELET, ours)
        for change in theirs:
            apply(warehouse, JAVA, JAVA, change)
        left, right = schema_json(warehouse, LAKELET), schema_json(warehouse, JAVA)
        # Java takes a version for each of its changes.
        left.pop("id"), right.pop("id")
        assert left == right, ours


def test_older_files_are_read_in_the_new_types(warehouse: Warehouse) -> None:
    old: Rows = [
        {
            "id": 1,
            "l": [1, None, -5],
            "m": [("k", 0.1), ("n", None)],
            "r": {"a": 1, "b": {"c": Decimal("12.5")}},
            "n": None,
        },
        {"id": 2, "l": None, "m": [], "r": None, "n": [[(1, {"x": 7}), (2, None)], None, []]},
    ]
    new: Rows = [
        {
            "id": 3,
            "l": [2**40],
            "m": [("k", 0.1)],
            "r": {"a": 2**40, "z": "z", "b": {"c": Decimal("123456.125"), "d": datetime.date(2026, 1, 1)}},
            "n": [[(1, {"x": 2**20, "y": ["a", None]})]],
        }
    ]
    for writer in (JAVA, LAKELET):
        warehouse.create(JAVA, writer, COLUMNS, options={"write-only": "true"})
        warehouse.write(writer, writer, old)
        for ours, _ in CHANGES:
            apply(warehouse, LAKELET, writer, ours)
        warehouse.write(writer, writer, new)
    found = warehouse.agree(LAKELET, readers=(LAKELET, JAVA))
    assert warehouse.agree(JAVA, readers=(LAKELET, JAVA)) == found
    assert len(found) == 3
    assert all(row in found for row in spell_rows(new, warehouse.table(LAKELET).schema.fields))
