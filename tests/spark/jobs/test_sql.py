"""`ls.sql`: Spark's SQL over tables of a lake, and INSERT into them."""

from __future__ import annotations

import datetime as dt
import shutil
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest
from pyspark.errors import AnalysisException, PySparkException

import lakelet
from lakelet.catalog.lake import Lake
from lakelet.errors import InvalidError, NotFoundError
from lakelet.spark.read.table_frame import scan_frame
from lakelet.spark.session import settings
from lakelet.spark.sql.statement import sql
from lakelet.table import Table
from lakelet.table.read.table_scan import TableScan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark]

PEOPLE = [(1, "Ann", None), (2, "Bea", None)]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Three tables: `orders` (partitioned, two snapshots), `people` (a key, with rows to merge), `empty`."""
    found = lakelet.connect(str(tmp_path / "lake"))
    found.create_database("shop")
    orders = found.create_table(
        "shop.orders", [("id", "BIGINT"), ("dt", "STRING"), ("amount", "DOUBLE")], partitioned_by=["dt"]
    )
    orders.write([{"id": i, "dt": "ab"[i % 2], "amount": i / 2} for i in range(4)])
    orders.write([{"id": 9, "dt": "c", "amount": 4.5}])
    people = found.create_table(
        "shop.people",
        [("id", "BIGINT NOT NULL"), ("name", "STRING"), ("born", "DATE")],
        primary_key=["id"],
        options={"bucket": 1, "write.missing-columns": "default"},
    )
    people.write([{"id": 1, "name": "Ann"}, {"id": 2, "name": "Bob"}])
    people.write([{"id": 2, "name": "Bea"}])
    found.create_table("shop.empty", [("id", "BIGINT"), ("at", "TIMESTAMP(6)"), ("name", "STRING")])
    return found


@pytest.fixture(autouse=True)
def no_views_stay(spark: SparkSession) -> Iterator[None]:
    before = {table.name for table in spark.catalog.listTables()}
    yield
    assert {table.name for table in spark.catalog.listTables()} == before


def rows(spark: SparkSession, lake: Lake, text: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in sql(spark, lake.location, text).collect())


def content(table: Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.scan().to_arrow().to_pylist())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT id, orders.dt, shop.orders.amount FROM shop.orders WHERE id = 9", [(9, "c", 4.5)]),
        ("SELECT count(*) FROM shop.orders VERSION AS OF 1 TABLESAMPLE (100 PERCENT) AS o", [(4,)]),
        ("SELECT o.id, name FROM SHOP.Orders o JOIN shop.people USING (id)", [(1, "Ann"), (2, "Bea")]),
        (
            "WITH orders AS (SELECT id FROM shop.orders WHERE id < 2), x AS (SELECT 7 AS id) "
            "SELECT * FROM orders UNION ALL SELECT id FROM x UNION ALL SELECT count(*) FROM shop.people",
            [(0,), (1,), (2,), (7,)],
        ),
        (
            "SELECT n.id FROM shop.orders n LEFT ANTI JOIN shop.orders FOR VERSION AS OF 1 o ON n.id = o.id",
            [(9,)],
        ),
        ("TABLE shop.people", [(1, "Ann", None), (2, "Bea", None)]),
        (
            "SELECT '{x}' || name FROM shop.people WHERE id IN (SELECT id FROM shop.orders WHERE dt = 'a')",
            [("{x}Bea",)],
        ),
        ("SELECT * FROM shop.empty, LATERAL (SELECT max(id) FROM shop.orders)", []),
        ("SELECT '{}' AS x", [("{}",)]),
        ("SELECT /*+ REPARTITION(2) */ * FROM shop.people", PEOPLE),
        ("SELECT b FROM shop.people AS p(a, b, c) WHERE p.a = 2", [("Bea",)]),
        ("SELECT 0, 'Zed', NULL UNION ALL FROM shop.people", [(0, "Zed", None), *PEOPLE]),
    ],
)
def test_queries(spark: SparkSession, lake: Lake, text: str, expected: list[tuple[Any, ...]]) -> None:
    assert rows(spark, lake, text) == expected


@pytest.mark.deep
def test_tables_of_one_name_in_two_databases(spark: SparkSession, lake: Lake) -> None:
    lake.create_database("old")
    lake.create_table("old.people", [("id", "BIGINT"), ("name", "STRING")]).write([{"id": 2, "name": "Bob"}])
    joined = "FROM shop.people JOIN old.people ON shop.people.id = old.people.id"
    assert rows(spark, lake, f"SELECT old.people.*, shop.people.name {joined}") == [(2, "Bob", "Bea")]
    # Both names of the condition must not mean the inner table.
    inner = "EXISTS (SELECT 1 FROM old.people WHERE old.people.id = shop.people.id)"
    assert rows(spark, lake, f"SELECT name FROM shop.people WHERE {inner}") == [("Bea",)]
    named = "WITH people AS (SELECT 1 AS k) SELECT name FROM shop.people WHERE EXISTS (SELECT 1 FROM people WHERE"
    assert rows(spark, lake, f"{named} k = shop.people.id)") == [("Ann",)]


def test_names_in_double_quotes(spark: SparkSession, lake: Lake) -> None:
    """ANSI mode is on by Spark's own default."""
    with settings(spark, {"spark.sql.ansi.doubleQuotedIdentifiers": "true"}):
        assert rows(spark, lake, 'SELECT id, "name" FROM "shop"."people" WHERE id = 2') == [(2, "Bea")]
        with settings(spark, {"spark.sql.ansi.enabled": "false"}):
            assert rows(spark, lake, 'SELECT id, "name" FROM shop.people WHERE id = 2') == [(2, "name")]
    assert rows(spark, lake, 'SELECT id, "name" FROM shop.people WHERE id = 2') == [(2, "name")]


@pytest.mark.deep
def test_views_of_the_session_and_names_of_spark(spark: SparkSession, lake: Lake) -> None:
    spark.range(5).createOrReplaceTempView("some_ids")
    try:
        text = "SELECT v.id FROM some_ids v JOIN shop.people p ON p.id = v.id"
        assert rows(spark, lake, text) == [(1,), (2,)]
        assert rows(spark, lake, "SELECT count(*) FROM some_ids") == [(5,)]
    finally:
        spark.catalog.dropTempView("some_ids")
    with pytest.raises(AnalysisException, match="default"):
        sql(spark, lake.location, "SELECT * FROM default.nope")


def test_the_frame_lives_on_and_stays_at_its_snapshot(spark: SparkSession, lake: Lake) -> None:
    frame = sql(spark, lake.location, "SELECT id FROM shop.orders")
    lake.table("shop.orders").write([{"id": 77, "dt": "z"}])
    assert frame.count() == 5
    assert frame.where("id > 2").count() == 2


def test_a_statement_sees_one_snapshot_of_a_table(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders = lake.table("shop.orders")

    def frame_and_commit(spark: SparkSession, scan: TableScan) -> DataFrame:
        found = scan_frame(spark, scan)
        orders.write([{"id": 50, "dt": "z"}])
        return found

    monkeypatch.setitem(sql.__globals__, "scan_frame", frame_and_commit)
    text = "SELECT (SELECT count(*) FROM shop.orders), (SELECT count(*) FROM Shop.orders o), count(*) FROM shop.orders"
    assert rows(spark, lake, f"{text} VERSION AS OF 1") == [(5, 5, 4)]


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo"])
def test_moments_are_in_the_time_zone_of_the_session(spark: SparkSession, lake: Lake, zone: str) -> None:
    first = lake.table("shop.orders").snapshots()[0]
    moment = dt.datetime.fromtimestamp(first.time_ms / 1000, ZoneInfo(zone))
    with settings(spark, {"spark.sql.session.timeZone": zone}):
        text = f"SELECT count(*) FROM shop.orders FOR TIMESTAMP AS OF '{moment:%Y-%m-%d %H:%M:%S.%f}' WHERE id < 9"
        assert rows(spark, lake, text) == [(4,)]
        earlier = moment - dt.timedelta(hours=1)
        with pytest.raises(NotFoundError):
            rows(spark, lake, f"SELECT * FROM shop.orders TIMESTAMP AS OF '{earlier:%Y-%m-%d %H:%M:%S}'")


def test_tags_and_branches(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    root = tmp_path / "lake" / "shop.db" / "orders"
    (root / "tag").mkdir()
    shutil.copy(root / "snapshot" / "snapshot-1", root / "tag" / "tag-v1")
    for folder in ("schema", "snapshot"):
        shutil.copytree(root / folder, root / "branch" / "branch-dev" / folder)
    assert rows(spark, lake, "INSERT INTO shop.orders$branch_dev VALUES (50, 'z', 0.5)") == [(3, 1)]
    counts = (
        "SELECT (SELECT count(*) FROM shop.orders VERSION AS OF 'v1'), (SELECT count(*) FROM shop.`orders$branch_dev`)"
    )
    assert rows(spark, lake, f"{counts}, count(*) FROM shop.orders") == [(4, 6, 5)]
    for option, value, count in (("branch", "dev", 6), ("tag", "v1", 4)):
        source = spark.read.format("lakelet").option("warehouse", lake.location).option(option, value)
        assert source.load("shop.orders").count() == count


def test_only_mentioned_columns_are_read(spark: SparkSession, lake: Lake, capfd: pytest.CaptureFixture[str]) -> None:
    frame = sql(spark, lake.location, "SELECT max(name) FROM shop.people WHERE id > 0")
    frame.explain()
    shown = capfd.readouterr().out
    assert "name" in shown
    assert "born" not in shown
    assert frame.collect()[0][0] == "Bea"


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("", InvalidError, "empty"),
        ("SELECT * FROM shop.odrers", NotFoundError, "'shop.odrers' is not in .* did you mean orders"),
        ("SELECT * FROM shp.orders", NotFoundError, "'shp' is neither .* did you mean shop"),
        ("SELECT * FROM shop.orders VERSION AS OF 7", NotFoundError, "snapshots 1 to 2 exist"),
        ("SELECT * FROM shop.orders VERSION AS OF 'nope'", NotFoundError, "'nope' is neither a tag"),
        ("SELECT * FROM shop.orders TIMESTAMP AS OF 'soon'", InvalidError, "expected a moment"),
        ("SELECT * FROM shop.orders$branch_nope", NotFoundError, "branch 'nope' is not in shop.orders"),
        ("SELECT * FROM shop.orders$files", InvalidError, "a branch is expected"),
        ("DELETE FROM shop.orders", InvalidError, "DELETE: this SQL reads"),
        ("CREATE TEMPORARY VIEW v AS SELECT * FROM shop.orders", InvalidError, "createOrReplaceTempView"),
        ("EXPLAIN SELECT * FROM shop.orders", InvalidError, r"\.explain\(\)"),
        ("SELECT nope FROM shop.orders", AnalysisException, "UNRESOLVED_COLUMN"),
        ("SELECT id FROM shop.orders )", PySparkException, "PARSE_SYNTAX_ERROR"),
    ],
)
def test_what_is_wrong_is_said(
    spark: SparkSession, lake: Lake, text: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        sql(spark, lake.location, text)


# ---------------------------------------------------------------- INSERT


def test_insert_by_position_gives_snapshot_and_rows(spark: SparkSession, lake: Lake) -> None:
    frame = sql(spark, lake.location, "INSERT INTO shop.orders VALUES (20, 'z', 1.25), (21, 'z', NULL);")
    assert frame.columns == ["snapshot_id", "rows"]
    assert [tuple(row) for row in frame.collect()] == [(3, 2)]
    assert content(lake.table("shop.orders"))[-2:] == [(20, "z", 1.25), (21, "z", None)]


def test_insert_columns_by_name_and_with_common_tables(spark: SparkSession, lake: Lake) -> None:
    text = "WITH q AS (SELECT id FROM shop.orders WHERE id = 9) INSERT INTO shop.empty (NAME, id) SELECT id, id FROM q"
    assert rows(spark, lake, text) == [(1, 1)]
    sql(spark, lake.location, "INSERT INTO shop.empty BY NAME SELECT DATE'2026-01-01' AS at, 1 AS id")
    assert content(lake.table("shop.empty")) == [(1, dt.datetime(2026, 1, 1), None), (9, None, "9")]


def test_insert_of_all_columns_after_a_hint(spark: SparkSession, lake: Lake) -> None:
    copy = lake.create_table("shop.copy", [("id", "BIGINT"), ("name", "STRING"), ("born", "DATE")])
    sql(spark, lake.location, "INSERT INTO shop.copy BY NAME SELECT /*+ COALESCE(1) */ * FROM shop.people")
    assert content(copy) == PEOPLE


def test_insert_takes_the_place_of_rows_with_the_key(spark: SparkSession, lake: Lake) -> None:
    sql(spark, lake.location, "INSERT INTO shop.people (id, name) SELECT id, upper(name) FROM shop.people WHERE id = 2")
    assert content(lake.table("shop.people")) == [(1, "Ann", None), (2, "BEA", None)]


def test_insert_overwrite(spark: SparkSession, lake: Lake) -> None:
    orders = lake.table("shop.orders")
    text = "INSERT OVERWRITE shop.orders PARTITION (dt = 'a') SELECT id + 100, amount FROM shop.orders WHERE dt = 'a'"
    assert rows(spark, lake, text) == [(3, 2)]
    assert [row[:2] for row in content(orders)] == [(1, "b"), (3, "b"), (9, "c"), (100, "a"), (102, "a")]
    with settings(spark, {"spark.sql.sources.partitionOverwriteMode": "dynamic"}):
        sql(spark, lake.location, "INSERT OVERWRITE TABLE shop.orders VALUES (5, 'b', 0.0)")
    assert [row[:2] for row in content(orders)] == [(5, "b"), (9, "c"), (100, "a"), (102, "a")]
    sql(spark, lake.location, "INSERT OVERWRITE shop.orders SELECT 6, 'b', 0.0")
    assert [row[:2] for row in content(orders)] == [(6, "b")]


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_partitions_of_moments(spark: SparkSession, lake: Lake, zone: str) -> None:
    """Appending and overwriting mean the same partition, in whatever zone the session is."""
    columns = [("id", "BIGINT"), ("at", "TIMESTAMP(3)"), ("local", "TIMESTAMP(6) WITH LOCAL TIME ZONE"), ("d", "DATE")]
    table = lake.create_table("shop.moments", columns, partitioned_by=["at", "local", "d"])
    clock = dt.datetime(2024, 7, 1, 10, 0, 0, 500_000)
    spec = f"at = TIMESTAMP_NTZ '{clock}', local = TIMESTAMP '{clock}', d = '2024-07-01'"
    expected = (clock, clock.replace(tzinfo=ZoneInfo(zone)).astimezone(dt.UTC), dt.date(2024, 7, 1))
    with settings(spark, {"spark.sql.session.timeZone": zone}):
        sql(spark, lake.location, f"INSERT INTO shop.moments PARTITION ({spec}) SELECT 1")
        assert content(table) == [(1, *expected)]
        sql(spark, lake.location, f"INSERT OVERWRITE shop.moments PARTITION ({spec}) SELECT 2")
        assert content(table) == [(2, *expected)]


def test_insert_of_nothing_makes_no_snapshot(spark: SparkSession, lake: Lake) -> None:
    assert rows(spark, lake, "INSERT INTO shop.orders SELECT * FROM shop.orders WHERE false") == [(None, 0)]
    assert len(lake.table("shop.orders").snapshots()) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("INSERT INTO shop.orders VALUES (1, 'a')", "gives 2 columns, expected 3: id, dt, amount"),
        ("INSERT INTO shop.orders (id, nope) VALUES (1, 2)", "no column 'nope'; its columns are id, dt, amount"),
        ("INSERT INTO shop.orders (id, ID) VALUES (1, 2)", "'id' is given more than once"),
        ("INSERT INTO shop.orders PARTITION (id = 1) VALUES ('a', 2)", "'id' is no partition column"),
        ("INSERT INTO shop.orders PARTITION (dt = 'x') (id, dt) VALUES (1, 'a')", "'dt' is given more than once"),
        ("INSERT INTO shop.orders VALUES ('x', 'a', 1.0)", "id"),
        ("INSERT INTO shop.people (name) VALUES ('x')", "id"),
        ("INSERT INTO shop.people VALUES (NULL, 'x', NULL)", "id"),
    ],
)
def test_wrong_inserts_leave_the_table_alone(spark: SparkSession, lake: Lake, text: str, message: str) -> None:
    before = [len(lake.table(name).snapshots()) for name in ("shop.orders", "shop.people")]
    with pytest.raises(InvalidError, match=message):
        sql(spark, lake.location, text)
    assert [len(lake.table(name).snapshots()) for name in ("shop.orders", "shop.people")] == before


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_partition_values_are_neither_rounded_nor_cut_nor_lost(spark: SparkSession, lake: Lake, ansi: str) -> None:
    columns = [("id", "INT"), ("d", "DATE"), ("n", "TINYINT"), ("m", "DECIMAL(5, 2)")]
    table = lake.create_table("shop.parts", columns, partitioned_by=["d", "n", "m"])
    good = {"d": "'2026-01-01'", "n": "1", "m": "1.5"}
    wrong = [
        ("d", "'someday'"),
        ("d", "'2026-01-01 10:00:00'"),
        ("d", "TIMESTAMP '2026-01-01 10:00:00'"),
        ("n", "300"),
        ("n", "1.7"),
        ("n", "'x'"),
        ("m", "'1.2304'"),
        ("m", "12345"),
    ]
    with settings(spark, {"spark.sql.ansi.enabled": ansi}):
        for name, value in wrong:
            spec = ", ".join(f"{key} = {text}" for key, text in {**good, name: value}.items())
            with pytest.raises(InvalidError, match=f"PARTITION: '{name}' is"):
                sql(spark, lake.location, f"INSERT OVERWRITE shop.parts PARTITION ({spec}) VALUES (1)")
        assert not table.snapshots()
        sql(spark, lake.location, "INSERT INTO shop.parts PARTITION (d = NULL, n = 2.0, m = '1.50') VALUES (1)")
    assert content(table) == [(1, None, 2, Decimal("1.50"))]
