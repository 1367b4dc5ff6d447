"""ls.write into HASH_DYNAMIC tables: a key keeps its bucket, whoever writes and whatever fails."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import lakelet
from lakelet import ConflictError, CorruptionError, InvalidError, Table
from lakelet.spark.route import alignment, dynamic_buckets
from lakelet.spark.write import write_job
from lakelet.spark.write.table_write import write
from tests.spark.dynamic_tables import buckets_of_keys, check_indexes, merged, rows_by_key
from tests.spark.faults import Fault, OnExecutors, writes_through

pytestmark = [pytest.mark.spark]

COLUMNS = [("k", "BIGINT NOT NULL"), ("v", "STRING")]
SCHEMA = "k bigint, v string, _row_kind string"
TARGET = 40


@pytest.fixture
def lake(tmp_path: Path) -> lakelet.Lake:
    lake = lakelet.connect(str(tmp_path / "wh"))
    lake.create_database("d")
    return lake


def dynamic(lake: lakelet.Lake, **options: object) -> Table:
    named = {key.replace("_", "-"): text for key, text in options.items()}
    return lake.create_table(
        "d.t",
        COLUMNS,
        primary_key=["k"],
        options={"bucket": -1, "dynamic-bucket.target-row-num": TARGET, **named},
    )


def frame(spark: SparkSession, rows: dict[int, str | None]) -> DataFrame:
    """Upserts, and deletes of the keys whose value is None. Spark cannot tell how much data this is, and takes it for much."""
    return spark.createDataFrame([(key, text or "", "+I" if text else "-D") for key, text in rows.items()], SCHEMA)


def chosen(chance: random.Random, tag: str, count: int, keys: int = 400) -> dict[int, str | None]:
    return {key: None if chance.random() < 0.1 else f"{tag}{key}" for key in chance.sample(range(keys), count)}


def rows(table: Table) -> dict[int, str]:
    return {key: values[0] for key, values in rows_by_key(table, "k", ["v"]).items()}


def files(table: Table) -> set[str]:
    return {
        path.name for path in Path(table.location).glob("**/*") if path.parent.name.startswith(("bucket-", "index"))
    }


def count_calls(patch: pytest.MonkeyPatch, name: str) -> list[None]:
    calls: list[None] = []
    real: Callable[..., Any] = getattr(dynamic_buckets, name)

    def counted(*arguments: Any) -> Any:
        calls.append(None)
        return real(*arguments)

    patch.setattr(dynamic_buckets, name, counted)
    return calls


def test_upserts_by_hash_by_look_up_and_by_join_equal_a_dictionary(
    spark: SparkSession, lake: lakelet.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, chance, model = dynamic(lake), random.Random(5), {}
    looked_up, joined = count_calls(monkeypatch, "_known_bucket"), count_calls(monkeypatch, "_joined")
    for tag in ("a", "b"):
        given = chosen(chance, tag, 150)
        write(frame(spark, given), lake.location, "d.t", "upsert")
        model = merged(model, given)
        assert rows(table) == model
    assert not looked_up + joined, "what Spark alone wrote is found by the hash"
    before = buckets_of_keys(table, "k")
    # A local writer fills the first bucket with room, whatever the hash.
    local = {key: f"local{key}" for key in range(300, 420)}
    table.write([{"k": key, "v": text} for key, text in local.items()])
    model = merged(model, local)
    for tag, most in (("c", 1 << 20), ("d", 10)):
        monkeypatch.setattr(dynamic_buckets, "MOST_KEYS_IN_MEMORY", most)
        monkeypatch.setattr(alignment, "MOST_KEYS_ON_DRIVER", most)
        given = chosen(chance, tag, 250, 600)
        write(frame(spark, given), lake.location, "d.t")
        model = merged(model, given)
        assert rows(table) == model
    assert (len(looked_up), len(joined)) == (1, 1)
    after = buckets_of_keys(table, "k")
    assert {key: after[key] for key in before if key in after} == {key: before[key] for key in before if key in after}
    counts = check_indexes(table, "k")
    assert max(counts.values()) <= TARGET
    assert len(counts) > 8


def test_little_data_makes_one_bucket_and_its_options_more(spark: SparkSession, lake: lakelet.Lake) -> None:
    table = dynamic(lake)
    write(spark.range(30).selectExpr("id AS k", "'x' AS v"), lake.location, "d.t")
    assert check_indexes(table, "k") == {0: 30}
    lake.drop_table("d.t")
    table = dynamic(lake, **{"dynamic-bucket.initial-buckets": 3, "dynamic-bucket.max-buckets": 3})
    write(spark.range(150).selectExpr("id AS k", "'x' AS v"), lake.location, "d.t")
    write(spark.range(100, 200).selectExpr("id AS k", "'y' AS v"), lake.location, "d.t")
    counts = check_indexes(table, "k")
    assert set(counts) == {0, 1, 2}
    assert sum(counts.values()) == 200
    assert rows(table) == {key: "x" if key < 100 else "y" for key in range(200)}


def test_partitions_have_buckets_and_indexes_of_their_own(spark: SparkSession, lake: lakelet.Lake) -> None:
    table = lake.create_table(
        "d.t",
        [("k", "STRING NOT NULL"), ("p", "INT NOT NULL"), ("v", "INT")],
        primary_key=["p", "k"],
        partitioned_by=["p"],
        options={"bucket": -1, "dynamic-bucket.target-row-num": 10},
    )

    def data(first: int, last: int, value: int, partitions: int = 3) -> DataFrame:
        given = [(f"key-{n // partitions}", n % partitions, value) for n in range(first, last)]
        return spark.createDataFrame(given, "k string, p int, v int")

    write(data(0, 90, 1), lake.location, "d.t")
    table.write([{"k": f"key-{n}", "p": 1, "v": 2} for n in range(20, 50)])
    write(data(30, 180, 3), lake.location, "d.t")
    expected = {(f"key-{n // 3}", n % 3): 3 if n >= 30 else 1 for n in range(180)}
    assert {(row["k"], row["p"]): row["v"] for row in table.scan().to_arrow().to_pylist()} == expected
    write(data(0, 12, 4, 2), lake.location, "d.t", "overwrite_partitions")
    expected = {key: value for key, value in expected.items() if key[1] == 2}
    expected |= {(f"key-{n // 2}", n % 2): 4 for n in range(12)}
    write(spark.createDataFrame([("key-0", 5)], "k string, v int"), lake.location, "d.t", "overwrite", {"p": 2})
    expected = {key: value for key, value in expected.items() if key[1] != 2} | {("key-0", 2): 5}
    # The indexes of what was replaced went with it: keys that come back get buckets of today.
    write(data(0, 60, 6, 2), lake.location, "d.t")
    expected |= {(f"key-{n // 2}", n % 2): 6 for n in range(60)}
    found = table.scan().to_arrow().to_pylist()
    assert len(found) == len(expected)
    assert {(row["k"], row["p"]): row["v"] for row in found} == expected


def test_rule_21_a_writer_that_dies_and_is_run_again_leaves_every_key_one_bucket(
    spark: SparkSession, lake: lakelet.Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, chance = dynamic(lake), random.Random(6)
    model = merged({}, chosen(chance, "a", 200))
    table.write([{"k": key, "v": text} for key, text in model.items()])
    (tmp_path / "seen").mkdir()
    fault = Fault("kill-worker", str(tmp_path / "seen"), 2)
    with monkeypatch.context() as patch:
        writes_through(patch, lambda store: OnExecutors(store, fault))
        given = chosen(chance, "b", 300, 800)
        write(frame(spark, given), lake.location, "d.t")
    assert fault.count() == 2
    model = merged(model, given)
    assert rows(table) == model
    check_indexes(table, "k")
    listed = {file.name for split in table.scan().plan().splits for file in split.files}
    assert {name for name in files(table) if name.startswith("data-")} == listed


def test_the_later_of_two_jobs_fails_before_its_commit_and_can_be_run_again(
    spark: SparkSession, lake: lakelet.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = dynamic(lake)
    left: list[set[str]] = []
    real = write_job.remove_leftovers

    def overtaken(*arguments: Any, **named: Any) -> None:
        real(*arguments, **named)
        if not left:
            before = files(table)
            table.write([{"k": key, "v": "other"} for key in range(50)])
            left.append(files(table) - before)

    monkeypatch.setattr(write_job, "remove_leftovers", overtaken)
    given = {key: f"a{key}" for key in range(30, 90)}
    with pytest.raises(ConflictError, match="write again"):
        write(frame(spark, given), lake.location, "d.t")
    assert rows(table) == dict.fromkeys(range(50), "other")
    assert files(table) == left[0], "the job that failed left files"
    write(frame(spark, given), lake.location, "d.t")
    assert rows(table) == {**dict.fromkeys(range(50), "other"), **given}
    check_indexes(table, "k")


def test_what_is_refused(spark: SparkSession, lake: lakelet.Lake) -> None:
    table = dynamic(lake)
    table.write([{"k": key, "v": "old"} for key in range(50)])
    before = files(table)
    with_nulls = spark.createDataFrame([(None, "x"), (1, "x"), (None, "y")], "k bigint, v string")
    with pytest.raises(InvalidError, match=r"2 rows with NULL in .*k"):
        write(with_nulls, lake.location, "d.t")
    twice = spark.createDataFrame([(1, "x"), (2, "x"), (1, "y"), (99, "x"), (99, "y")], "k bigint, v string")
    with pytest.raises(InvalidError, match=r"2 rows .*primary key"):
        write(twice, lake.location, "d.t")
    assert files(table) == before
    write(twice, lake.location, "d.t", on_duplicate="any")
    assert rows(table)[99] in ("x", "y")
    assert len(rows(table)) == 51


def test_an_index_that_cannot_be_read_is_told_in_a_line(
    spark: SparkSession, lake: lakelet.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = dynamic(lake)
    table.write([{"k": key, "v": "old"} for key in range(10)])
    for path in Path(table.location).glob("index/index-*"):
        path.write_bytes(b"abc")
    monkeypatch.setattr(alignment, "MOST_KEYS_ON_DRIVER", 5)
    with pytest.raises(CorruptionError, match=r"reading the hash indexes of .*index-") as raised:
        write(frame(spark, {1: "x"}), lake.location, "d.t")
    assert "\n" not in str(raised.value)
