"""ls.write into KEY_DYNAMIC tables: a key moves between partitions as it does with local writes."""

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import lakelet
from lakelet import ConflictError, InvalidError, Table
from lakelet.commit.metadata.snapshots import latest_snapshot
from lakelet.format.rows.binary_row import encode_row
from lakelet.sink.bucket.assigned_rows import NEW
from lakelet.sink.bucket.cross_partition import Crossing
from lakelet.spark.route.cross_partition import CrossingTable, crossed
from lakelet.spark.write import write_job
from lakelet.spark.write.table_write import write
from tests.spark.dynamic_tables import merged, rows_by_key

pytestmark = [pytest.mark.spark]

COLUMNS = [("k", "BIGINT NOT NULL"), ("p", "STRING"), ("v", "STRING"), ("w", "INT")]
SCHEMA = "k bigint, p string, v string, w int"
PARTITIONS = ("a", "b", None, "d")
Given = dict[int, tuple[str | None, str | None, int | None]]


@pytest.fixture
def lake(tmp_path: Path) -> lakelet.Lake:
    lake = lakelet.connect(str(tmp_path / "wh"))
    lake.create_database("d")
    return lake


def crossing(lake: lakelet.Lake, name: str = "d.t", **options: object) -> Table:
    named = {key.replace("_", "-"): text for key, text in options.items()}
    return lake.create_table(
        name,
        COLUMNS,
        primary_key=["k"],
        partitioned_by=["p"],
        options={"bucket": -1, "dynamic-bucket.target-row-num": 30, **named},
    )


def floats(lake: lakelet.Lake) -> Table:
    columns = [("k", "BIGINT NOT NULL"), ("p", "DOUBLE"), ("v", "STRING")]
    return lake.create_table("d.t", columns, primary_key=["k"], partitioned_by=["p"], options={"bucket": -1})


def frame(spark: SparkSession, given: Given) -> DataFrame:
    return spark.createDataFrame([(key, *row) for key, row in given.items()], SCHEMA)


def local_rows(given: Given) -> list[dict[str, Any]]:
    return [dict(zip(("k", "p", "v", "w"), (key, *row), strict=True)) for key, row in given.items()]


def chosen(chance: random.Random, tag: str, count: int) -> Given:
    return {
        key: (chance.choice(PARTITIONS), f"{tag}{key}" if chance.random() < 0.8 else None, chance.randrange(100))
        for key in chance.sample(range(300), count)
    }


def rows(table: Table) -> dict[Any, Any]:
    return rows_by_key(table, "k", ["p", "v", "w"])


def files(table: Table) -> set[str]:
    return {path.name for path in Path(table.location).glob("**/bucket-*/*")}


def test_rows_move_between_partitions_as_a_dictionary_says(spark: SparkSession, lake: lakelet.Lake) -> None:
    table, chance, model = crossing(lake), random.Random(7), {}
    for turn in range(3):
        given = chosen(chance, f"s{turn}-", 120)
        write(frame(spark, given), lake.location, "d.t", "upsert")
        model = merged(model, given)
        assert rows(table) == model
        given = chosen(chance, f"l{turn}-", 60)
        table.write(local_rows(given))
        model = merged(model, given)
        assert rows(table) == model


@pytest.mark.parametrize("rule", [Crossing.STAYS, Crossing.SKIPS])
def test_a_key_that_stays_draws_its_rows_or_leaves_them_out(
    spark: SparkSession, lake: lakelet.Lake, rule: Crossing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables whose engines ask for it are not written yet: this looks at the rows that writers would be given."""
    monkeypatch.setattr(Crossing, "of", lambda _: rule)
    table = crossing(lake)
    table.write(local_rows({1: ("a", "old", 1), 2: (None, "old", 2)}))
    at = CrossingTable(table.home, table.schema, latest_snapshot(table.home), None, "job")
    given = [
        (1, "b", "x", 1),
        (2, None, "x", 2),
        (3, "d", "x", 3),
        (3, "b", "y", 3),
        (4, None, "x", 4),
        (4, "a", "y", 4),
    ]
    routed = crossed(spark.createDataFrame(given, SCHEMA), at, kinds=None, one_row_per_key=False, parallelism=2)
    found = {(row["k"], row["p"], row["v"], row[str(routed.carried)]) for row in routed.frame.collect()}
    at_once = {(2, None, "x", 0), (3, "b", "y", NEW), (4, None, "x", NEW)}
    drawn = {(1, "a", "x", 0), (3, "b", "x", NEW), (4, None, "y", NEW)}
    assert found == (at_once | drawn if rule is Crossing.STAYS else at_once)


@pytest.mark.deep
def test_a_key_that_comes_twice_is_refused_in_whatever_partitions(spark: SparkSession, lake: lakelet.Lake) -> None:
    table = crossing(lake)
    write(frame(spark, {1: ("a", "old", 1)}), lake.location, "d.t")
    before = files(table)
    twice = spark.createDataFrame(
        [(1, "b", "x", 1), (1, "d", "y", 1), (2, "a", "x", 1), (2, "a", "y", 1), (3, "a", "z", 1)], SCHEMA
    )
    with pytest.raises(InvalidError, match=r"2 rows .*primary key"):
        write(twice, lake.location, "d.t")
    with pytest.raises(InvalidError, match=r"3 rows with NULL in .*k"):
        write(spark.createDataFrame([(None, "a", "x", 1)] * 3 + [(5, "a", "x", 1)], SCHEMA), lake.location, "d.t")
    assert files(table) == before
    write(twice, lake.location, "d.t", on_duplicate="any")
    assert rows(table)[1] == ("b", "x", 1), "of several partitions the least"
    assert rows(table)[2][0] == "a"
    assert len(rows(table)) == 3


def test_kinds_of_rows(spark: SparkSession, lake: lakelet.Lake) -> None:
    table = crossing(lake, **{"ignore-update-before": "true"})
    write(frame(spark, {key: ("a", "old", key) for key in range(4)}), lake.location, "d.t")
    changes = spark.createDataFrame(
        [(0, "a", "old", 0, "-U"), (0, "b", "new", 0, "+U"), (1, "a", "old", 1, "-D"), (2, "b", "new", 2, "+I")],
        f"{SCHEMA}, _row_kind string",
    )
    write(changes, lake.location, "d.t")
    assert rows(table) == {0: ("b", "new", 0), 2: ("b", "new", 2), 3: ("a", "old", 3)}
    told = crossing(lake, "d.told", **{"rowkind.field": "v"})
    told.write([{"k": 1, "p": "a", "v": "+I", "w": 1}, {"k": 2, "p": "a", "v": "+I", "w": 1}])
    write(frame(spark, {1: ("b", "+U", 2), 2: ("a", "-D", 2)}), lake.location, "d.told")
    assert rows(told) == {1: ("b", "+U", 2)}


@pytest.mark.deep
def test_overwrites_take_the_partitions_that_they_name(spark: SparkSession, lake: lakelet.Lake) -> None:
    table, chance = crossing(lake), random.Random(9)
    model: dict[Any, Any] = dict(chosen(chance, "a", 200))
    write(frame(spark, model), lake.location, "d.t", "overwrite")
    given = {key: ((key % 2 and "a") or None, *row[1:]) for key, row in chosen(chance, "b", 60).items()}
    write(frame(spark, given), lake.location, "d.t", "overwrite_partitions")
    model = {key: row for key, row in model.items() if row[0] not in ("a", None)} | given
    assert rows(table) == model
    given = {key: ("b", *row[1:]) for key, row in chosen(chance, "c", 60).items()}
    write(frame(spark, given).drop("p"), lake.location, "d.t", "overwrite", {"p": "b"})
    model = {key: row for key, row in model.items() if row[0] != "b"} | given
    assert rows(table) == model
    given = chosen(chance, "d", 20)
    write(frame(spark, given), lake.location, "d.t", "overwrite")
    assert rows(table) == given


@pytest.mark.deep
def test_keys_that_spark_takes_for_one_stay_two(spark: SparkSession, lake: lakelet.Lake) -> None:
    table = lake.create_table(
        "d.t",
        [("k", "DOUBLE NOT NULL"), ("p", "INT"), ("v", "STRING")],
        primary_key=["k"],
        partitioned_by=["p"],
        options={"bucket": -1},
    )
    schema = "k double, p int, v string"
    write(spark.createDataFrame([(0.0, 1, "plus"), (-0.0, 1, "minus")], schema), lake.location, "d.t")
    write(spark.createDataFrame([(-0.0, 2, "moved")], schema), lake.location, "d.t")
    found = {(str(row["k"]), row["p"], row["v"]) for row in table.scan().to_arrow().to_pylist()}
    assert found == {("0.0", 1, "plus"), ("-0.0", 2, "moved")}


@pytest.mark.deep
def test_a_frame_that_draws_its_partitions_anew_each_time_replaces_those_that_it_fills(
    spark: SparkSession, lake: lakelet.Lake
) -> None:
    table = crossing(lake)
    table.write(local_rows({100 + n: (str(n), "old", n) for n in range(20)}))
    drawn = F.udf(lambda _: str(random.SystemRandom().randrange(20)), "string").asNondeterministic()
    data = spark.range(8).select(F.col("id").alias("k"), drawn("id").alias("p"), F.lit("new").alias("v"))
    write(data, lake.location, "d.t", "overwrite_partitions")
    found = rows(table)
    filled = {row[0] for row in found.values() if row[1] == "new"}
    assert set(range(8)) == {key for key, row in found.items() if row[1] == "new"}
    assert {row[0] for row in found.values() if row[1] == "old"} == {str(n) for n in range(20)} - filled


@pytest.mark.deep
def test_partitions_that_spark_takes_for_one_stay_two(spark: SparkSession, lake: lakelet.Lake) -> None:
    table = floats(lake)
    table.write([{"k": 1, "p": 0.0, "v": "old"}, {"k": 2, "p": -0.0, "v": "old"}, {"k": 3, "p": 0.0, "v": "old"}])
    given = [(1, -0.0, "moved"), (2, -0.0, "same"), (4, 0.0, "new")]
    write(spark.createDataFrame(given, "k bigint, p double, v string"), lake.location, "d.t")
    found = [(row["k"], str(row["p"]), row["v"]) for row in table.scan().to_arrow().sort_by("k").to_pylist()]
    assert found == [(1, "-0.0", "moved"), (2, "-0.0", "same"), (3, "0.0", "old"), (4, "0.0", "new")]


@pytest.mark.deep
def test_rows_leave_partitions_that_spark_cannot_name(spark: SparkSession, lake: lakelet.Lake) -> None:
    table = lake.create_table(
        "d.t",
        [("k", "BIGINT NOT NULL"), ("q", "STRING"), ("p", "TIMESTAMP(9)"), ("v", "STRING")],
        primary_key=["k"],
        partitioned_by=["q", "p"],
        options={"bucket": -1},
    )
    nanos = [1_700_000_000_123_456_789, 1_700_000_000_123_456_788, 1_700_000_000_123_456_789, None]
    times = pa.array(nanos, pa.timestamp("ns"))
    table.write(pa.table({"k": [1, 2, 3, 4], "q": [None, "x", None, "x"], "p": times, "v": ["old"] * 4}))
    moved = spark.sql(
        "SELECT id AS k, 'x' AS q, timestamp_micros(1700000000123456) :: timestamp_ntz AS p FROM range(1, 3)"
    )
    write(moved.withColumn("v", F.lit("new")), lake.location, "d.t")
    found = table.scan().to_arrow().sort_by("k")
    assert found.column("k").to_pylist() == [1, 2, 3, 4]
    assert found.column("v").to_pylist() == ["new", "new", "old", "old"]
    assert found.column("p").cast(pa.int64()).to_pylist()[2:] == nanos[2:]


@pytest.mark.parametrize("rule", [Crossing.STAYS, Crossing.SKIPS])
def test_a_key_that_stays_tells_partitions_apart_that_spark_takes_for_one(
    spark: SparkSession, lake: lakelet.Lake, rule: Crossing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Crossing, "of", lambda _: rule)
    table = floats(lake)
    table.write([{"k": 1, "p": 0.0, "v": "old"}, {"k": 2, "p": 0.0, "v": "old"}])
    at = CrossingTable(table.home, table.schema, latest_snapshot(table.home), None, "job")
    given = spark.createDataFrame([(1, 0.0, "x"), (2, -0.0, "x"), (3, -0.0, "x")], "k bigint, p double, v string")
    routed = crossed(given, at, kinds=None, one_row_per_key=False, parallelism=2)
    found = {(row["k"], str(row["p"]), *row[str(routed.carried)]) for row in routed.frame.collect()}
    zero = encode_row([0.0], table.schema.partition_types)
    drawn = {(2, "0.0", 0, zero)} if rule is Crossing.STAYS else set()
    assert found == {(1, "0.0", 0, None), (3, "-0.0", NEW, None)} | drawn


@pytest.mark.deep
def test_a_collation_tells_nothing(spark: SparkSession, lake: lakelet.Lake) -> None:
    table = crossing(lake)
    table.write(local_rows({1: ("a", "old", 1), 2: ("a", "old", 2)}))
    data = frame(spark, {1: ("A", "new", 1), 2: ("a", "new", 2), 3: ("A", "new", 3)})
    write(data.withColumn("p", F.expr("p COLLATE UTF8_LCASE")), lake.location, "d.t")
    assert rows(table) == {1: ("A", "new", 1), 2: ("a", "new", 2), 3: ("A", "new", 3)}


def test_a_value_that_does_not_fit_is_told_in_a_line_whichever_job_meets_it(
    spark: SparkSession, lake: lakelet.Lake
) -> None:
    lake.create_table(
        "d.t",
        [("k", "BIGINT NOT NULL"), ("p", "INT")],
        primary_key=["k"],
        partitioned_by=["p"],
        options={"bucket": -1},
    )
    data = spark.createDataFrame([(1, 2**40)], "k bigint, p bigint")
    with pytest.raises(InvalidError, match=r"column 'p' is INT; .*1099511627776") as raised:
        write(data, lake.location, "d.t", "overwrite_partitions")
    assert "\n" not in str(raised.value)


def test_the_later_of_two_jobs_fails_before_its_commit(
    spark: SparkSession, lake: lakelet.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = crossing(lake)
    left: list[set[str]] = []
    real = write_job.remove_leftovers

    def overtaken(*arguments: Any, **named: Any) -> None:
        real(*arguments, **named)
        before = files(table)
        table.write(local_rows({1: ("b", "other", 1)}))
        left.append(files(table) - before)

    with monkeypatch.context() as patch:
        patch.setattr(write_job, "remove_leftovers", overtaken)
        with pytest.raises(ConflictError, match="write again"):
            write(frame(spark, {1: ("a", "mine", 1)}), lake.location, "d.t")
    assert rows(table) == {1: ("b", "other", 1)}
    assert files(table) == left[0], "the job that failed left files"
    write(frame(spark, {1: ("a", "mine", 1)}), lake.location, "d.t")
    assert rows(table) == {1: ("a", "mine", 1)}
