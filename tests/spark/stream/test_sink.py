"""ls.write_stream and ls.write_batch: every batch once, whatever the bucket mode and wherever it is written."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import lakelet
import lakelet.spark as ls
from lakelet import InvalidError
from lakelet.spark.session import settings
from lakelet.spark.stream.write import table_sink
from tests.spark.stream.sink_tables import (
    COLUMNS,
    MODES,
    SCHEMA,
    Row,
    add_file,
    file_stream,
    make_table,
    merged,
    ordered,
    rows_of,
    run,
    stored,
)


@pytest.fixture
def lake(tmp_path: Path) -> lakelet.Lake:
    lake = lakelet.connect(str(tmp_path / "wh"))
    lake.create_database("shop")
    return lake


def frame(spark: SparkSession, rows: list[Row], schema: str = SCHEMA) -> DataFrame:
    names = [part.split()[0] for part in schema.split(", ")]
    return spark.createDataFrame([tuple(row[name] for name in names) for row in rows], schema)


@pytest.mark.parametrize("driver_rows", [100_000, 0])
@pytest.mark.parametrize("mode", list(MODES))
def test_a_stream_gives_the_rows_of_its_batches(
    spark: SparkSession, lake: lakelet.Lake, tmp_path: Path, mode: str, driver_rows: int
) -> None:
    table = make_table(lake, mode)
    keyed = "primary_key" in MODES[mode]
    arguments: dict[str, Any] = {
        "checkpoint": tmp_path / "checkpoint",
        "mode": "upsert" if keyed else "append",
        "driver_rows": driver_rows,
        "compact_every": 2,
    }
    for batch in range(2):
        add_file(tmp_path / "in", batch, rows_of(batch))
    run(lambda: ls.write_stream(file_stream(spark, tmp_path / "in"), lake.location, "shop.orders", **arguments))
    add_file(tmp_path / "in", 2, rows_of(2))
    query = run(lambda: ls.write_stream(file_stream(spark, tmp_path / "in"), lake.location, "shop.orders", **arguments))
    expected = merged([rows_of(batch) for batch in range(3)], keyed=keyed)
    assert stored(table) == expected
    users = {snapshot.commit_user for snapshot in table.snapshots() if snapshot.commit_kind.value == "APPEND"}
    assert query.id in users


def test_a_repeated_batch_runs_no_job(spark: SparkSession, lake: lakelet.Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make_table(lake, "fixed")
    first = ls.write_batch(frame(spark, rows_of(0)), 0, lake.location, "shop.orders", commit_user="job")
    second = ls.write_batch(frame(spark, rows_of(1)), 1, lake.location, "shop.orders", commit_user="job")

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("a repeated batch was written")

    monkeypatch.setattr(table_sink.TableSink, "write", fail)
    again = ls.write_batch(frame(spark, rows_of(9)), 1, lake.location, "shop.orders", commit_user="job")
    assert again == second
    assert ls.write_batch(frame(spark, rows_of(9)), 0, lake.location, "shop.orders", commit_user="job") == first
    assert stored(table) == merged([rows_of(0), rows_of(1)], keyed=True)


def test_a_batch_is_recognised_after_its_snapshot_expired(spark: SparkSession, lake: lakelet.Lake) -> None:
    table = make_table(lake, "append")
    arguments: dict[str, Any] = {"commit_user": "job", "mode": "append"}
    ls.write_batch(frame(spark, rows_of(0)), 7, lake.location, "shop.orders", **arguments)
    for _ in range(3):
        table.write(rows_of(5))
    table.expire_snapshots(retain_last=1, retain_max=1, older_than="0 s")
    assert all(snapshot.commit_user != "job" for snapshot in table.snapshots())
    ls.write_batch(frame(spark, rows_of(0)), 7, lake.location, "shop.orders", **arguments)
    assert stored(table) == ordered([*rows_of(0), *rows_of(5), *rows_of(5), *rows_of(5)])


def test_several_tables_of_one_batch(spark: SparkSession, lake: lakelet.Lake, tmp_path: Path) -> None:
    orders, odd = make_table(lake, "fixed"), make_table(lake, "append", "shop.odd ones")
    for batch in range(2):
        add_file(tmp_path / "in", batch, rows_of(batch))
    tables = {"shop.orders": None, "shop.odd ones": lambda batch: batch.where("id % 2 = 1")}
    run(
        lambda: ls.write_stream(
            file_stream(spark, tmp_path / "in"),
            lake.location,
            tables,
            checkpoint=str(tmp_path / "check point"),
            mode="append",
            commit_user="Größe",
        )
    )
    batches = [rows_of(0), rows_of(1)]
    assert stored(orders) == merged(batches, keyed=True)
    assert stored(odd) == ordered([row for batch in batches for row in batch if row["id"] % 2])


def test_row_kinds_and_overwritten_partitions(spark: SparkSession, lake: lakelet.Lake) -> None:
    table = make_table(lake, "fixed")
    for driver_rows in (100_000, 0):
        arguments: dict[str, Any] = {"commit_user": f"job-{driver_rows}", "driver_rows": driver_rows}
        schema = f"{SCHEMA}, op string"
        rows = [{**row, "op": "+I"} for row in rows_of(0)]
        ls.write_batch(frame(spark, rows, schema), 0, lake.location, "shop.orders", kinds="op", **arguments)
        rows = [{**row, "op": "-D"} for row in rows_of(0)[:4]]
        ls.write_batch(frame(spark, rows, schema), 1, lake.location, "shop.orders", kinds="op", **arguments)
        assert stored(table) == ordered(rows_of(0)[4:])
        rows = [row for row in rows_of(3) if row["dt"] == "d1"]
        ls.write_batch(frame(spark, rows), 2, lake.location, "shop.orders", mode="overwrite_partitions", **arguments)
        kept = [row for row in rows_of(0)[4:] if row["dt"] == "d0"]
        assert stored(table) == ordered([*kept, *rows])
        table.write([], mode="overwrite")


def test_two_names_of_one_table_are_refused(spark: SparkSession, lake: lakelet.Lake, tmp_path: Path) -> None:
    """The second write of a batch would be taken for a repeated one, and its rows would be lost."""
    table = make_table(lake, "append")
    (tmp_path / "wh" / "shop.db" / "linked").symlink_to(tmp_path / "wh" / "shop.db" / "orders")
    tables: dict[str, Any] = {"shop.orders": None, "shop.linked": lambda batch: batch.where("id = 1")}
    with pytest.raises(InvalidError, match=r"'shop\.orders' and 'shop\.linked' are one table"):
        ls.write_batch(frame(spark, rows_of(0)), 0, lake.location, tables, mode="append", commit_user="job")
    with pytest.raises(InvalidError, match="are one table"):
        ls.write_stream(
            file_stream(spark, tmp_path / "in"), lake.location, tables, checkpoint=tmp_path / "cp", mode="append"
        )
    assert table.snapshots() == []


def test_columns_that_do_not_fit_are_told_before_the_query_starts(
    spark: SparkSession, lake: lakelet.Lake, tmp_path: Path
) -> None:
    make_table(lake, "append")
    stream = file_stream(spark, tmp_path / "in")
    given: dict[str, Any] = {"checkpoint": tmp_path / "cp", "mode": "append"}
    with pytest.raises(InvalidError, match="column 'note' is STRING; the data has BIGINT"):
        ls.write_stream(stream.selectExpr("id", "dt", "v", "v AS note"), lake.location, "shop.orders", **given)
    with pytest.raises(InvalidError, match="column 'v' is BIGINT; expected a TIMESTAMP"):
        ls.write_stream(stream, lake.location, "shop.orders", watermark=("v", "1 s"), **given)
    assert not (tmp_path / "cp").exists()


def test_a_failing_function_is_named_by_the_query(spark: SparkSession, lake: lakelet.Lake, tmp_path: Path) -> None:
    """Of two tables the first has the batch, and the next run writes the second alone."""
    tables = make_table(lake, "append"), make_table(lake, "append", "shop.other")
    add_file(tmp_path / "in", 0, rows_of(0))

    def start(rows_of_other: Any) -> Any:
        given = {"shop.orders": None, "shop.other": rows_of_other}
        stream = file_stream(spark, tmp_path / "in")
        return ls.write_stream(stream, lake.location, given, checkpoint=tmp_path / "cp", mode="append")

    with pytest.raises(StreamingQueryException, match=r"the function of shop\.other is to return a DataFrame"):
        run(lambda: start(lambda batch: 1))
    run(lambda: start(None))
    assert [stored(table) for table in tables] == [ordered(rows_of(0))] * 2


@pytest.mark.parametrize(("mode", "driver_rows"), [("fixed", 100_000), ("append", 10), *((mode, 0) for mode in MODES)])
def test_the_rows_of_a_batch_are_computed_once(
    spark: SparkSession, lake: lakelet.Lake, tmp_path: Path, mode: str, driver_rows: int
) -> None:
    """By a function that counts its calls, in a column of texts, whose sizes decide where the batch is written."""
    table = make_table(lake, mode)
    keyed = "primary_key" in MODES[mode]
    calls = spark.sparkContext.accumulator(0)

    @F.udf("string")
    def noted(number: int) -> str:
        calls.add(1)
        return f"n{number}"

    add_file(tmp_path / "in", 0, rows_of(0))
    stream = file_stream(spark, tmp_path / "in").withColumn("note", noted("id"))
    run(
        lambda: ls.write_stream(
            stream,
            lake.location,
            "shop.orders",
            checkpoint=tmp_path / "checkpoint",
            mode="upsert" if keyed else "append",
            driver_rows=driver_rows,
        )
    )
    assert stored(table) == ordered([{**row, "note": f"n{row['id']}"} for row in rows_of(0)])
    assert calls.value == len(rows_of(0))


@pytest.mark.parametrize("driver_rows", [100_000, 0])
def test_snapshots_carry_the_watermark_of_the_last_progress(
    spark: SparkSession, lake: lakelet.Lake, tmp_path: Path, driver_rows: int
) -> None:
    table = lake.create_table("shop.seen", [("id", "BIGINT"), ("ts", "TIMESTAMP(6) WITH LOCAL TIME ZONE")])
    for batch in range(5):
        add_file(tmp_path / "in", batch, rows_of(batch))
    events = file_stream(spark, tmp_path / "in").selectExpr("id", "timestamp_millis(1767225600000 + v * 1000) AS ts")
    with settings(spark, {"spark.sql.session.timeZone": "Asia/Kolkata"}):
        query = run(
            lambda: ls.write_stream(
                events.withWatermark("ts", "10 seconds"),
                lake.location,
                "shop.seen",
                checkpoint=tmp_path / "checkpoint",
                mode="append",
                driver_rows=driver_rows,
            )
        )
    last = [max(row["v"] for row in rows_of(batch)) for batch in range(5)]
    reached = [1767225600000 + seconds * 1000 - 10_000 for seconds in last]
    # A batch begins with the watermark of those before it, and its body sees the progress of the batch before.
    assert [snapshot.watermark for snapshot in table.snapshots()] == [None, None, *reached[:3]]
    assert [progress.eventTime["watermark"] for progress in query.recentProgress][1:] == [
        f"{datetime.fromtimestamp(one / 1000, UTC):%Y-%m-%dT%H:%M:%S.000Z}" for one in reached[:4]
    ]


def test_files_are_compacted_in_the_background(spark: SparkSession, lake: lakelet.Lake) -> None:
    """After every second batch; what one of them misses because it is under way the next one finds."""
    table = lake.create_table("shop.orders", COLUMNS, options={"compaction.min.file-num": "2"})
    given: dict[str, Any] = {"commit_user": "job", "mode": "append", "compaction": "background", "compact_every": 2}
    for batch in range(4):
        ls.write_batch(frame(spark, rows_of(batch)), batch, lake.location, "shop.orders", **given)
    ls.wait_for_compactions(600)
    assert ls.compaction_failures() == {}
    assert "COMPACT" in {snapshot.commit_kind.value for snapshot in table.snapshots()}
    assert stored(table) == merged([rows_of(batch) for batch in range(4)], keyed=False)


def test_the_callers_cache_stays(spark: SparkSession, lake: lakelet.Lake) -> None:
    for name in ("shop.orders", "shop.other"):
        make_table(lake, "append", name)
    rows = frame(spark, rows_of(0)).persist()
    given: dict[str, Any] = {"commit_user": "job", "mode": "append"}
    ls.write_batch(rows, 0, lake.location, {"shop.orders": None, "shop.other": None}, **given)
    assert rows.storageLevel.useMemory
    rows.unpersist()
    ls.write_batch(rows, 1, lake.location, {"shop.orders": None, "shop.other": None}, **given)
    assert not rows.storageLevel.useMemory


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mode": "overwrite"}, "mode 'overwrite'"),
        ({"compaction": "later"}, "compaction 'later'"),
        ({"compact_every": 0}, "compact_every 0"),
        ({"driver_rows": -1}, "driver_rows -1"),
        ({"watermark": "ts"}, "watermark: expected a column and a delay"),
        ({"table": {}}, "table: expected a name"),
        ({"table": {"shop.orders": 1}}, "functions of the batch"),
        ({"batch_id": -1}, "batch_id -1"),
        ({"commit_user": None}, "commit_user"),
        ({"mode": "upsert"}, "has no primary key"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(
    spark: SparkSession, lake: lakelet.Lake, arguments: dict[str, Any], message: str
) -> None:
    table = make_table(lake, "append")
    given: dict[str, Any] = {
        "batch_id": 0,
        "warehouse": lake.location,
        "table": "shop.orders",
        "mode": "append",
        "commit_user": "job",
        **arguments,
    }
    with pytest.raises(InvalidError, match=message):
        ls.write_batch(frame(spark, rows_of(0)), **given)
    assert table.snapshots() == []
