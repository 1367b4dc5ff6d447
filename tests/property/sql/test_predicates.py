"""Random tables and random conditions: DuckDB's own WHERE is the judge of every stage."""

import datetime as dt
import io
import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelet.model.arrow.arrow_types import arrow_schema
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field
from lakelet.predicate.pruning import (
    ColumnRange,
    always_match,
    may_match,
    partition_range,
    prune_expression,
)
from lakelet.predicate.row_filter import row_filter
from lakelet.predicate.where import parse_where
from tests.tiers.examples import examples

DAY = dt.date(2024, 1, 1)
NOON = 1_704_110_400
TEXTS = ["", "a", "ab", "abc", "abd", "b", "é", "é%", "a_b", "it's", "\U0001d11e", "\uffff", "\U0010ffff", "A", "a\nb"]


def float32(value: float) -> float:
    found: float = struct.unpack("f", struct.pack("f", value))[0]
    return found


@dataclass(frozen=True)
class Kind:
    """A column type, values for its rows, and literals to compare it with."""

    type: str
    values: list[Any]
    literals: list[str]


def integers(bits: int, sql: str) -> Kind:
    top = 2 ** (bits - 1)
    numbers = [-2, -1, 0, 1, 2, 3, top - 1, -top]
    plain = [str(number) for number in numbers]
    return Kind(
        sql, numbers, [*plain, "1.5", "-0.5", "2.0", "3000000000", "2e0", "1.5e0", "99999999999999999999", "'2'"]
    )


def timestamps(sql: str, unit: int, literal: str | None) -> Kind:
    """Values in the column's unit; literals with more digits than it has. Without `literal` they are text only."""
    texts = ["2024-01-01 12:00:00", "2024-01-01 12:00:00.001", "2024-01-01 12:00:00.0015", "1969-12-31 23:59:59.999"]
    texts += ["2024-01-01 12:00:00.000001", "2024-01-01 12:00:00.0000015"] if unit >= 10**6 else []
    values = [NOON * unit + step for step in (-1, 0, 1, 2, unit // 1000)] + [-1, 0, -unit // 1000]
    plain = [f"'{text}'" for text in texts]
    if literal is None:
        return Kind(sql, values, plain)
    typed = [f"{literal} {text}" for text in plain]
    return Kind(sql, values, [*typed, *plain, "DATE '2024-01-01'", "DATE '1970-01-01'"])


FLOATS = [0.0, -0.0, 1.5, -1.5, 0.1, math.nan, math.inf, -math.inf, 16777217.0, 2.0]
FLOAT_LITERALS = [
    "0",
    "-0.0",
    "0.1",
    "1e-1",
    "1.5",
    "'nan'",
    "'inf'",
    "'-inf'",
    "CAST('nan' AS DOUBLE)",
    "16777217",
    "2",
]
FLOAT_LITERALS += ["CAST(0.1 AS FLOAT)", "-1.5e0", "1e300", "16777217e0"]
KINDS = {
    "i8": integers(8, "TINYINT"),
    "i16": integers(16, "SMALLINT"),
    "i32": integers(32, "INT"),
    "i64": integers(64, "BIGINT"),
    "f32": Kind("FLOAT", [float32(value) for value in FLOATS], FLOAT_LITERALS),
    "f64": Kind("DOUBLE", FLOATS, FLOAT_LITERALS),
    "dec": Kind(
        "DECIMAL(6, 2)",
        [Decimal(text) for text in ("0.00", "1.00", "1.01", "-1.01", "9999.99", "-9999.99")],
        ["0", "1", "1.005", "1.01", "-1.0100", "9999.991", "10000", "-99999.5", "'1.01'", "1e0"],
    ),
    "big": Kind(
        "DECIMAL(38, 10)",
        [Decimal(text) for text in ("0", "1.5", "1234567890123456789012345678.0000000001")],
        ["0", "1.5", "1234567890123456789012345678.0000000001", "2"],
    ),
    "s": Kind("STRING", TEXTS, ["'" + text.replace("'", "''") + "'" for text in TEXTS]),
    "flag": Kind("BOOLEAN", [True, False], ["TRUE", "FALSE", "'true'"]),
    "bytes": Kind(
        "BYTES", [b"", b"a", b"ab", b"\xff", b"\x00"], ["X''", "X'61'", "X'FF'", "'\\xFF'", "'a'", "BLOB 'ab'"]
    ),
    "day": Kind(
        "DATE",
        [DAY, DAY - dt.timedelta(1), dt.date(1969, 12, 31), dt.date(1, 1, 1)],
        ["DATE '2024-01-01'", "'2024-01-01'", "TIMESTAMP '2024-01-01 12:00:00'", "TIMESTAMP '2024-01-01 00:00:00'"],
    ),
    "time": Kind(
        "TIME(3)",
        [dt.time(0), dt.time(12), dt.time(12, 0, 0, 1000), dt.time(23, 59, 59, 999000)],
        ["TIME '12:00:00'", "'12:00:00.001'", "TIME '12:00:00.0005'", "'23:59:59.999'"],
    ),
    "ts3": timestamps("TIMESTAMP(3)", 10**3, "TIMESTAMP"),
    "ts6": timestamps("TIMESTAMP(6)", 10**6, "TIMESTAMP"),
    "ts9": timestamps("TIMESTAMP(9)", 10**9, "TIMESTAMP_NS"),
    "tz3": timestamps("TIMESTAMP(3) WITH LOCAL TIME ZONE", 10**3, "TIMESTAMPTZ"),
    "tz6": timestamps("TIMESTAMP(6) WITH LOCAL TIME ZONE", 10**6, "TIMESTAMPTZ"),
    # DuckDB itself compares nanoseconds with a zone to nothing but their own type and text.
    "tz9": timestamps("TIMESTAMP(9) WITH LOCAL TIME ZONE", 10**9, None),
}
FIELDS = [Field(number, name, parse_type(kind.type)) for number, (name, kind) in enumerate(KINDS.items())]
SCHEMA = arrow_schema(FIELDS)
OPAQUE = [
    "i32::BIGINT + 1 > i16",
    "f64 > f32",
    "length(s) > 1",
    "s ILIKE 'A%'",
    "CASE WHEN flag THEN i8 > 0 ELSE i8 < 0 END",
]


# Few columns at a time: an example that is about one column finds more than one about nineteen.
some_columns = st.lists(st.sampled_from(list(KINDS)), min_size=1, max_size=2, unique=True)


@st.composite
def tables(draw: st.DrawFn, names: list[str]) -> pa.Table:
    """Random values in the columns `names`, NULL in all others."""
    rows = draw(st.integers(1, 12))
    columns = [
        pa.array(draw(st.lists(st.sampled_from([*KINDS[name].values, None]), min_size=rows, max_size=rows)), arrow)
        if name in names
        else pa.nulls(rows, arrow)
        for name, arrow in zip(SCHEMA.names, SCHEMA.types, strict=True)
    ]
    return pa.table(columns, schema=SCHEMA)


@st.composite
def leaves(draw: st.DrawFn, names: list[str]) -> str:
    name = draw(st.sampled_from(names))
    literal = st.sampled_from(KINDS[name].literals)
    literal_or_null = st.sampled_from([*KINDS[name].literals, "NULL"])
    # Text and other literals mixed in one list are unified by rules of their own; one kind at a time.
    listed = draw(st.lists(literal, min_size=1, max_size=4))
    texts = [text for text in listed if text.startswith("'")]
    others = [text for text in listed if not text.startswith("'")]
    values = [*(texts or others), *draw(st.sampled_from([[], [], ["NULL"]]))]
    negation = draw(st.sampled_from(["", "NOT "]))
    form = draw(
        st.sampled_from(
            ["compare", "compare", "compare", "flip", "in", "between", "null", "distinct", "like", "opaque"]
        )
    )
    operator = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">="]))
    match form:
        case "compare":
            return f"{name} {operator} {draw(literal_or_null)}"
        case "flip":
            return f"{draw(literal)} {operator} {name}"
        case "in":
            return f"{name} {negation}IN ({', '.join(values)})"
        case "between":
            return f"{name} {negation}BETWEEN {draw(literal)} AND {draw(literal)}"
        case "null":
            return f"{name} IS {negation}NULL"
        case "distinct":
            return f"{name} IS {negation}DISTINCT FROM {draw(literal_or_null)}"
        case "like":
            pattern = draw(st.text("ab%_é\\.\U0001d11e", max_size=4))
            return f"s {negation}LIKE '{pattern}'"
        case _:
            return draw(st.sampled_from([f"hash({name}) % 2 = 0", *OPAQUE, "flag", "TRUE", "NULL"]))


def conditions(names: list[str]) -> st.SearchStrategy[str]:
    def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        joined = st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map(lambda parts: f"({' '.join(parts)})")
        return joined | inner.map(lambda text: f"NOT ({text})")

    return st.recursive(leaves(names), larger, max_leaves=4)


@st.composite
def cases(draw: st.DrawFn) -> tuple[pa.Table, str]:
    """Rows, and a condition about the columns that have values."""
    names = draw(some_columns)
    return draw(tables(names)), draw(conditions(names))


class Judge:
    """DuckDB over the same rows, asked independently of the code under test."""

    def __init__(self) -> None:
        self.connection = duckdb.connect()
        self.connection.execute("SET TimeZone = 'UTC'")

    def matches(self, table: pa.Table, condition: str) -> np.ndarray:
        numbered = table.append_column("row_number", pa.array(range(table.num_rows)))
        self.connection.register("rows_of_table", numbered)
        query = f"SELECT row_number FROM rows_of_table WHERE {condition}"
        found = {row[0] for row in self.connection.sql(query).fetchall()}
        return np.array([number in found for number in range(table.num_rows)], dtype=bool)


@pytest.fixture(scope="module")
def judge() -> Judge:
    return Judge()


@settings(max_examples=examples(400), deadline=None)
@given(case=cases())
def test_row_filter_keeps_the_rows_duckdb_keeps(judge: Judge, case: tuple[pa.Table, str]) -> None:
    table, condition = case
    expected = judge.matches(table, condition)
    chosen = row_filter(parse_where(condition, FIELDS), FIELDS)
    numbered = table.append_column("row_number", pa.array(range(table.num_rows)))
    for batch in numbered.to_batches():
        assert chosen.apply(batch)["row_number"].to_pylist() == np.flatnonzero(expected).tolist()


@settings(max_examples=examples(200), deadline=None)
@given(case=cases())
def test_pushdown_and_residual_together_keep_the_same_rows(judge: Judge, case: tuple[pa.Table, str]) -> None:
    table, condition = case
    expected = judge.matches(table, condition)
    chosen = row_filter(parse_where(condition, FIELDS), FIELDS)
    numbered = table.append_column("row_number", pa.array(range(table.num_rows)))
    file = io.BytesIO()
    # pyarrow's footers leave NaN out of the bounds, as those of many writers do: rows must survive that.
    pq.write_table(numbered, file, row_group_size=2)
    fragment = ds.ParquetFileFormat().make_fragment(pa.BufferReader(file.getvalue()))
    read = fragment.to_table(schema=numbered.schema, filter=chosen.pushdown)
    kept = [chosen.apply_residual(batch) for batch in read.to_batches()] if chosen.residual else read.to_batches()
    assert pa.Table.from_batches(kept, numbered.schema)["row_number"].to_pylist() == np.flatnonzero(expected).tolist()


def honest_stats(column: pa.ChunkedArray) -> tuple[Any, Any, int]:
    """Bounds and null count as a writer keeps them: NaN greatest, strings cut to two characters and rounded up."""
    values = [
        value
        for value in (item.as_py() if not hasattr(item, "value") else item.value for item in column)
        if value is not None
    ]
    nulls = column.null_count
    if not values:
        return None, None, nulls
    order: Callable[[Any], Any] = (
        (lambda value: (math.isnan(value), value)) if isinstance(values[0], float) else (lambda value: value)
    )
    low, high = min(values, key=order), max(values, key=order)
    if isinstance(low, float):
        # NaN does not order: take it out of the minimum unless it is all there is.
        numbers = [value for value in values if not math.isnan(value)]
        low = min(numbers) if numbers else math.nan
        high = math.nan if len(numbers) < len(values) else max(numbers)
    if isinstance(low, str):
        low = low[:2]
        if len(high) > 2:
            raised = next((high[:at] + chr(ord(high[at]) + 1) for at in (1, 0) if high[at] != "\U0010ffff"), None)
            if raised is None:
                return None, None, 0
            high = raised
    return low, high, nulls


def statistics(files: list[pa.Table], known: Callable[[], bool]) -> dict[str, ColumnRange]:
    ranges = {}
    rows = pa.array([file.num_rows for file in files], pa.int64())
    for field in SCHEMA:
        stats = [honest_stats(file[field.name]) if known() else (None, None, None) for file in files]
        plain = (
            pa.int64()
            if pa.types.is_timestamp(field.type)
            else pa.int32()
            if pa.types.is_temporal(field.type)
            else None
        )
        low, high = (pa.array([item[at] for item in stats], plain or field.type).cast(field.type) for at in (0, 1))
        ranges[field.name] = ColumnRange(low, high, pa.array([item[2] for item in stats], pa.int64()), rows)
    return ranges


@settings(max_examples=examples(400), deadline=None)
@given(case=cases(), data=st.data())
def test_pruning_never_loses_a_row_nor_claims_too_much(
    judge: Judge, case: tuple[pa.Table, str], data: st.DataObject
) -> None:
    table, condition = case
    size = data.draw(st.integers(1, 4))
    files = [table.slice(start, size) for start in range(0, table.num_rows, size)]
    ranges = statistics(files, lambda: data.draw(st.integers(0, 9)) > 0)
    predicate = parse_where(condition, FIELDS)
    expected = judge.matches(table, condition)
    may, always = may_match(predicate, ranges, len(files)), always_match(predicate, ranges, len(files))
    for number in range(len(files)):
        rows = expected[number * size : (number + 1) * size]
        assert may[number] or not rows.any()
        assert rows.all() or not always[number]


@settings(max_examples=examples(200), deadline=None)
@given(case=cases())
def test_exact_ranges_decide_both_ways(judge: Judge, case: tuple[pa.Table, str]) -> None:
    table, condition = case
    ranges = {name: partition_range(table[name].combine_chunks()) for name in table.column_names}
    predicate = parse_where(condition, FIELDS)
    expected = judge.matches(table, condition)
    assert may_match(predicate, ranges, table.num_rows).tolist() == expected.tolist()
    assert always_match(predicate, ranges, table.num_rows).tolist() == expected.tolist()


@st.composite
def expressions(draw: st.DrawFn, names: list[str]) -> pc.Expression:
    def leaf() -> pc.Expression:
        name = draw(st.sampled_from(names))
        column, value = pc.field(name), draw(st.sampled_from(KINDS[name].values))
        literal = pc.scalar(pa.array([value], SCHEMA.field(name).type)[0])
        compared = draw(st.sampled_from([column == literal, column != literal, column < literal, column >= literal]))
        return draw(
            st.sampled_from([compared, compared, ~compared, column.is_null(), compared.is_null(), column.is_valid()])
        )

    left, right = leaf(), leaf()
    return draw(st.sampled_from([left, left & right, left | right, ~(left & right), ~(left | right)]))


@settings(max_examples=examples(200), deadline=None)
@given(names=some_columns, data=st.data())
def test_pruning_by_arrow_expression_never_loses_a_row(names: list[str], data: st.DataObject) -> None:
    table, expression = data.draw(tables(names)), data.draw(expressions(names))
    size = data.draw(st.integers(1, 3))
    files = [table.slice(start, size) for start in range(0, table.num_rows, size)]
    ranges = statistics(files, lambda: data.draw(st.integers(0, 9)) > 0)
    chosen = row_filter(expression, FIELDS)
    kept = prune_expression(expression, ranges, SCHEMA, len(files))
    for number, file in enumerate(files):
        matching = sum(chosen.apply(batch).num_rows for batch in file.to_batches())
        assert matching == file.filter(expression).num_rows
        assert kept[number] or not matching
