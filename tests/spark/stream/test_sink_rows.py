"""What a batch leaves in a table: the same rows by the driver and by tasks, added columns, watermarks, bounds of size."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import lakelet
import lakelet.spark as ls
from lakelet import InvalidError, Table
from lakelet.spark.session import settings
from lakelet.spark.write.driver_rows import DriverRows
from tests.spark.same_rows import counted

DRIVER, TASKS = 100_000, 0
COLUMNS = {
    "k": "INT NOT NULL",
    "i1": "TINYINT",
    "i2": "SMALLINT",
    "f": "FLOAT",
    "d": "DOUBLE",
    "m": "DECIMAL(38, 10)",
    "c": "CHAR(5)",
    "s": "STRING",
    "b4": "BINARY(4)",
    "b": "BYTES",
    "day": "DATE",
    "t": "TIME(3)",
    "n3": "TIMESTAMP(3)",
    "n6": "TIMESTAMP(6)",
    "z3": "TIMESTAMP(3) WITH LOCAL TIME ZONE",
    "z6": "TIMESTAMP(6) WITH LOCAL TIME ZONE",
    "a": "ARRAY<TIMESTAMP(6) WITH LOCAL TIME ZONE>",
    "e": "MAP<STRING, TIMESTAMP(6)>",
    "u": "MULTISET<STRING>",
    "r": "ROW<`m` DECIMAL(10, 2), `t` TIME(3), `r` ROW<`y` DATE, `b` ARRAY<BYTES>>>",
}
# The second row's struct has fields that Spark knows never to be NULL, the third row's is NULL.
ROWS = f"""
  SELECT * FROM VALUES
  (1, 1Y, 1S, float('nan'), double('-0.0'), 1.5BD, 'ab', 'text', X'01020304', X'FF', DATE'0001-01-01', 0,
   TIMESTAMP_NTZ'1969-12-31 23:59:59.999', TIMESTAMP_NTZ'0001-01-01 00:00:00', TIMESTAMP'1969-12-31 23:59:59.999',
   TIMESTAMP'0001-01-05 00:00:00', array(TIMESTAMP'2026-03-29 02:30:00.123456', NULL),
   map('a', TIMESTAMP_NTZ'2026-10-25 02:30:00'), map('q', 2),
   named_struct('m', 1.25BD, 't', 5, 'r', named_struct('y', DATE'9999-12-31', 'b', array(X'00', NULL)))),
  (2, -128Y, -32768S, float('-inf'), double('nan'), -9999999999999999999999999999.9999999999BD, 'abc  ', 'ü😀', X'00000000',
   X'', DATE'9999-12-31', 86399999, TIMESTAMP_NTZ'2026-06-01 00:00:00.5', TIMESTAMP_NTZ'9999-12-31 23:59:59.999999',
   TIMESTAMP'2026-06-01 12:00:00', TIMESTAMP'9999-12-30 10:00:00', array(), map(), map(),
   named_struct('m', NULL, 't', NULL, 'r', NULL)),
  (3{", NULL" * (len(COLUMNS) - 1)})
  AS t({", ".join(COLUMNS)})"""


@pytest.fixture
def lake(tmp_path: Path) -> lakelet.Lake:
    lake = lakelet.connect(str(tmp_path / "wh"))
    lake.create_database("d")
    return lake


def write(spark: SparkSession, lake: lakelet.Lake, sql: str, name: str = "d.t", batch: int = 0, **more: Any) -> Any:
    """One batch of the rows of a query."""
    given: dict[str, Any] = {"commit_user": "job", "mode": "append", **more}
    return ls.write_batch(spark.sql(sql), batch, lake.location, name, **given)


def columns(lake: lakelet.Lake, name: str = "d.t") -> dict[str, str]:
    return {field.name: str(field.type) for field in lake.table(name).schema.fields}


@pytest.mark.parametrize(
    ("key", "more"),
    [
        ([], {"spark.sql.session.timeZone": "America/New_York", "spark.sql.ansi.enabled": "false"}),
        (["k"], {"spark.sql.session.timeZone": "Asia/Kolkata", "spark.sql.execution.arrow.useLargeVarTypes": "true"}),
    ],
)
def test_rows_are_the_same_by_the_driver_and_by_tasks(
    spark: SparkSession, lake: lakelet.Lake, key: list[str], more: dict[str, str]
) -> None:
    tables: list[Table] = []
    with settings(spark, more):
        for where in (DRIVER, TASKS):
            options = {"bucket": "2"} if key else {}
            tables.append(lake.create_table(f"d.t{where}", list(COLUMNS.items()), primary_key=key, options=options))
            write(spark, lake, ROWS, f"d.t{where}", driver_rows=where)
    driver, tasks = (counted(table.scan().to_arrow()) for table in tables)
    assert driver == tasks
    assert len(driver) == 3


@pytest.mark.parametrize("where", [DRIVER, TASKS])
def test_merged_columns(spark: SparkSession, lake: lakelet.Lake, where: int) -> None:
    lake.create_table(
        "d.t",
        [("id", "INT NOT NULL"), ("a", "INT"), ("t", "TIME(0)"), ("u", "MULTISET<STRING>"), ("r", "ROW<`x` INT>")],
        primary_key=["id"],
        options={"bucket": "2"},
    )
    given: dict[str, Any] = {"merge_schema": True, "missing": "default", "driver_rows": where}
    sql = "SELECT 1L ID, 5L A, 1000 t, map('q', 2) u, named_struct('x', 1L, 'y', 'new') r, 'new' N"
    write(spark, lake, sql, **given)
    merged = columns(lake)
    assert merged == {
        "id": "INT NOT NULL",
        "a": "BIGINT",
        "t": "TIME(0)",
        "u": "MULTISET<STRING>",
        "r": "ROW<`x` BIGINT, `y` STRING>",
        "N": "STRING",
    }
    # The same batch and the same columns again change nothing, nor does a column of the NULL literal.
    write(spark, lake, sql, **given)
    write(spark, lake, "SELECT 2L id, 'two' n, named_struct('x', NULL, 'y', 'z') r", batch=1, **given)
    assert columns(lake) == merged
    rows = sorted(lake.table("d.t").scan(["id", "a", "N"]).to_arrow().to_pylist(), key=lambda row: row["id"])
    assert rows == [{"id": 1, "a": 5, "N": "new"}, {"id": 2, "a": None, "N": "two"}]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT 1L id, 'p' p, 'q' P", "'p' and 'P', which differ by case alone"),
        ("SELECT 1L id, named_struct('a', 1) r, 1 p", "fields 'A' and 'a'"),
        ("SELECT 'x' id, 1 p", "column 'id' is INT NOT NULL; the data has STRING"),
        ("SELECT 1 p", "the data does not have it"),
        ("SELECT 3000000000L id, 1 p", "does not fit"),
        ("SELECT 1 id, parse_json('1') p", "column 'p' is VARIANT"),
        ("SELECT 1 id, INTERVAL '1' DAY p", "column 'p'"),
        ("SELECT 1 id, 1 p, 2 ts", "watermark: column 'ts' is INT"),
    ],
)
def test_a_batch_that_is_refused_adds_no_columns(
    spark: SparkSession, lake: lakelet.Lake, sql: str, message: str
) -> None:
    found = [("id", "INT NOT NULL"), ("r", "ROW<`A` INT>")]
    table = lake.create_table("d.t", found, primary_key=["id"], options={"bucket": "1"})
    watermark = ("ts", "0 s") if "ts" in sql.split() else None
    with pytest.raises(InvalidError, match=message):
        write(spark, lake, sql, merge_schema=True, watermark=watermark, missing="default")
    assert table.snapshots() == []
    if "3000000000" not in sql:
        assert columns(lake) == dict(found)


@pytest.mark.parametrize("where", [DRIVER, TASKS])
def test_watermarks_are_the_same_in_every_zone(spark: SparkSession, lake: lakelet.Lake, where: int) -> None:
    lake.create_table("d.t", [("ts", "TIMESTAMP(6)"), ("tz", "TIMESTAMP(6) WITH LOCAL TIME ZONE")])
    rows = "(TIMESTAMP_NTZ'2026-01-01 12:00:00.1239', TIMESTAMP'2026-07-01 12:00:00Z'), (NULL, NULL)"
    sql = f"SELECT * FROM VALUES {rows} AS t(ts, tz)"
    with settings(spark, {"spark.sql.session.timeZone": "Europe/London"}):
        made = write(spark, lake, sql, watermark=("TS", "1 s"), driver_rows=where)
        later = write(spark, lake, sql, batch=1, watermark=("tz", "10 min"), driver_rows=where)
        # It never goes back, and rows without a time say nothing.
        again = write(spark, lake, f"{sql} WHERE ts IS NULL", batch=2, watermark=("ts", "1 s"), driver_rows=where)
    assert made.watermark == 1767268800123 - 1000
    assert later.watermark == again.watermark == 1782907200000 - 600_000


def test_rows_that_are_too_wide_for_the_driver_go_to_tasks(spark: SparkSession, lake: lakelet.Lake) -> None:
    """Columns that are never NULL: a row that the driver leaves out must not read as one that has NULL there."""
    table = lake.create_table("d.t", [("id", "BIGINT"), ("s", "STRING")])
    write(spark, lake, "SELECT id, repeat('x', int(id) * 1000) s FROM range(8)")
    assert sorted(map(len, table.scan().to_arrow().column("s").to_pylist())) == [1000 * n for n in range(8)]


@pytest.mark.parametrize(
    ("sql", "rows", "limit_bytes", "expected"),
    [
        ("SELECT id FROM range(5)", 5, 1000, 5),
        ("SELECT id FROM range(6)", 5, 1000, None),
        ("SELECT 'text' row FROM range(0)", 5, 1000, 0),
        ("SELECT id row FROM range(5)", 5, 1000, 5),
        ("SELECT 'q' `x.y`, 's' `X.y`, 't' `b``t` FROM range(3)", 5, 1000, 3),
        # Eleven numbers a row: 900 rows are 79,200 bytes, 1,000 of them would be 88,000.
        (f"SELECT id{', id' * 10} FROM range(900)", 1000, 80_000, 900),
        (f"SELECT id{', id' * 10} FROM range(1000)", 1000, 80_000, None),
        ("SELECT repeat('x', 100) s FROM range(10)", 100, 10_000, None),
        ("SELECT array(repeat('x', 100)) s FROM range(10)", 100, 10_000, None),
        ("SELECT id FROM range(5)", 100, 7, None),
    ],
)
def test_the_driver_takes_rows_within_its_bounds(
    spark: SparkSession, sql: str, rows: int, limit_bytes: int, expected: int | None
) -> None:
    found = DriverRows(rows, limit_bytes).collect(spark.sql(sql), "collecting")
    assert (found if found is None else found.num_rows) == expected
    assert found is None or found.nbytes <= limit_bytes


def test_what_was_learned_of_one_batch_holds_for_the_next(spark: SparkSession) -> None:
    driver = DriverRows(64, 6400)
    wide, large, small = (
        spark.sql(f"SELECT repeat('x', {n}) s FROM range({m})") for n, m in ((500, 2), (1, 9), (1, 1))
    )
    assert driver.collect(wide, "collecting") is None
    assert driver.rows == 8
    taken = driver.collect(wide, "collecting")
    assert taken is not None
    assert taken.to_pydict() == {"s": ["x" * 500] * 2}
    assert driver.collect(large, "collecting") is None
    assert [driver.collect(small, "collecting") is None for _ in range(9)] == [True] * 8 + [False]
