"""Conditions on files that Spark reads itself: the rows are those that our own filter keeps."""

import math
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import lakelet
from lakelet import Table
from lakelet.spark.read.table_frame import table as read
from lakelet.spark.session import settings as spark_settings
from tests.property.sql.test_predicates import KINDS, conditions
from tests.spark.same_rows import plan_text
from tests.tiers.examples import examples

pytestmark = [pytest.mark.spark]

# Spark reads no TIME and no nanoseconds; files that have them are tested with the random tables.
_NATIVE = {name: kind for name, kind in KINDS.items() if name not in ("time", "ts9", "tz9")}


_TOGETHER = 8
_AT_ONCE = 40


@pytest.fixture(scope="module")
def every_kind(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """All values of every type, NULL in other columns, in row groups with dictionaries and bloom filters. Our own pruning
    has nothing to go by, so that Spark's does all."""
    lake = lakelet.connect(str(tmp_path_factory.mktemp("kinds")))
    lake.create_database("d")
    options = {
        "parquet.enable.dictionary": "true",
        "parquet.bloom.filter.enabled": "true",
        "metadata.stats-mode": "none",
        "file.block-size": "1 b",
        "write.batch-memory": "1 b",
    }
    pairs = [(name, kind.type) for name, kind in _NATIVE.items()]
    table = lake.create_table("d.t", [("n", "INT"), *pairs], options=options)
    schema = table.scan().arrow_schema
    # Each batch is a row group of its own: one value, two equal ones, all.
    groups = [
        (name, values)
        for name, kind in _NATIVE.items()
        for values in ([kind.values[0]], [kind.values[1]] * 2, [*kind.values, None])
    ]
    table.write([_only(schema, name, values, 100 * number) for number, (name, values) in enumerate(groups)])
    return table


def _only(schema: pa.Schema, name: str, values: list[Any], first: int) -> pa.Table:
    """Values in one column, numbers in the first."""
    known = {"n": list(range(first, first + len(values))), name: values}
    return pa.table([pa.array(known.get(each.name, [None] * len(values)), each.type) for each in schema], schema=schema)


def _warehouse(table: Table) -> str:
    return str(Path(table.location).parents[1])


def _assert_same_rows(spark: SparkSession, table: Table, conditions: list[str]) -> None:
    """Several conditions in one job; rows are known by their number."""
    frames = [
        read(spark, _warehouse(table), table.name, columns=["n"], where=condition).select(F.lit(number), "n")
        for number, condition in enumerate(conditions)
    ]
    found = sorted(reduce(lambda one, other: one.union(other), frames).collect())
    for number, condition in enumerate(conditions):
        kept = sorted(table.scan(columns=["n"], where=condition).to_arrow().column("n").to_pylist())
        assert [n for place, n in found if place == number] == kept, condition


@settings(max_examples=examples(6), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_random_conditions(spark: SparkSession, every_kind: Table, data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(list(_NATIVE)), min_size=1, max_size=3, unique=True), label="columns")
    found = data.draw(st.lists(conditions(names), min_size=1, max_size=_TOGETHER, unique=True), label="where")
    _assert_same_rows(spark, every_kind, found)


@pytest.mark.deep
def test_every_literal_in_some_comparison(spark: SparkSession, every_kind: Table) -> None:
    """Neither the session's time zone nor its ANSI mode has a say in what matches."""
    operators = ["=", "<>", "<", "<=", ">", ">="]
    found = [
        f"{name} {operators[place % 6]} {literal}"
        for name, kind in _NATIVE.items()
        for place, literal in enumerate(kind.literals)
    ]
    others = {"spark.sql.session.timeZone": "America/Los_Angeles", "spark.sql.ansi.enabled": "false"}
    with spark_settings(spark, others):
        for start in range(0, len(found), _AT_ONCE):
            _assert_same_rows(spark, every_kind, found[start : start + _AT_ONCE])


def test_conditions_that_spark_decides_are_not_read_by_tasks_of_ours(spark: SparkSession, every_kind: Table) -> None:
    native = read(spark, _warehouse(every_kind), every_kind.name, where="i32 > 1 AND s LIKE 'a%'")
    ours = read(spark, _warehouse(every_kind), every_kind.name, where="length(s) > 1")
    assert "MapInArrow" not in plan_text(native)
    assert "MapInArrow" in plan_text(ours)


def test_rule_13_nan_that_a_footer_does_not_know_of(spark: SparkSession, tmp_path: Path) -> None:
    """Footers of many writers leave NaN out of the bounds; a condition that NaN satisfies must not be pushed into Parquet."""
    lake = lakelet.connect(str(tmp_path))
    lake.create_database("d")
    table = lake.create_table("d.t", [("n", "INT"), ("x", "DOUBLE")], options={"metadata.stats-mode": "none"})
    rows = pa.table({"n": pa.array([1, 2], pa.int32()), "x": [3.0, math.nan]})
    table.write(rows)
    path, _ = table.files()[0]
    pq.write_table(rows, tmp_path / path)
    _assert_same_rows(spark, table, ["x > 5", "x <> 3", "x >= 3.5", "x NOT IN (3, 4)", "x = 'nan'", "x < 'nan'"])
