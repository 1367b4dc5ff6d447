"""System tables have the same columns and rows as Java Paimon's."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lakelet.catalog.names import split_name
from lakelet.sql.context import Context
from lakelet.sql.query.relation import Relation, Rows
from lakelet.sql.system import global_relation, system_relation
from lakelet.sql.system.change_log import changes_relation
from lakelet.table.read.table_scan import TableScan
from tests.conformance.java.values import rows_of
from tests.conformance.tables import DATABASE, JAVA, LAKELET, Warehouse, in_order, same

Row = dict[str, Any]
# Java 1.4.2 has no such columns yet.
NEWER = {"partitions": ("total_buckets", "done", "deleted_record_count")}
# All but $branches, whose times Java takes from folders.
ALL = ("snapshots", "schemas", "options", "files", "tags", "partitions", "buckets", "manifests", "consumers")
MORE = ("statistics", "table_indexes", "file_key_ranges", "aggregation_fields", "audit_log", "binlog", "ro")


def rows_in(relation: Relation) -> list[Row]:
    if isinstance(relation, Rows):
        relation = pa.Table.from_batches(relation.read(None, None), relation.schema)
    return rows_of(relation.to_arrow() if isinstance(relation, TableScan) else relation)


def ours(warehouse: Warehouse, table: str, system: str) -> list[Row]:
    name = split_name([DATABASE, f"{table}${system}"], DATABASE)
    return [_comparable(row, system) for row in rows_in(system_relation(Context(warehouse.lake), name))]


def javas(warehouse: Warehouse, table: str, system: str) -> list[Row]:
    found = warehouse.java.read(warehouse.folder, f"{DATABASE}.{table}${system}")
    return [_comparable(row, system) for row in found]


def check(warehouse: Warehouse, table: str, *systems: str) -> set[str]:
    """Those of the system tables that have no rows; all are the same as Java's."""
    empty = set()
    for system in systems:
        expected = javas(warehouse, table, system)
        same(ours(warehouse, table, system), expected, f"${system}")
        if not expected:
            empty.add(system)
    return empty


def _comparable(row: Mapping[str, Any], system: str) -> Row:
    found = {name: value for name, value in row.items() if name not in NEWER.get(system, ())}
    for name in ("file_path", "colstat", "options"):
        value = found.get(name)
        if isinstance(value, str):
            found[name] = value.removeprefix("file:").replace("//", "/") if name == "file_path" else json.loads(value)
    return found


@pytest.mark.parametrize("writer", [LAKELET, JAVA])
def test_keyed_table(warehouse: Warehouse, writer: str) -> None:
    columns = [
        ("id", "INT"),
        ("s", "STRING"),
        ("p", "STRING"),
        ("day", "DATE"),
        ("v", "DOUBLE"),
        ("n", "DECIMAL(10, 2)"),
    ]
    options = {"bucket": "2", "write-only": "true"}
    warehouse.create(
        writer, "t", columns, primary_key=["id", "s", "p", "day"], partitioned_by=["p", "day"], options=options
    )
    check(warehouse, "t", *ALL, *MORE)

    def rows(ids: range, v: float | None) -> list[Row]:
        days = [datetime.date(2024, 1, 1), datetime.date(1969, 7, 20)]
        return [
            {"id": i, "s": f"k {i}", "p": "ab"[i % 2], "day": days[i % 2], "v": v, "n": None if v is None else i}
            for i in ids
        ]

    warehouse.write(writer, "t", rows(range(20), 1.5))
    warehouse.java.compact(warehouse.folder, f"{DATABASE}.t")
    warehouse.write(writer, "t", rows(range(15, 25), 1e10), kinds=["-D" if i % 3 else "+U" for i in range(15, 25)])
    table = warehouse.table("t")
    table.add_column("added", "INT", comment="later")
    table.rename_column("v", "w")
    table.change_type("n", "DECIMAL(12, 4)")
    warehouse.write(writer, "t", [{**row, "added": 1, "w": row.pop("v")} for row in rows(range(3), None)])
    table.tags.create("kept", version=1)
    warehouse.java.tag_retained(warehouse.folder, f"{DATABASE}.t", "passing", "PT25H0.5S")
    table.consumers.set("someone", 2)
    table.analyze()
    assert check(warehouse, "t", *ALL, *MORE) == {"table_indexes"}


@pytest.mark.parametrize("writer", [LAKELET, JAVA])
def test_append_table(warehouse: Warehouse, writer: str) -> None:
    columns = [("a", "BIGINT"), ("b", "BOOLEAN"), ("t", "TIMESTAMP(6)"), ("x", "BYTES"), ("many", "ARRAY<INT>")]
    warehouse.create(writer, "t", columns, options={"metadata.stats-mode": "full"})
    moment = datetime.datetime(2024, 1, 2, 3, 4, 5, 600_000)
    for first in (0, 5):
        warehouse.write(
            writer,
            "t",
            [{"a": first + i, "b": i > 2, "t": moment, "x": b"xy", "many": [1, None]} for i in range(3)],
        )
    assert check(warehouse, "t", *ALL, *MORE) == {"tags", "consumers", "statistics", "table_indexes"}


@pytest.mark.parametrize("kind", ["TIMESTAMP(3)", "TIMESTAMP(9)", "INT", "DOUBLE", "DECIMAL(9, 3)", "BOOLEAN", "TIME"])
def test_partitions_of_every_type(warehouse: Warehouse, kind: str) -> None:
    values: dict[str, list[Any]] = {
        "TIMESTAMP(3)": [datetime.datetime(2024, 1, 2, 3, 4, 5, 600_000), datetime.datetime(2024, 1, 2)],
        "TIMESTAMP(9)": [datetime.datetime(2024, 1, 2, 3, 4, 5, 600_001)],
        "INT": [-7, 8],
        "DOUBLE": [0.1, 1e-5, 12345678.0],
        "DECIMAL(9, 3)": ["1.5", "-12.125"],
        "BOOLEAN": [True, False],
        "TIME": [datetime.time(1, 2, 3), datetime.time(0, 0, 0)],
    }
    # Java does not read back what it calls partitions of timestamps by default.
    options = {"partition.legacy-name": "false"} if kind.startswith("TIMESTAMP") else {}
    warehouse.create(JAVA, "t", [("p", kind), ("a", "INT")], partitioned_by=["p"], options=options)
    found = [*values[kind], None]
    if kind.startswith("DECIMAL"):
        found = [None if value is None else Decimal(value) for value in found]
    warehouse.write(LAKELET, "t", [{"p": value, "a": place} for place, value in enumerate(found)])
    check(warehouse, "t", "files", "partitions", "buckets", "manifests")


def test_deletion_vectors_and_dynamic_buckets(warehouse: Warehouse) -> None:
    options = {"deletion-vectors.enabled": "true", "bucket": "-1"}
    warehouse.create(JAVA, "t", [("id", "INT"), ("v", "INT")], primary_key=["id"], options=options)
    for step in range(3):
        warehouse.write(JAVA, "t", [{"id": i, "v": step} for i in range(step * 3, step * 3 + 5)])
    check(warehouse, "t", *ALL, *MORE)
    assert {row["index_type"] for row in ours(warehouse, "t", "table_indexes")} == {"HASH", "DELETION_VECTORS"}


def test_changes(warehouse: Warehouse) -> None:
    options = {"bucket": "1", "changelog-producer": "lookup"}
    warehouse.create(JAVA, "t", [("id", "INT"), ("v", "INT")], primary_key=["id"], options=options)
    warehouse.write(JAVA, "t", [{"id": i, "v": 0} for i in range(5)])
    warehouse.write(JAVA, "t", [{"id": i, "v": 1} for i in range(3, 7)], kinds=["+I", "-D", "+I", "+I"])
    table = warehouse.table("t")
    for system in ("audit_log", "binlog"):
        expected = warehouse.java.changes(warehouse.folder, f"{DATABASE}.t${system}", 1, 9)
        expected = [{name: value for name, value in row.items() if name != "_kind"} for row in expected]
        same(in_order(rows_in(changes_relation(table, system, 0))), in_order(expected), system)


def test_global_tables(warehouse: Warehouse) -> None:
    warehouse.create(JAVA, "one", [("id", "INT"), ("p", "STRING")], partitioned_by=["p"], options={"bucket": "-1"})
    warehouse.create(LAKELET, "two", [("id", "INT")], primary_key=["id"], options={"bucket": "2"})
    warehouse.write(LAKELET, "one", [{"id": 1, "p": "x"}, {"id": 2, "p": "y/z"}])
    context = Context(warehouse.lake)
    named = ("database_name", "table_name", "table_type", "partitioned", "primary_key")

    def both(table: str) -> tuple[list[Row], list[Row]]:
        return rows_in(global_relation(context, table)), warehouse.java.read(warehouse.folder, f"sys.{table}")

    found, expected = both("tables")
    assert [set(row) for row in found] == [set(row) for row in expected]
    same(
        [{name: row[name] for name in named} for row in found],
        [{name: row[name] for name in named} for row in expected],
        "tables",
    )
    found, expected = both("partitions")
    same(found, expected, "partitions")
    found, expected = both("all_table_options")
    same(found, [row for row in expected if row["key"] != "path"], "options")
