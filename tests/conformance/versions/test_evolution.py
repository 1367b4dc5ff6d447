"""Schemas that change between writes: by Lakelet or by Java, the same schema comes out and all readers agree."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from lakelet import InvalidError
from lakelet.model.types import Atomic, Kind
from tests.conformance.line_process import HarnessError
from tests.conformance.tables import JAVA, LAKELET, READERS, Rows, Warehouse, json_type, same, spell_rows

Change = Mapping[str, Any]


def add(name: Any, text: str, **place: Any) -> Change:
    return {"op": "add", "name": name, "type": json_type(text), "text": text, **place}


def rename(name: Any, to: str) -> Change:
    return {"op": "rename", "name": name, "to": to}


def drop(name: Any) -> Change:
    return {"op": "drop", "name": name}


def widen(name: Any, text: str) -> Change:
    return {"op": "type", "name": name, "type": json_type(text), "text": text}


def move(name: Any, **place: Any) -> Change:
    return {"op": "move", "name": name, **place}


def nullable(name: Any) -> Change:
    return {"op": "nullable", "name": name, "nullable": True}


def apply(warehouse: Warehouse, changer: str, name: str, change: Change) -> None:
    """One change of the schema by the given implementation."""
    if changer == JAVA:
        warehouse.java.alter(
            warehouse.folder, f"db.{name}", {key: value for key, value in change.items() if key != "text"}
        )
        return
    table = warehouse.table(name)
    place = {key: change[key] for key in ("first", "after") if key in change}
    match change["op"]:
        case "add":
            table.add_column(change["name"], change["text"], **place)
        case "rename":
            table.rename_column(change["name"], change["to"])
        case "drop":
            table.drop_column(change["name"])
        case "type":
            table.change_type(change["name"], change["text"])
        case "move":
            table.move_column(change["name"], **place)
        case "nullable":
            table.change_nullability(change["name"], nullable=change["nullable"])


def schema_json(warehouse: Warehouse, name: str) -> dict[str, Any]:
    """The newest schema file without what differs by nature."""
    newest = max((warehouse.path(name) / "schema").glob("schema-*"), key=lambda path: int(path.name.split("-")[1]))
    found: dict[str, Any] = json.loads(newest.read_text())
    found.pop("timeMillis")
    return found


FLAT = [("id", "INT"), ("a", "INT"), ("b", "STRING"), ("c", "DOUBLE")]
FLAT_STEPS: list[tuple[list[Change], Rows]] = [
    ([], [{"id": 1, "a": 10, "b": "x", "c": 0.5}, {"id": 2}]),
    (
        [add("d", "BIGINT"), add("e", "DATE", first=True), add("f", "BOOLEAN", after="a")],
        [{"id": 3, "a": 1, "d": 2, "e": datetime.date(2024, 1, 1), "f": True}],
    ),
    ([rename("a", "alpha"), rename("b", "a")], [{"id": 4, "alpha": 11, "a": "was b"}]),
    ([drop("c"), drop("d")], [{"id": 5, "alpha": 12}]),
    # The old values of a dropped column never come back.
    ([add("c", "DOUBLE"), add("d", "STRING")], [{"id": 6, "c": -0.5, "d": "text now"}]),
    ([move("c", first=True), move("e", after="alpha")], [{"id": 7, "c": 7.5, "alpha": 13}]),
    ([widen("alpha", "BIGINT"), rename("id", "key")], [{"key": 8, "alpha": 2**40}]),
    ([add("b", "ARRAY<ROW<n INT>>")], [{"key": 9, "b": [{"n": 1}, None]}]),
]

_ROW = "ROW<x INT, y STRING, z FLOAT>"
NESTED = [
    ("id", "INT"),
    ("r", _ROW),
    ("l", f"ARRAY<{_ROW}>"),
    ("m", f"MAP<STRING, {_ROW}>"),
    ("rr", f"ROW<inner {_ROW}, note STRING>"),
]
# Where the ROW is, by the path that leads into it.
PLACES: dict[str, list[str]] = {"r": ["r"], "l": ["l", "element"], "m": ["m", "value"], "rr": ["rr", "inner"]}


def nested_row(id_: int, member: dict[str, Any] | None) -> dict[str, Any]:
    return {
        "id": id_,
        "r": member,
        "l": [member, None, member],
        "m": [("k", member), ("n", None)],
        "rr": {"inner": member, "note": f"note {id_}"},
    }


def everywhere(make: Any, *names: Any, **options: Any) -> list[Change]:
    name, *rest = names
    return [make([*path, name], *rest, **options) for path in PLACES.values()]


NESTED_STEPS: list[tuple[list[Change], Rows]] = [
    (
        [],
        [
            nested_row(1, {"x": 1, "y": "one", "z": 0.1}),
            nested_row(2, None),
            nested_row(3, {"x": None, "y": None, "z": None}),
        ],
    ),
    (everywhere(add, "w", "DATE"), [nested_row(4, {"x": 4, "y": "", "z": -0.0, "w": datetime.date(1969, 12, 31)})]),
    (everywhere(rename, "y", "why"), [nested_row(5, {"x": 5, "why": "renamed", "z": 1.5, "w": None})]),
    (everywhere(widen, "x", "BIGINT"), [nested_row(6, {"x": 2**40, "why": None, "z": None, "w": None})]),
    (everywhere(drop, "z"), [nested_row(7, {"x": 7, "why": "without z", "w": None})]),
    (everywhere(add, "z", "STRING", first=True), [nested_row(8, {"z": "text now", "x": 8, "why": None, "w": None})]),
    (
        everywhere(add, "deep", "ROW<p INT, q ARRAY<STRING>>"),
        [nested_row(9, {"z": None, "x": 9, "why": None, "w": None, "deep": {"p": 1, "q": ["a"]}})],
    ),
]


def run_steps(
    warehouse: Warehouse,
    changer: str,
    columns: list[tuple[str, str]],
    steps: list[tuple[list[Change], Rows]],
    readers: tuple[str, ...],
) -> None:
    """Each step changes the schema of two tables, writes to one by Java, to the other by Lakelet, and compares."""
    for writer in (JAVA, LAKELET):
        # Versions of the two are compared by their ids.
        warehouse.create(JAVA, writer, columns, options={"write-only": "true"})
    for number, (changes, rows) in enumerate(steps):
        for writer in (JAVA, LAKELET):
            for change in changes:
                apply(warehouse, changer, writer, change)
            warehouse.write(writer, writer, rows)
        found = warehouse.agree(JAVA, readers=readers)
        assert warehouse.agree(LAKELET, readers=readers) == found, f"step {number}"
        new = spell_rows(rows, warehouse.table(LAKELET).schema.fields)
        assert all(row in found for row in new), f"step {number}"
    for version in range(1, len(steps) + 1):
        assert warehouse.agree(LAKELET, readers=(LAKELET, JAVA), snapshot=version) == warehouse.agree(
            JAVA, readers=(LAKELET, JAVA), snapshot=version
        )


@pytest.mark.parametrize("changer", [LAKELET, JAVA])
def test_columns_change(warehouse: Warehouse, changer: str) -> None:
    run_steps(warehouse, changer, FLAT, FLAT_STEPS, READERS)


@pytest.mark.parametrize("changer", [LAKELET, JAVA])
def test_nested_columns_change(warehouse: Warehouse, changer: str) -> None:
    run_steps(warehouse, changer, NESTED, NESTED_STEPS, READERS)


@pytest.mark.parametrize(("columns", "steps"), [(FLAT, FLAT_STEPS), (NESTED, NESTED_STEPS)], ids=["flat", "nested"])
def test_changes_give_the_schema_that_java_gives(
    warehouse: Warehouse, columns: list[tuple[str, str]], steps: list[tuple[list[Change], Rows]]
) -> None:
    for changer in (JAVA, LAKELET):
        warehouse.create(changer, changer, columns)
    assert schema_json(warehouse, LAKELET) == schema_json(warehouse, JAVA)
    for changes, _ in steps:
        for change in changes:
            for changer in (JAVA, LAKELET):
                apply(warehouse, changer, changer, change)
            assert schema_json(warehouse, LAKELET) == schema_json(warehouse, JAVA), change


_MOMENT = datetime.datetime(2024, 2, 29, 12, 30, 15, 123000)
# Old type, new types, values of the old type,
WIDENINGS: list[tuple[str, list[str], list[Any]]] = [
    ("TINYINT", ["SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(5, 2)", "DECIMAL(38, 10)"], [-128, 127, 0]),
    ("SMALLINT", ["INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(5, 0)", "DECIMAL(20, 3)"], [-32768, 32767]),
    ("INT", ["BIGINT", "DOUBLE", "DECIMAL(10, 0)", "DECIMAL(30, 10)"], [-(2**31), 2**31 - 1]),
    ("BIGINT", ["DECIMAL(19, 0)", "DECIMAL(38, 5)"], [-(2**63), 2**63 - 1]),
    ("FLOAT", ["DOUBLE"], [0.1, -0.0, float("nan"), float("inf"), 3.4028235e38]),
    (
        "DECIMAL(9, 2)",
        ["DECIMAL(9, 2)", "DECIMAL(12, 2)", "DECIMAL(12, 5)", "DECIMAL(38, 10)"],
        [Decimal("-9999999.99"), Decimal("0.01")],
    ),
    ("DECIMAL(18, 4)", ["DECIMAL(20, 4)", "DECIMAL(38, 20)"], [Decimal("-99999999999999.9999")]),
    ("CHAR(3)", ["VARCHAR(3)", "VARCHAR(10)", "STRING"], ["abc", "数据库", "ab"]),
    ("VARCHAR(5)", ["VARCHAR(9)", "STRING"], ["", "12345"]),
    ("BINARY(3)", ["VARBINARY(3)", "BYTES"], [b"\x00\x01\x02"]),
    ("VARBINARY(4)", ["VARBINARY(40)", "BYTES"], [b"", b"\xff\x00"]),
    ("TIMESTAMP(0)", ["TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP(9)"], [_MOMENT.replace(microsecond=0)]),
    ("TIMESTAMP(3)", ["TIMESTAMP(6)", "TIMESTAMP(9)"], [_MOMENT, datetime.datetime(1969, 12, 31)]),
    ("TIMESTAMP(6)", ["TIMESTAMP(9)"], [_MOMENT]),
    (
        "TIMESTAMP(3) WITH LOCAL TIME ZONE",
        ["TIMESTAMP(6) WITH LOCAL TIME ZONE", "TIMESTAMP(9) WITH LOCAL TIME ZONE"],
        [_MOMENT, datetime.datetime(1969, 12, 31)],
    ),
]
PAIRS = [
    (f"c{i}_{j}", old, new, values) for i, (old, news, values) in enumerate(WIDENINGS) for j, new in enumerate(news)
]


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
@pytest.mark.parametrize("writer", [LAKELET, JAVA])
def test_every_widening(warehouse: Warehouse, writer: str, file_format: str) -> None:
    """Old files are read in the wider types, and Java reads the same."""
    pairs = [pair for pair in PAIRS if file_format != "avro" or "(9)" not in pair[2]]
    count = max(len(values) for *_, values in pairs)
    rows: Rows = [
        {"id": number, **{name: [*values, None][number % (len(values) + 1)] for name, _, _, values in pairs}}
        for number in range(count + 1)
    ]
    warehouse.create(
        writer, "t", [("id", "INT"), *((name, old) for name, old, _, _ in pairs)], options={"file.format": file_format}
    )
    warehouse.write(writer, "t", rows)
    for number, (name, _, new, _) in enumerate(pairs):
        # Nanoseconds do not hold what coarser timestamps may, so that Lakelet leaves this one to Java.
        apply(warehouse, JAVA if "(9)" in new else (LAKELET, JAVA)[number % 2], "t", widen(name, new))
    wide = [widened(row, warehouse) for row in rows]
    expected = spell_rows(wide, warehouse.table("t").schema.fields)
    same(warehouse.agree("t", readers=(LAKELET, JAVA)), expected, "all")
    warehouse.write(writer, "t", wide)
    same(warehouse.agree("t", readers=(LAKELET, JAVA)), expected + expected, "all")


def widened(row: dict[str, Any], warehouse: Warehouse) -> dict[str, Any]:
    """The row as values of the new types."""
    new = dict(row)
    for field in warehouse.table("t").schema.fields:
        value = row[field.name]
        if isinstance(field.type, Atomic) and field.type.kind is Kind.DECIMAL and isinstance(value, int):
            new[field.name] = Decimal(value)
        elif isinstance(value, float):
            new[field.name] = float(np.float32(value))
    return new


def test_what_java_cannot_cast_is_refused(warehouse: Warehouse) -> None:
    warehouse.create(LAKELET, "t", [("id", "INT"), ("at", "TIME(0)")])
    with pytest.raises(InvalidError, match="TIME"):
        warehouse.table("t").change_type("at", "TIME(3)")
    with pytest.raises(HarnessError, match="TIME"):
        apply(warehouse, JAVA, "t", widen("at", "TIME(3)"))


# Values of every type, and the types that Java may change a column to, by which some values are lost.
CAST_VALUES: dict[str, list[Any]] = {
    "BOOLEAN": [True, False],
    "TINYINT": [-128, 7, 0],
    "SMALLINT": [-32768, 300],
    "INT": [-(2**31), 70000, 16_777_217],
    "BIGINT": [-(2**63), 2**40, 2**53 + 1],
    "FLOAT": [1.5, -0.0, 1e10, float("nan"), 0.1, -2.7, float("inf")],
    "DOUBLE": [1.5, -0.0, 1e300, float("nan"), 0.1, 1e-7, 123456789.125, -2.7],
    "DECIMAL(10, 3)": [Decimal("1.500"), Decimal("-9999999.999"), Decimal("0.005")],
    "DECIMAL(30, 2)": [Decimal("1.50"), Decimal("-9999999999999999999999999999.99")],
    "STRING": ["12", "-1"],
    "VARCHAR(10)": ["12", " 7 "],
    "CHAR(5)": ["12", "3"],
    "BYTES": [b"ab", b"", b"\xff"],
    "DATE": [datetime.date(2024, 1, 2), datetime.date(1969, 12, 31)],
    "TIME(3)": [datetime.time(1, 2, 3, 4000), datetime.time(0)],
    "TIMESTAMP(3)": [_MOMENT, datetime.datetime(1969, 12, 31, 23, 59, 59, 1000)],
    "TIMESTAMP(6)": [
        _MOMENT.replace(microsecond=678901),
        datetime.datetime(1969, 12, 31, 23, 59, 59, 1001),
        _MOMENT.replace(microsecond=0),
    ],
    "TIMESTAMP(3) WITH LOCAL TIME ZONE": [_MOMENT, datetime.datetime(1969, 12, 31, 23, 59, 59, 1000)],
}
CAST_TYPES = [
    *(
        "BOOLEAN",
        "TINYINT",
        "SMALLINT",
        "INT",
        "BIGINT",
        "FLOAT",
        "DOUBLE",
        "DECIMAL(10, 3)",
        "DECIMAL(5, 1)",
        "STRING",
        "VARCHAR(3)",
    ),
    *(
        "CHAR(5)",
        "BYTES",
        "BINARY(4)",
        "DATE",
        "TIME(3)",
        "TIMESTAMP(0)",
        "TIMESTAMP(3)",
        "TIMESTAMP(6)",
        "TIMESTAMP(3) WITH LOCAL TIME ZONE",
    ),
]


@pytest.mark.parametrize("old", list(CAST_VALUES))
def test_lossy_changes_by_java_are_read_as_java_reads_them_or_refused(warehouse: Warehouse, old: str) -> None:
    values = CAST_VALUES[old]
    cells = [(f"c{number}", new) for number, new in enumerate(CAST_TYPES) if new != old]
    warehouse.create(JAVA, "t", [("id", "INT"), *((name, old) for name, _ in cells)])
    warehouse.write(
        JAVA, "t", [{"id": at, **{name: value for name, _ in cells}} for at, value in enumerate([*values, None])]
    )
    compared = 0
    for name, new in cells:
        try:
            apply(warehouse, JAVA, "t", widen(name, new))
            expected = warehouse.rows(JAVA, "t", columns=["id", name])
        except HarnessError:
            continue
        try:
            found = warehouse.rows(LAKELET, "t", columns=["id", name])
        except InvalidError:
            continue
        same(found, expected, f"lakelet: {old} as {new}")
        compared += 1
    # Nothing that TIME and BYTES may become is read alike.
    assert compared or old in ("TIME(3)", "BYTES")
