"""Filters prune by the statistics of whoever wrote the files; no row may be lost by that.

The expected rows come from the unfiltered table, filtered here.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.conformance import every_type
from tests.conformance.tables import JAVA, LAKELET, NATIVE, PYTHON, Rows, Warehouse, same, spell_rows

COLUMNS = [
    ("id", "INT"),
    ("big", "BIGINT"),
    ("double", "DOUBLE"),
    ("float", "FLOAT"),
    ("price", "DECIMAL(20, 2)"),
    ("text", "STRING"),
    ("day", "DATE"),
    ("at", "TIMESTAMP(6)"),
    ("ms", "TIMESTAMP(3)"),
    ("yes", "BOOLEAN"),
]

NAN = float("nan")
PREFIX = "a prefix longer than sixteen characters-"
TEXTS = [
    *(
        "",
        "a",
        PREFIX + "1",
        PREFIX + "2",
        PREFIX,
        "x" * 16,
        "x" * 17,
        "\U0010ffff" * 17,
        "\U0010ffff" * 20,
        "\ud7ff" * 20,
    ),
    *("数据" * 12, "ÿ" * 20, "zzzzzzzzzzzzzzz\U0010ffff!", "zzzzzzzzzzzzzzzz", "\uffff" * 17, "é"),
]
DOUBLES = [1.0, NAN, -0.0, 0.0, math.inf, -math.inf, 2.5, 1e300, -1e300, 3.0]


def rows_of_file(number: int) -> Rows:
    """Five rows near each other, so that files differ in their ranges."""
    made: Rows = []
    for step in range(5):
        n = number * 5 + step
        made.append(
            {
                "id": n,
                "big": None if n % 6 == 5 else (n - 20) * 2**40,
                "double": None if number == 3 else DOUBLES[n % len(DOUBLES)] if number % 2 else float(n),
                "float": [NAN, -0.0, 0.5, None][n % 4] if number % 3 else n / 4,
                "price": None if n % 7 == 0 else Decimal(n - 10) / 4,
                "text": TEXTS[n % len(TEXTS)] if number != 5 else None,
                "day": None if n % 9 == 0 else datetime.date(1969, 12, 20) + datetime.timedelta(days=n),
                "at": datetime.datetime(1969, 12, 31, 23, 59, 50) + datetime.timedelta(seconds=n, microseconds=n),
                "ms": None
                if number == 2
                else datetime.datetime(1969, 12, 31, 23, 59, 50) + datetime.timedelta(seconds=n),
                "yes": [True, False, None][number % 3],
            }
        )
    return made


FILES = 8
ROWS = [row for number in range(FILES) for row in rows_of_file(number)]


@pytest.fixture(scope="module")
def tables(java_paimon: Any, pypaimon: Any, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """A table of each writer with the same files."""
    warehouse = Warehouse(tmp_path_factory.mktemp("filters"), java_paimon, pypaimon)
    for writer in (LAKELET, JAVA, PYTHON, NATIVE):
        warehouse.create(JAVA, writer, COLUMNS)
        for number in range(FILES):
            warehouse.write(writer, writer, rows_of_file(number))
    return warehouse


Keep = Callable[[Any], bool]


def compare(operator: str, literal: Any) -> Keep:
    """The comparison in the order of values that Paimon and Lakelet share: NaN equals itself and is the greatest."""

    def key(value: Any) -> Any:
        return (math.isnan(value), 0.0 if math.isnan(value) else value) if isinstance(value, float) else value

    tests: dict[str, Keep] = {
        "=": lambda value: key(value) == key(literal),
        "!=": lambda value: key(value) != key(literal),
        "<": lambda value: key(value) < key(literal),
        "<=": lambda value: key(value) <= key(literal),
        ">": lambda value: key(value) > key(literal),
        ">=": lambda value: key(value) >= key(literal),
    }
    return lambda value: value is not None and tests[operator](value)


# Column, the literal for Java, for Lakelet, for Python.
LITERALS: list[tuple[str, str, str, Any]] = [
    ("id", "17", "17", 17),
    ("id", "-5", "-5", -5),
    ("big", str(2**40 * 3), str(2**40 * 3), 2**40 * 3),
    ("double", "2.5", "2.5", 2.5),
    ("double", "3.0", "3", 3.0),
    ("float", "0.5", "0.5", 0.5),
    ("price", "2.50", "2.5", Decimal("2.5")),
    ("price", "-1.75", "-1.75", Decimal("-1.75")),
    ("day", "1969-12-31", "DATE '1969-12-31'", datetime.date(1969, 12, 31)),
    (
        "at",
        "1970-01-01 00:00:00.000010",
        "TIMESTAMP '1970-01-01 00:00:00.000010'",
        datetime.datetime(1970, 1, 1, 0, 0, 0, 10),
    ),
    ("ms", "1969-12-31 23:59:59.000", "TIMESTAMP '1969-12-31 23:59:59'", datetime.datetime(1969, 12, 31, 23, 59, 59)),
    ("yes", "true", "TRUE", True),
    *(("text", text, f"'{text}'", text) for text in TEXTS if text and "\ud7ff" not in text),
]


@pytest.mark.parametrize("column", dict.fromkeys(column for column, *_ in LITERALS))
@pytest.mark.parametrize("table", [LAKELET, JAVA, PYTHON, NATIVE])
def test_comparisons(tables: Warehouse, table: str, column: str) -> None:
    fields = tables.table(table).schema.fields
    for name, for_java, for_lakelet, value in LITERALS:
        if name != column:
            continue
        for operator in ("=", "!=", "<", "<=", ">", ">="):
            keep = compare(operator, value)
            expected = spell_rows([row for row in ROWS if keep(row[name])], fields)
            same(
                tables.filtered(LAKELET, table, f"{name} {operator} {for_lakelet}"),
                expected,
                f"lakelet: {name} {operator} {value!r}",
            )
            # Java takes -0.0 and 0.0 for two values, and prunes by statistics that leave NaN out.
            if table == LAKELET and name not in ("double", "float"):
                same(
                    tables.filtered(JAVA, table, [f"{name} {operator} {for_java}"]),
                    expected,
                    f"java: {name} {operator} {value!r}",
                )


@pytest.mark.parametrize("column", [name for name, _ in COLUMNS])
@pytest.mark.parametrize("table", [LAKELET, JAVA, PYTHON, NATIVE])
def test_nulls(tables: Warehouse, table: str, column: str) -> None:
    fields = tables.table(table).schema.fields
    for for_java, for_lakelet, wanted in (("isnull", "IS NULL", True), ("notnull", "IS NOT NULL", False)):
        expected = spell_rows([row for row in ROWS if (row[column] is None) == wanted], fields)
        same(tables.filtered(LAKELET, table, f"{column} {for_lakelet}"), expected, f"lakelet: {column} {for_lakelet}")
        if table == LAKELET:
            same(tables.filtered(JAVA, table, [f"{column} {for_java}"]), expected, f"java: {column} {for_java}")


@pytest.mark.parametrize("column", ["double", "float"])
@pytest.mark.parametrize("operator", ["=", "!=", "<", "<=", ">", ">="])
def test_java_loses_no_row_of_ours_by_nan_and_zero(tables: Warehouse, column: str, operator: str) -> None:
    """Java must give, of Lakelet's files, what it gives when it may not prune: the rows in one file, read whole."""
    fields = tables.table(LAKELET).schema.fields
    if "one" not in tables.lake.tables("db"):
        tables.create(JAVA, "one", COLUMNS, options={"metadata.stats-mode": "none"})
        tables.write(LAKELET, "one", ROWS)
    for literal in ("2.5", "0.0", "-0.0", "NaN", "Infinity", "-Infinity", "1E300"):
        text = f"{column} {operator} {literal if literal[-1].isdigit() else chr(34) + literal + chr(34)}"
        expected = tables.filtered(JAVA, "one", [text])
        same(tables.filtered(JAVA, LAKELET, [text]), expected, f"java: {text} of {len(fields)} columns")


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_java_finds_every_value_of_ours(warehouse: Warehouse, file_format: str) -> None:
    """Of Lakelet's files as of its own: by statistics in manifests and footers, and by dictionaries."""
    chosen = [column for column in every_type.columns(file_format) if "<" not in column[1]]
    columns = [("id", "INT"), *((name, text) for name, text, _ in chosen)]
    rows = every_type.rows(chosen)
    for writer in (LAKELET, JAVA):
        warehouse.create(JAVA, writer, columns, options={"file.format": file_format})
        for part in (rows[:3], rows[3:6], rows[6:]):
            warehouse.write(writer, writer, part * 4)
    fields = warehouse.table(JAVA).schema.fields
    for field in fields[1:]:
        values = {row[field.name] for row in spell_rows(rows, fields)} - {None, "NaN"}
        for value in values:
            text = str(value).lower() if isinstance(value, bool) else str(value)
            if not text or text != text.strip() or len(text) > 100:
                continue
            if text.endswith("Infinity"):
                text = f'"{text}"'
            for operator in ("=",) if file_format == "avro" else ("=", ">="):
                condition = [f"{field.name} {operator} {text}"]
                expected = warehouse.filtered(JAVA, JAVA, condition)
                # Java itself misses some of its own rows in ORC files.
                assert expected or operator != "=" or file_format == "orc"
                if not expected and file_format == "orc":
                    continue
                same(warehouse.filtered(JAVA, LAKELET, condition), expected, f"java: {condition}")


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
@pytest.mark.parametrize("writer", [JAVA, PYTHON])
def test_lakelet_finds_every_value_of_theirs(warehouse: Warehouse, writer: str, file_format: str) -> None:
    chosen = [column for column in every_type.columns(file_format, multiset=False) if "<" not in column[1]]
    rows = every_type.rows(chosen)
    warehouse.create(
        JAVA, "t", [("id", "INT"), *((name, text) for name, text, _ in chosen)], options={"file.format": file_format}
    )
    for part in (rows[:3], rows[3:6], rows[6:]):
        warehouse.write(writer, "t", part)
    table = warehouse.table("t")
    everything = table.scan().to_arrow()
    for name in everything.column_names[1:]:
        column = everything.column(name)
        for value in column.unique().drop_null():
            if value.type in (pa.timestamp("ns"), pa.timestamp("ns", "UTC")) and value.value == 2**63 - 1:
                continue  # DuckDB's infinity
            for where, keep in ((pc.field(name) == value, pc.equal), (pc.field(name) <= value, pc.less_equal)):
                expected = sorted(everything.filter(keep(column, value)).column("id").to_pylist())
                assert sorted(table.scan(["id"], where).to_arrow().column("id").to_pylist()) == expected, (name, value)
            # SQL, where NaN equals itself.
            found = table.scan(["id", name], f"{name} = {sql_literal(value)}").to_arrow()
            wanted = everything.filter(pc.or_kleene(pc.equal(column, value), both_nan(column, value)))
            assert sorted(found.column("id").to_pylist()) == sorted(wanted.column("id").to_pylist()), (name, value)


def both_nan(column: pa.ChunkedArray, value: pa.Scalar) -> Any:
    if pa.types.is_floating(column.type) and math.isnan(value.as_py()):
        return pc.is_nan(column)
    return pa.scalar(False)


def sql_literal(value: pa.Scalar) -> str:
    if pa.types.is_binary(value.type):
        return f"X'{value.as_py().hex()}'"
    if pa.types.is_boolean(value.type):
        return str(value.as_py())
    if pa.types.is_decimal(value.type):
        return format(value.as_py(), "f")
    if pa.types.is_floating(value.type):
        return f"CAST('{value.as_py()!r}' AS {'FLOAT' if value.type == pa.float32() else 'DOUBLE'})"
    if pa.types.is_timestamp(value.type):
        moment = np.datetime64(value.cast(pa.int64()).as_py(), value.type.unit)
        return f"'{str(moment).replace('T', ' ')}'"
    return (
        "'{}'".format(str(value.as_py()).replace("'", "''"))
        if not pa.types.is_integer(value.type)
        else str(value.as_py())
    )


def test_prefixes_and_lists(tables: Warehouse) -> None:
    for table in (LAKELET, JAVA, PYTHON, NATIVE):
        fields = tables.table(table).schema.fields
        for prefix in (PREFIX + "1", "a prefix", "x" * 16, "数据数", "\U0010ffff" * 17, "zzzzzzzzzzzzzzz"):
            expected = spell_rows(
                [row for row in ROWS if row["text"] is not None and row["text"].startswith(prefix)], fields
            )
            same(tables.filtered(LAKELET, table, f"text LIKE '{prefix}%'"), expected, f"lakelet: {table} {prefix}")
            same(tables.filtered(JAVA, table, [f"text startswith {prefix}"]), expected, f"java: {table} {prefix}")
        expected = spell_rows([row for row in ROWS if row["text"] in (PREFIX + "2", "é")], fields)
        same(tables.filtered(LAKELET, table, f"text IN ('{PREFIX}2', 'é')"), expected, "lakelet")
        same(tables.filtered(JAVA, table, [f"text in {PREFIX}2,é"]), expected, "java")
        expected = spell_rows([row for row in ROWS if row["id"] in (3, 39) and row["yes"]], fields)
        same(tables.filtered(LAKELET, table, "id IN (3, 39) AND yes"), expected, "lakelet")
        same(tables.filtered(JAVA, table, ["id in 3,39", "yes = true"]), expected, "java")


def test_pypaimon_filters_our_files(tables: Warehouse) -> None:
    cases: list[tuple[list[tuple[Any, ...]], Callable[[dict[str, Any]], bool]]] = [
        ([("id", "greaterThan", 30)], lambda row: row["id"] > 30),
        ([("text", "equal", PREFIX + "1")], lambda row: row["text"] == PREFIX + "1"),
        ([("text", "startsWith", PREFIX)], lambda row: row["text"] is not None and row["text"].startswith(PREFIX)),
        ([("text", "greaterOrEqual", "x" * 17)], lambda row: row["text"] is not None and row["text"] >= "x" * 17),
        ([("ms", "isNull")], lambda row: row["ms"] is None),
        ([("big", "isNotNull"), ("id", "lessThan", 9)], lambda row: row["big"] is not None and row["id"] < 9),
        ([("price", "lessThan", "0.00")], lambda row: row["price"] is not None and row["price"] < 0),
        (
            [("day", "lessOrEqual", "1969-12-31")],
            lambda row: row["day"] is not None and row["day"] <= datetime.date(1969, 12, 31),
        ),
    ]
    fields = tables.table(LAKELET).schema.fields
    for filters, keep in cases:
        expected = spell_rows([row for row in ROWS if keep(row)], fields)
        for reader in (PYTHON, NATIVE):
            found = tables.filtered(reader, LAKELET, filters)
            if reader == NATIVE:
                # The native reader prunes and leaves rows that do not match for its caller to drop.
                texts = {str(row) for row in expected}
                found = [row for row in found if str(row) in texts]
            same(found, expected, f"{reader}: {filters}")
