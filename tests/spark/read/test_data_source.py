"""Spark's own API: `format("lakelet")` for reads and for writes that need no routing, and `USING lakelet`."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PySparkException

import lakelet
from lakelet.catalog.lake import Lake
from lakelet.spark.session import settings
from lakelet.spark.source.registration import register
from lakelet.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.readwriter import DataFrameReader, DataFrameWriter

pytestmark = [pytest.mark.spark]

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    found = lakelet.connect(str(tmp_path / "lake"))
    found.create_database("shop")
    return found


@pytest.fixture
def orders(lake: Lake) -> Table:
    table = lake.create_table(
        "shop.orders", [("id", "BIGINT"), ("dt", "STRING"), ("amount", "DECIMAL(10, 2)")], partitioned_by=["dt"]
    )
    table.write([{"id": i, "dt": "ab"[i % 2], "amount": Decimal(i)} for i in range(10)])
    return table


def reading(spark: SparkSession, lake: Lake, **options: str) -> DataFrameReader:
    return spark.read.format("lakelet").option("warehouse", lake.location).options(**options)


def writing(frame: DataFrame, lake: Lake, mode: str = "append", **options: str) -> DataFrameWriter:
    return frame.write.format("lakelet").option("warehouse", lake.location).mode(mode).options(**options)


def ids(frame: DataFrame) -> list[int]:
    return sorted(row["id"] for row in frame.collect())


def ids_of(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow().column("id").to_pylist())


def test_reads_without_registration(spark: SparkSession, lake: Lake, orders: Table) -> None:
    frame = reading(spark, lake).load("shop.orders")
    assert frame.dtypes == [("id", "bigint"), ("dt", "string"), ("amount", "decimal(10,2)")]
    assert sorted(map(tuple, frame.collect())) == [(i, "ab"[i % 2], Decimal(i)) for i in range(10)]


@pytest.mark.deep
def test_registered_by_hand_it_is_the_same(spark: SparkSession, lake: Lake, orders: Table) -> None:
    other = spark.newSession()
    register(other)
    register(other)
    assert ids(reading(other, lake, table="shop.orders").load()) == list(range(10))


def test_a_table_without_rows_or_snapshots(spark: SparkSession, lake: Lake) -> None:
    lake.create_table("shop.empty", [("id", "BIGINT NOT NULL")], primary_key=["id"])
    frame = reading(spark, lake).load("shop.empty")
    assert frame.schema.fields[0].nullable
    assert frame.collect() == []


def test_the_snapshot_is_pinned_when_the_frame_is_made(spark: SparkSession, lake: Lake, orders: Table) -> None:
    frame = reading(spark, lake).load("shop.orders")
    orders.write([{"id": 99, "dt": "a"}])
    assert ids(frame) == list(range(10))
    assert ids(reading(spark, lake).load("shop.orders")) == [*range(10), 99]


def test_with_a_schema_the_snapshot_is_pinned_by_the_first_use(spark: SparkSession, lake: Lake, orders: Table) -> None:
    """Spark runs nothing of a source whose schema it was given before it plans."""
    frame = reading(spark, lake).schema("id bigint").load("shop.orders")
    named = reading(spark, lake, version="1").schema("id bigint").load("shop.orders")
    orders.write([{"id": 98, "dt": "a"}])
    assert ids(frame) == [*range(10), 98]
    orders.write([{"id": 99, "dt": "a"}])
    assert ids(frame) == [*range(10), 98]
    assert ids(frame.where("id > 5")) == [6, 7, 8, 9, 98]
    assert ids(named) == list(range(10))


def test_versions_and_times(spark: SparkSession, lake: Lake, orders: Table) -> None:
    orders.write([{"id": 99, "dt": "a"}])
    first = orders.snapshots()[0]
    for chosen in ({"version": "1"}, {"timestamp": str(first.time_ms)}):
        assert ids(reading(spark, lake, **chosen).load("shop.orders")) == list(range(10))


def test_columns_and_where(spark: SparkSession, lake: Lake, orders: Table) -> None:
    frame = reading(spark, lake, columns="amount, id", where="dt = 'b' AND id > 4").load("shop.orders")
    assert frame.columns == ["amount", "id"]
    assert ids(frame) == [5, 7, 9]


def test_a_schema_chooses_columns(spark: SparkSession, lake: Lake, orders: Table) -> None:
    assert ids(reading(spark, lake).schema("id bigint").load("shop.orders")) == list(range(10))
    with pytest.raises(AnalysisException, match="'id' as int, but it is bigint"):
        reading(spark, lake).schema("id int").load("shop.orders").collect()
    with pytest.raises(AnalysisException, match="'nope'; the table's are id, dt, amount"):
        reading(spark, lake).schema("nope int").load("shop.orders").collect()


def test_merged_rows_and_types(spark: SparkSession, lake: Lake) -> None:
    table = lake.create_table(
        "shop.keyed",
        [
            ("id", "BIGINT NOT NULL"),
            ("t", "TIME(3)"),
            ("nanos", "TIMESTAMP(9)"),
            ("at", "TIMESTAMP(3) WITH LOCAL TIME ZONE"),
            ("tags", "ARRAY<STRING>"),
        ],
        primary_key=["id"],
        options={"bucket": 1},
    )
    moment = dt.datetime(2026, 1, 1, 1, 2, 3, 456000)
    row = {"t": dt.time(0, 0, 1), "nanos": moment, "at": moment.replace(tzinfo=dt.UTC), "tags": ["x", None]}
    table.write([{"id": 1, **row}, {"id": 2, **row}])
    table.write([{"id": 2, "tags": []}], missing="default")
    found = sorted(map(tuple, reading(spark, lake).load("shop.keyed").collect()))
    assert found[0][:3] == (1, 1000, moment)
    assert found[0][4] == ["x", None]
    assert found[1] == (2, None, None, None, [])


def test_small_buckets_share_a_task(spark: SparkSession, lake: Lake) -> None:
    table = lake.create_table("shop.parts", [("id", "BIGINT"), ("p", "INT")], partitioned_by=["p"])
    table.write([{"id": i, "p": i} for i in range(40)])
    assert len(table.scan().plan().splits) == 40
    frame = reading(spark, lake, **{"source.split.open-file-cost": "8 mb", "source.split.target-size": "80 mb"})
    assert frame.load("shop.parts").rdd.getNumPartitions() == 4


def test_filters_of_one_plan_do_not_reach_another(spark: SparkSession, lake: Lake, orders: Table) -> None:
    """Spark keeps a pushed filter in the relation, and reads by it whenever the frame is used again."""
    with settings(spark, {PUSHDOWN: "true"}):
        frame = reading(spark, lake).load("shop.orders")
        few = frame.where("id > 7 AND dt = 'a'")
        assert ids(few) == [8]
        assert ids(frame) == list(range(10))
        assert frame.union(few).count() == 11
        assert frame.where("id > 7").union(frame.where("id < 3")).count() == 5


def test_a_temporary_view(spark: SparkSession, lake: Lake, orders: Table) -> None:
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW source_view USING lakelet "
        f"OPTIONS (warehouse '{lake.location}', table 'shop.orders', where 'id < 3')"
    )
    assert spark.sql("SELECT sum(id) FROM source_view").collect()[0][0] == 3
    spark.catalog.dropTempView("source_view")


def test_a_catalog_table_has_no_options(spark: SparkSession) -> None:
    with pytest.raises(AnalysisException, match=r"needs the option 'warehouse'.*CREATE TEMPORARY VIEW"):
        spark.sql("CREATE TABLE source_table USING lakelet")


def test_secrets_are_in_no_plan(
    spark: SparkSession, lake: Lake, orders: Table, capfd: pytest.CaptureFixture[str]
) -> None:
    frame = reading(spark, lake, **{"s3.secret-key": "do-not-show"}).load("shop.orders")
    frame.where("id = 1").explain("formatted")
    frame.where("id = 1").explain(extended=True)
    shown = capfd.readouterr().out
    assert "lakelet" in shown
    assert "do-not-show" not in shown


# ---------------------------------------------------------------- writing


def test_appends_in_one_commit_by_name(spark: SparkSession, lake: Lake, orders: Table) -> None:
    rows = spark.range(100, 110, 1, 3).selectExpr("'c' AS DT", "CAST(id AS INT) AS ID")
    writing(rows, lake).save("shop.orders")
    assert [snapshot.id for snapshot in orders.snapshots()] == [1, 2]
    assert ids_of(orders) == [*range(10), *range(100, 110)]
    assert set(orders.scan(where="id >= 100").to_arrow().column("dt").to_pylist()) == {"c"}


def test_overwrites_the_table_or_the_partitions_of_the_rows(spark: SparkSession, lake: Lake, orders: Table) -> None:
    rows = spark.range(1).selectExpr("50 AS id", "'a' AS dt")
    writing(rows, lake, "overwrite", partitionOverwriteMode="dynamic").save("shop.orders")
    assert ids_of(orders) == [1, 3, 5, 7, 9, 50]
    writing(rows, lake, "overwrite").save("shop.orders")
    assert ids_of(orders) == [50]


def test_reads_and_overwrites_one_table(spark: SparkSession, lake: Lake, orders: Table) -> None:
    frame = reading(spark, lake).load("shop.orders").where("id < 3")
    writing(frame, lake, "overwrite").save("shop.orders")
    assert ids_of(orders) == [0, 1, 2]


def test_postponed_buckets_take_rows_as_they_come(spark: SparkSession, lake: Lake) -> None:
    table = lake.create_table(
        "shop.later", [("id", "BIGINT NOT NULL"), ("v", "STRING")], primary_key=["id"], options={"bucket": -2}
    )
    writing(spark.range(0, 20, 1, 2).selectExpr("id", "'x' AS v"), lake).save("shop.later")
    (snapshot,) = table.snapshots()
    assert snapshot.total_record_count == 20
    paths = [path for path, _ in table.files()]
    assert len(paths) == 2
    assert all("bucket-postpone" in path for path in paths)


def test_a_named_commit_is_made_once(spark: SparkSession, lake: Lake, orders: Table) -> None:
    rows = spark.range(1).selectExpr("50 AS id", "'a' AS dt")
    for _ in range(2):
        writing(rows, lake, **{"commit-user": "job", "commit-identifier": "7"}).save("shop.orders")
    assert ids_of(orders) == [*range(10), 50]
    assert len(orders.snapshots()) == 2
    assert stored_files(orders) == {path for path, _ in orders.files()}


def test_rows_that_do_not_fit_leave_nothing(spark: SparkSession, lake: Lake) -> None:
    table = lake.create_table("shop.strict", [("id", "INT NOT NULL")])
    rows = spark.range(0, 20, 1, 2).selectExpr("if(id = 15, NULL, id) AS id")
    with pytest.raises(PySparkException, match="'id' is NOT NULL, but row 5 has NULL"):
        writing(rows, lake).save("shop.strict")
    assert table.snapshots() == []
    assert stored_files(table) == set()
    lake.create_table("shop.lists", [("a", "ARRAY<INT>")])
    with pytest.raises(PySparkException, match=r"lakelet\.errors\.InvalidError: the data does not fit the table"):
        writing(spark.sql("SELECT array() AS a"), lake).save("shop.lists")


def test_a_task_that_fails_leaves_nothing(spark: SparkSession, lake: Lake) -> None:
    table = lake.create_table("shop.strict", [("id", "BIGINT")])
    rows = spark.range(0, 20, 1, 2).selectExpr("if(id = 15, raise_error('no such row'), id) AS id")
    with pytest.raises(PySparkException, match="no such row"):
        writing(rows, lake).save("shop.strict")
    assert table.snapshots() == []
    assert stored_files(table) == set()


def test_tables_with_routing_are_refused(spark: SparkSession, lake: Lake) -> None:
    lake.create_table("shop.keyed", [("id", "BIGINT NOT NULL")], primary_key=["id"], options={"bucket": 2})
    with pytest.raises(PySparkException, match=r"must be routed.*use lakelet\.spark\.write\("):
        writing(spark.range(3), lake).save("shop.keyed")
    with pytest.raises(PySparkException, match="ErrorIfExists"):
        writing(spark.range(3), lake, "error").save("shop.keyed")


def stored_files(table: Table) -> set[str]:
    """The data files that are there, whether or not a snapshot lists them."""
    home = table.home
    return {info.path for info in home.store.list(home.paths.root) if "/bucket-" in info.path}


def test_the_arrow_types_of_every_column_reach_the_table(spark: SparkSession, lake: Lake) -> None:
    table = lake.create_table(
        "shop.types", [("t", "TIME(3)"), ("m", "MAP<STRING, INT>"), ("r", "ROW<a INT, b STRING>"), ("d", "DATE")]
    )
    rows = spark.range(1).selectExpr(
        "1000 AS t", "map('a', 1) AS m", "named_struct('a', 1, 'b', 'x') AS r", "DATE'2026-01-01' AS d"
    )
    writing(rows, lake).save("shop.types")
    found = table.scan().to_arrow()
    assert isinstance(found, pa.Table)
    assert found.to_pylist() == [
        {"t": dt.time(0, 0, 1), "m": [("a", 1)], "r": {"a": 1, "b": "x"}, "d": dt.date(2026, 1, 1)}
    ]
