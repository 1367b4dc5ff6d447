"""Partitions of several columns and types, odd values among them, and their overwriting."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.tables import (
    JAVA,
    LAKELET,
    NATIVE,
    PYTHON,
    READERS,
    Rows,
    Warehouse,
    same,
    spell_rows,
)

ODD_TEXTS = [
    *(
        "a/b",
        "100%",
        "%2F",
        "k=v",
        "a b",
        "naïve 数据 🦆",
        "'",
        '"',
        "\\",
        "\t",
        "..",
        ".",
        "#",
        "?",
        "*",
        ":",
        "{x}",
        "[y]",
        "^",
    ),
    *("__DEFAULT_PARTITION__", " ", "null", "NULL", "a\nb", "\x7f", "~", "-", "&", "+", "x" * 100),
]

# Type and values; NULL is added to each.
TYPED: dict[str, tuple[str, list[Any]]] = {
    "boolean": ("BOOLEAN", [True, False]),
    "tinyint": ("TINYINT", [-128, 127]),
    "smallint": ("SMALLINT", [-32768, 0]),
    "int": ("INT", [-(2**31), 2**31 - 1]),
    "bigint": ("BIGINT", [-(2**63), 2**63 - 1]),
    "float": ("FLOAT", [1.5, 0.1, 1e10, 1e-5, 3.4028235e38, 123456.7]),
    "double": ("DOUBLE", [1.5, 0.1, 1e10, 1e-5, 1.7976931348623157e308, 100.0]),
    "decimal": ("DECIMAL(9, 2)", [Decimal("-1.50"), Decimal("1234567.00")]),
    "wide-decimal": ("DECIMAL(38, 10)", [Decimal("-0.0000000001"), Decimal("12345678901234567890.5000000000")]),
    "string": ("STRING", ["", "plain", *ODD_TEXTS]),
    "char": ("CHAR(4)", ["ab", "abcd"]),
    "date": ("DATE", [datetime.date(1969, 12, 31), datetime.date(2024, 2, 29), datetime.date(1, 1, 1)]),
    "time": ("TIME(3)", [datetime.time(0), datetime.time(23, 59, 59, 999000)]),
    "timestamp0": ("TIMESTAMP(0)", [datetime.datetime(2024, 1, 1), datetime.datetime(1969, 12, 31, 23, 59, 59)]),
    "timestamp3": (
        "TIMESTAMP(3)",
        [datetime.datetime(2024, 1, 1, 10, 11, 12, 500000), datetime.datetime(1969, 12, 31, 23, 59, 59)],
    ),
    "timestamp6": ("TIMESTAMP(6)", [datetime.datetime(2024, 1, 1, 10, 11, 0, 1), datetime.datetime(2024, 1, 1)]),
    "zoned3": ("TIMESTAMP(3) WITH LOCAL TIME ZONE", [datetime.datetime(2024, 1, 1, 10, 11, 12, 500000)]),
    "zoned6": ("TIMESTAMP(6) WITH LOCAL TIME ZONE", [datetime.datetime(2024, 1, 1, 10, 11, 12, 500001)]),
}


def files_below(root: Path) -> set[str]:
    """The partition folders on disk."""
    return {str(path.parent.parent.relative_to(root)) for path in root.rglob("data-*")}


@pytest.mark.parametrize("name", list(TYPED))
def test_partition_values(warehouse: Warehouse, name: str) -> None:
    """The same rows by Java and by Lakelet lie in the same folders, and all readers find them."""
    text, values = TYPED[name]
    rows: Rows = [{"id": number, "p": value} for number, value in enumerate([*values, None])]
    columns = [("id", "INT"), ("p", text)]
    for writer in (LAKELET, JAVA):
        warehouse.create(writer, writer, columns, partitioned_by=["p"], options={"partition.legacy-name": "true"})
        warehouse.write(writer, writer, rows)
    assert files_below(warehouse.path(LAKELET)) == files_below(warehouse.path(JAVA))
    expected = spell_rows(rows, warehouse.table(LAKELET).schema.fields)
    # The native library has no FLOAT and DOUBLE partitions.
    readers = [reader for reader in READERS if reader != NATIVE or name not in ("float", "double")]
    for table in (LAKELET, JAVA):
        same(warehouse.agree(table, readers=readers), expected, f"all of {table}'s")


@pytest.mark.parametrize("name", ["date", "time", "timestamp0", "timestamp3", "timestamp6"])
def test_folders_of_new_tables_are_named_after_values(warehouse: Warehouse, name: str) -> None:
    """Not after numbers of days: `p=2024-02-29`, which the schema says to every engine."""
    text, values = TYPED[name]
    rows: Rows = [{"id": number, "p": value} for number, value in enumerate([*values, None])]
    for writer in (LAKELET, JAVA):
        warehouse.create(LAKELET, writer, [("id", "INT"), ("p", text)], partitioned_by=["p"])
        warehouse.write(writer, writer, rows)
    folders = files_below(warehouse.path(LAKELET))
    assert folders == files_below(warehouse.path(JAVA))
    assert all("-" in folder or ":" in folder or "%3A" in folder for folder in folders if "DEFAULT" not in folder)
    for table, writer in ((LAKELET, JAVA), (JAVA, LAKELET)):
        warehouse.write(writer, table, rows)
        expected = spell_rows(rows * 2, warehouse.table(table).schema.fields)
        same(warehouse.agree(table, readers=(LAKELET, JAVA)), expected, f"all of {table}'s")
        assert files_below(warehouse.path(table)) == folders


SEVERAL = [("id", "INT"), ("day", "DATE"), ("note", "STRING"), ("region", "STRING"), ("hour", "INT")]


def several_rows(first: int, count: int) -> Rows:
    days = [datetime.date(2024, 1, 1), datetime.date(1969, 12, 31), None]
    regions = ["eu/west 1", "", None, "数=%"]
    return [
        {
            "id": id_,
            "day": days[id_ % 3],
            "note": f"n{id_}",
            "region": regions[id_ % 4],
            "hour": [0, 23, None][id_ // 12 % 3],
        }
        for id_ in range(first, first + count)
    ]


@pytest.mark.parametrize("legacy", ["true", "false"])
def test_several_partition_columns(warehouse: Warehouse, legacy: str) -> None:
    keys = ["region", "day", "hour"]
    for writer in (LAKELET, JAVA):
        warehouse.create(writer, writer, SEVERAL, partitioned_by=keys, options={"partition.legacy-name": legacy})
        warehouse.write(writer, writer, several_rows(0, 36))
    assert files_below(warehouse.path(LAKELET)) == files_below(warehouse.path(JAVA))
    expected = spell_rows(several_rows(0, 36), warehouse.table(LAKELET).schema.fields)
    for table in (LAKELET, JAVA):
        same(warehouse.agree(table), expected, f"all of {table}'s")
        for writer, first in ((JAVA, 36), (LAKELET, 72), (PYTHON, 108), (NATIVE, 144)):
            warehouse.write(writer, table, several_rows(first, 36))
        same(
            warehouse.agree(table),
            spell_rows(several_rows(0, 180), warehouse.table(table).schema.fields),
            f"all of {table}'s after every writer",
        )
    # Whoever writes, a partition has one folder.
    assert files_below(warehouse.path(LAKELET)) == files_below(warehouse.path(JAVA))


def test_partitions_choose_the_same_rows(warehouse: Warehouse) -> None:
    warehouse.create(LAKELET, "t", SEVERAL, partitioned_by=["region", "day"])
    warehouse.write(LAKELET, "t", several_rows(0, 24))
    warehouse.write(JAVA, "t", several_rows(24, 24))
    fields = warehouse.table("t").schema.fields
    every = [*several_rows(0, 48)]
    cases: list[tuple[list[str], str, Any]] = [
        (["region = eu/west 1"], "region = 'eu/west 1'", lambda r: r["region"] == "eu/west 1"),
        (["region isnull"], "region IS NULL", lambda r: r["region"] is None),
        (
            ["region notnull", "hour notnull"],
            "region IS NOT NULL AND hour IS NOT NULL",
            lambda r: None not in (r["region"], r["hour"]),
        ),
        (["region < f"], "region < 'f'", lambda r: r["region"] is not None and r["region"] < "f"),
        (["day < 1970-01-01"], "day < DATE '1970-01-01'", lambda r: r["day"] is not None and r["day"].year < 1970),
        (
            ["day = 2024-01-01", "id > 30"],
            "day = '2024-01-01' AND id > 30",
            lambda r: r["day"] == datetime.date(2024, 1, 1) and r["id"] > 30,
        ),
        (
            ["region in 数=%,eu/west 1"],
            "region IN ('数=%', 'eu/west 1')",
            lambda r: r["region"] in ("数=%", "eu/west 1"),
        ),
    ]
    for filters, where, keep in cases:
        expected = spell_rows([row for row in every if keep(row)], fields)
        assert expected
        same(warehouse.filtered(JAVA, "t", filters), expected, f"java {filters}")
        same(warehouse.filtered(LAKELET, "t", where), expected, f"lakelet {where}")


# ---------------------------------------------------------------- overwriting and deleting


@pytest.mark.parametrize("writer", [LAKELET, JAVA, PYTHON, NATIVE])
def test_overwrites(warehouse: Warehouse, writer: str) -> None:
    warehouse.create(JAVA, "t", [("id", "INT"), ("p", "STRING"), ("q", "INT")], partitioned_by=["p", "q"])
    fields = warehouse.table("t").schema.fields

    def row(id_: int, p: str | None, q: int | None) -> dict[str, Any]:
        return {"id": id_, "p": p, "q": q}

    def check(*rows: dict[str, Any]) -> None:
        same(warehouse.agree("t"), spell_rows(list(rows), fields), f"after {writer}'s overwrite")

    base = [row(1, "a", 1), row(2, "a", 2), row(3, "b c", 1), row(4, None, 1), row(5, "", 1)]
    for first in (JAVA, LAKELET):
        warehouse.write(first, "t", base, overwrite={})
        check(*base)
        warehouse.write(writer, "t", [row(6, "a", 1)], overwrite={"p": "a", "q": "1"})
        check(row(6, "a", 1), *base[1:])
        if writer in (LAKELET, JAVA):
            # Named by some of its columns only; pypaimon takes that for a dynamic overwrite.
            warehouse.write(writer, "t", [row(7, "a", 9)], overwrite={"p": "a"})
            check(row(7, "a", 9), *base[2:])


@pytest.mark.parametrize("writer", [LAKELET, JAVA])
def test_dynamic_overwrites(warehouse: Warehouse, writer: str) -> None:
    """Only the partitions that the new rows belong to; the NULL partition and the one of '' are two."""
    warehouse.create(JAVA, "t", [("id", "INT"), ("p", "STRING")], partitioned_by=["p"])
    fields = warehouse.table("t").schema.fields
    base: Rows = [{"id": number, "p": p} for number, p in enumerate(["a", "b", None, "", "x/y"])]
    warehouse.write(PYTHON, "t", base)
    warehouse.write(
        writer, "t", [{"id": 10, "p": None}, {"id": 11, "p": "x/y"}, {"id": 12, "p": "new"}], overwrite=True
    )
    expected: Rows = [base[0], base[1], base[3], {"id": 10, "p": None}, {"id": 11, "p": "x/y"}, {"id": 12, "p": "new"}]
    same(warehouse.agree("t"), spell_rows(expected, fields), "all")
    same(warehouse.agree("t", snapshot=1), spell_rows(base, fields), "all, before")


@pytest.mark.parametrize("writer", [LAKELET, JAVA, PYTHON])
def test_unpartitioned_overwrite(warehouse: Warehouse, writer: str) -> None:
    warehouse.create(LAKELET, "t", [("id", "INT")])
    warehouse.write(JAVA, "t", [{"id": 1}])
    warehouse.write(NATIVE, "t", [{"id": 2}])
    warehouse.write(writer, "t", [{"id": 3}], overwrite={})
    assert warehouse.agree("t") == [{"id": 3}]
    assert warehouse.agree("t", snapshot=2) == [{"id": 1}, {"id": 2}]
    (*_, last) = warehouse.java.snapshots(warehouse.folder, "db.t")
    assert (last["commitKind"], last["totalRecordCount"], last["deltaRecordCount"]) == ("OVERWRITE", 1, -1)


def test_lakelet_deletes_rows_that_others_wrote(warehouse: Warehouse) -> None:
    warehouse.create(JAVA, "t", SEVERAL, partitioned_by=["region", "day"])
    fields = warehouse.table("t").schema.fields
    for number, writer in enumerate((JAVA, LAKELET, PYTHON, NATIVE)):
        warehouse.write(writer, "t", several_rows(number * 24, 24))
    left = several_rows(0, 96)
    for where, gone in (
        ("id % 7 = 3", lambda r: r["id"] % 7 == 3),
        ("region IS NULL", lambda r: r["region"] is None),
        ("day = DATE '2024-01-01' AND hour = 0", lambda r: r["day"] == datetime.date(2024, 1, 1) and r["hour"] == 0),
        ("note = 'n17'", lambda r: r["note"] == "n17"),
    ):
        warehouse.table("t").delete(where=where)
        left = [row for row in left if not gone(row)]
        same(warehouse.agree("t"), spell_rows(left, fields), f"all after {where}")
    warehouse.write(JAVA, "t", several_rows(96, 3))
    same(warehouse.agree("t"), spell_rows([*left, *several_rows(96, 3)], fields), "all")
