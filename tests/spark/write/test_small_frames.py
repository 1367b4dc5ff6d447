"""Small frames are written by the driver: which these are, the rows and errors that tasks give, and commits that meet others."""

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

import lakelet
import lakelet.spark as ls
from lakelet import ConflictError, InvalidError, Table
from lakelet.spark.write import small_frame
from lakelet.spark.write.driver_rows import DriverRows
from lakelet.spark.write.small_frame import may_be_small
from lakelet.spark.write.write_request import DRIVER_ROWS
from lakelet.table.write import committed_write
from tests.spark.faults import write_module
from tests.spark.same_rows import counted

COLUMNS = [("id", "BIGINT NOT NULL"), ("dt", "STRING NOT NULL"), ("amount", "DECIMAL(10, 2)"), ("note", "STRING")]
KEYS = {"primary_key": ["id", "dt"], "partitioned_by": ["dt"]}
ROWS = "SELECT id, concat('d', id % 3) AS dt, cast(id AS decimal(10, 2)) AS amount, concat('old ', id) AS note FROM range({})"
NEW = "SELECT id, concat('d', id % 3) AS dt, 7.5BD AS amount, 'new' AS note FROM range({}, {})"


@pytest.fixture
def lake(tmp_path: Path) -> lakelet.Lake:
    lake = lakelet.connect(str(tmp_path / "wh"))
    lake.create_database("d")
    return lake


@pytest.fixture
def by_tasks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tables that tasks were asked to write."""
    names: list[str] = []
    module = write_module()
    planned = module.write_planned

    def noted(df: DataFrame, opened: Any, *rest: Any) -> Any:
        names.append(opened.name)
        return planned(df, opened, *rest)

    monkeypatch.setattr(module, "write_planned", noted)
    return names


def keyed(lake: lakelet.Lake, name: str = "d.t", **options: object) -> Table:
    given = {"bucket": 2, **{key.replace("__", ".").replace("_", "-"): text for key, text in options.items()}}
    return lake.create_table(name, COLUMNS, options=given, **KEYS)


def content(table: Table) -> Any:
    return counted(table.scan().to_arrow())


def files(table: Table) -> set[str]:
    return {path.name for path in Path(table.location).glob("**/bucket-*/[!.]*")}


def listed(table: Table) -> set[str]:
    return {Path(path).name for path, _ in table.files()}


@pytest.mark.parametrize(
    "layout",
    [
        {},
        {"partitioned_by": ["dt"]},
        {"options": {"bucket": 3, "bucket-key": "id"}},
        {**KEYS, "options": {"bucket": 2}},
        {**KEYS, "options": {"bucket": 2, "sequence.field": "amount", "deletion-vectors.enabled": "true"}},
    ],
)
def test_rows_are_those_that_tasks_write(
    spark: SparkSession, lake: lakelet.Lake, by_tasks: list[str], layout: dict[str, Any]
) -> None:
    steps: list[tuple[str, dict[str, Any]]] = [
        (ROWS.format(30), {}),
        (NEW.format(20, 40), {}),
        (NEW.format(100, 100), {}),
    ]
    if "primary_key" in layout:
        steps += [
            (f"SELECT *, if(id = 3, '-D', '+U') AS op FROM ({NEW.format(0, 5)})", {"kinds": "op", "mode": "upsert"}),
            ("SELECT id, 'd1' AS DT, 'kept' AS note FROM range(1, 9, 3)", {"missing": "keep"}),
            ("SELECT cast(id AS int) AS id, 'd1' AS dt FROM range(50, 52)", {"missing": "default"}),
        ]
    if "partitioned_by" in layout:
        steps += [
            (NEW.format(60, 61), {"mode": "overwrite_partitions"}),
            ("SELECT 9L AS id, 1BD AS amount, 'x' AS note", {"mode": "overwrite", "partition": {"dt": "d2"}}),
        ]
    tables = {rows: lake.create_table(f"d.t{rows}", COLUMNS, **layout) for rows in (0, DRIVER_ROWS)}
    for sql, how in steps:
        made = [ls.write(spark.sql(sql), lake.location, f"d.t{rows}", driver_rows=rows, **how) for rows in tables]
        assert [one is None for one in made] in ([True] * 2, [False] * 2)
        tasks, driver = (content(table) for table in tables.values())
        assert tasks == driver, sql
    assert driver
    # The last step empties both.
    for rows, table in tables.items():
        ls.write(spark.sql(NEW.format(1, 1)), lake.location, table.name, "overwrite", driver_rows=rows)
        assert not content(table)
    assert set(by_tasks) == {"d.t0"}


def test_buckets_are_those_of_other_writers(spark: SparkSession, lake: lakelet.Lake, by_tasks: list[str]) -> None:
    table = keyed(lake, bucket=4)
    ls.write(spark.sql(ROWS.format(90)), lake.location, "d.t")
    first = {path.rsplit("/", 1)[0]: file.row_count for path, file in table.files()}
    assert by_tasks == []
    ls.write(spark.sql(ROWS.format(90)), lake.location, "d.t", driver_rows=0)
    assert {path.rsplit("/", 1)[0]: file.row_count for path, file in table.files()} == first
    assert sum(content(table).values()) == 90


def test_postponed_rows_wait_and_keys_meet(spark: SparkSession, lake: lakelet.Lake, by_tasks: list[str]) -> None:
    table = keyed(lake, bucket=-2)
    ls.write(spark.sql(ROWS.format(20)), lake.location, "d.t")
    assert not content(table)
    assert sum(file.row_count for _, file in table.files()) == 20
    twice = spark.sql(f"{ROWS.format(9)} UNION ALL {ROWS.format(2)}")
    with pytest.raises(InvalidError, match="2 rows with the primary key of another row"):
        ls.write(twice, lake.location, "d.t")
    assert files(table) == listed(table)
    ls.write(twice, lake.location, "d.t", on_duplicate="any")
    assert sum(file.row_count for _, file in table.files()) == 31
    assert by_tasks == []


@pytest.mark.parametrize(
    ("sql", "how", "message"),
    [
        (f"{ROWS.format(9)} UNION ALL {ROWS.format(2)}", {}, "rows with the primary key of another row"),
        (
            "SELECT if(id > 2, id, NULL) AS id, 'd1' AS dt FROM range(9)",
            {},
            "3 rows with NULL in a column that is NOT NULL",
        ),
        (f"SELECT *, 1 AS weight FROM ({ROWS.format(9)})", {}, "weight"),
        ("SELECT id, 'd1' AS dt FROM range(9)", {}, "lacks columns 'amount', 'note'"),
        (f"SELECT *, 'X' AS op FROM ({ROWS.format(9)})", {"kinds": "op"}, "'X'"),
        ("SELECT id, cast(X'FE' AS STRING) AS dt FROM range(9)", {}, "bytes that are no text"),
        (ROWS.format(9), {"mode": "overwrite", "partition": {"dt": "d1"}}, "there are rows of dt="),
        (ROWS.format(9), {"commit_user": "job"}, "both a user and an identifier"),
    ],
)
def test_rows_are_refused_as_by_tasks(
    spark: SparkSession, lake: lakelet.Lake, by_tasks: list[str], sql: str, how: dict[str, Any], message: str
) -> None:
    table = keyed(lake)
    how = {"missing": "default", **how} if "lacks" not in message else how
    with pytest.raises(InvalidError, match=message):
        ls.write(spark.sql(sql), lake.location, "d.t", **how)
    assert table.snapshots() == []
    assert files(table) == set()
    assert by_tasks == []


def test_a_named_commit_is_made_once(
    spark: SparkSession, lake: lakelet.Lake, by_tasks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = keyed(lake)
    for _ in range(2):
        made = ls.write(spark.sql(ROWS.format(9)), lake.location, "d.t", commit_user="nightly", commit_identifier=7)
        assert made is not None
        assert made.id == 1
        monkeypatch.setattr(DriverRows, "collect", lambda *_: pytest.fail("a repeated write reads its rows again"))
    assert [one.id for one in table.snapshots()] == [1]
    assert by_tasks == []


def test_a_named_commit_that_another_made_meanwhile(
    spark: SparkSession, lake: lakelet.Lake, by_tasks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same job runs twice at once: its rows are there once."""
    table = lake.create_table("d.t", COLUMNS)
    collect = DriverRows.collect

    def run() -> Any:
        return ls.write(spark.sql(ROWS.format(9)), lake.location, "d.t", commit_user="nightly", commit_identifier=7)

    def after_the_other(*args: Any) -> Any:
        monkeypatch.setattr(DriverRows, "collect", collect)
        run()
        return collect(*args)

    monkeypatch.setattr(DriverRows, "collect", after_the_other)
    assert run().id == 1
    assert sum(content(table).values()) == 9
    assert files(table) == listed(table)
    assert by_tasks == []


def test_rule_5_the_later_commit_wins(
    spark: SparkSession, lake: lakelet.Lake, by_tasks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = keyed(lake)
    ls.write(spark.sql(ROWS.format(9)), lake.location, "d.t")
    finish = committed_write.commit_on_top

    def after_another(*args: Any) -> Any:
        monkeypatch.setattr(committed_write, "commit_on_top", finish)
        row = {"dt": "d0", "amount": Decimal(50), "note": "theirs"}
        table.write([{"id": 0, **row}, {"id": 3, **row}])
        return finish(*args)

    monkeypatch.setattr(committed_write, "commit_on_top", after_another)
    ls.write(spark.sql("SELECT 0L AS id, 'd0' AS dt, 1BD AS amount, 'ours' AS note"), lake.location, "d.t")
    found = {row["id"]: row["note"] for row in table.scan().to_arrow().to_pylist()}
    assert (found[0], found[3]) == ("ours", "theirs")
    assert files(table) == listed(table)
    assert by_tasks == []


def test_a_table_that_is_made_anew_while_rows_are_collected_gets_nothing(
    spark: SparkSession, lake: lakelet.Lake, by_tasks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    keyed(lake)
    collect = DriverRows.collect

    def after_a_drop(*args: Any) -> Any:
        lake.drop_table("d.t")
        keyed(lake)
        return collect(*args)

    monkeypatch.setattr(DriverRows, "collect", after_a_drop)
    with pytest.raises(ConflictError, match="dropped and created again"):
        ls.write(spark.sql(ROWS.format(9)), lake.location, "d.t")
    assert lake.table("d.t").snapshots() == []
    assert files(lake.table("d.t")) == set()
    assert by_tasks == []


@pytest.mark.parametrize("missing", ["default", "keep"])
def test_options_and_branches(spark: SparkSession, lake: lakelet.Lake, by_tasks: list[str], missing: str) -> None:
    table = keyed(lake)
    table.branches.create("dev")
    how: dict[str, Any] = {
        "options": {"file.format": "orc", "data-file.prefix": "x-"},
        "branch": "dev",
        "missing": missing,
    }
    ls.write(spark.sql("SELECT 1L AS id, 'd1' AS dt"), lake.location, "d.t", **how)
    assert table.snapshots() == []
    [row] = table.on_branch("dev").scan().to_arrow().to_pylist()
    assert row["id"] == 1
    [name] = {path.name for path in Path(table.location).glob("**/bucket-*/[!.]*")}
    assert name.startswith("x-")
    assert name.endswith(".orc")
    assert by_tasks == []


def test_files_are_compacted_on_executors(
    spark: SparkSession, lake: lakelet.Lake, by_tasks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = keyed(lake, num_sorted_run__compaction_trigger=2)
    jobs: list[int] = []
    tasks = write_module().CompactTasks.compact

    def noted(self: Any, schema: Any, given: Any) -> Any:
        jobs.append(len(given))
        return tasks(self, schema, given)

    monkeypatch.setattr(write_module().CompactTasks, "compact", noted)
    for number in range(3):
        made = ls.write(spark.sql(NEW.format(number, number + 30)), lake.location, "d.t", "upsert")
        assert made == table.latest_snapshot()
    assert jobs
    assert sum(content(table).values()) == 32
    assert by_tasks == []


def test_more_rows_than_the_driver_takes_are_read_again_by_tasks(
    spark: SparkSession, lake: lakelet.Lake, tmp_path: Path, by_tasks: list[str]
) -> None:
    """Also of values by chance each row is there once: what was collected in part is dropped."""
    spark.range(0, 40, 1, 2).selectExpr("id", "repeat('x', 100) AS wide").write.parquet(str(tmp_path / "rows"))
    stored = spark.read.parquet(str(tmp_path / "rows")).selectExpr("id", "uuid() AS u", "wide")
    for number, (bounds, expected) in enumerate(
        [({"driver_rows": 40}, []), ({"driver_rows": 39}, ["d.t1"]), ({"driver_bytes": 3000}, ["d.t2"])]
    ):
        columns = [("id", "BIGINT NOT NULL"), ("u", "STRING"), ("wide", "STRING")]
        table = lake.create_table(f"d.t{number}", columns, primary_key=["id"], options={"bucket": 2})
        by_tasks.clear()
        made = ls.write(stored, lake.location, table.name, **bounds)
        assert made is not None
        assert made.total_record_count == 40
        found = table.scan().to_arrow()
        assert set(found["id"].to_pylist()) == set(range(40))
        assert len(set(found["u"].to_pylist())) == 40
        assert by_tasks == expected


def test_dynamic_buckets_are_given_by_tasks(spark: SparkSession, lake: lakelet.Lake, by_tasks: list[str]) -> None:
    for name, key in (("d.dynamic", ["id", "dt"]), ("d.crossing", ["id"])):
        table = lake.create_table(name, COLUMNS, primary_key=key, partitioned_by=["dt"])
        ls.write(spark.sql(ROWS.format(9)), lake.location, name)
        assert sum(content(table).values()) == 9
    assert by_tasks == ["d.dynamic", "d.crossing"]


def test_frames_that_may_be_small(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spark.range(0, 40, 1, 2).write.parquet(str(tmp_path / "rows"))
    stored = spark.read.parquet(str(tmp_path / "rows"))
    stored.createOrReplaceTempView("stored_rows")
    small = (
        spark.sql("SELECT s.id FROM stored_rows AS s WHERE s.id < 9"),
        stored.where("id > 3").select(F.col("id") + 1, F.rand()),
        stored.union(spark.range(3)),
        spark.createDataFrame(pa.table({"a": [1]})),
        spark.sql("SELECT 1 AS a"),
        spark.sql("SELECT * FROM VALUES (1), (2) AS t(a)"),
    )
    assert [may_be_small(df, 40) for df in small] == [True] * len(small)
    assert not may_be_small(spark.range(41), 40)
    assert not may_be_small(spark.range(-(2**62), 2**62), 40)
    large = (
        stored.groupBy("id").count(),
        stored.join(stored.withColumnRenamed("id", "other"), F.col("id") == F.col("other")),
        stored.select(F.explode(F.sequence(F.lit(1), "id"))),
        stored.where("id > (SELECT avg(id) FROM range(9))"),
        stored.orderBy("id"),
        stored.limit(3),
        stored.repartition(2),
        stored.observe(Observation(), F.count(F.lit(1))),
        stored.select(F.udf(_same, "bigint")("id")),
        stored.mapInArrow(_itself, "id bigint"),
        spark.createDataFrame([(1,)], "a int"),
        spark.sparkContext.parallelize([(1,)]).toDF(["a"]),
    )
    assert [may_be_small(df, 40) for df in large] == [False] * len(large)
    kept = stored.persist()
    assert not may_be_small(kept.where("id > 3"), 40)
    kept.unpersist()
    monkeypatch.setattr(small_frame, "MOST_SOURCE_BYTES", 100)
    assert not may_be_small(stored, 40)
    spark.catalog.dropTempView("stored_rows")


def _same(value: int) -> int:
    return value


def _itself(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches
