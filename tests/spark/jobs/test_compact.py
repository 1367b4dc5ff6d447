"""ls.compact, and the compaction that follows ls.write: tasks on executors, one commit by the driver."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import lakelet
from lakelet import InvalidError, NotFoundError, Table, UnavailableError
from lakelet.compact.progress import CompactionProgress
from lakelet.model.snapshot import CommitKind
from lakelet.spark.jobs import compact as compact_job
from lakelet.spark.jobs.compact import compact, rescale
from lakelet.spark.jobs.orphans import remove_orphan_files
from lakelet.spark.read.table_frame import table as spark_table
from lakelet.spark.write.table_write import write
from lakelet.storage.store import ObjectStore
from lakelet.testing.instrumented_stores import CountingStore
from tests.spark.faults import Fault, OnExecutors, opening_with

pytestmark = [pytest.mark.spark]

COLUMNS = [("id", "BIGINT NOT NULL"), ("dt", "STRING NOT NULL"), ("v", "STRING")]
TABLE = "d.t"


@pytest.fixture
def lake(tmp_path: Path) -> lakelet.Lake:
    lake = lakelet.connect(str(tmp_path / "wh"))
    lake.create_database("d")
    return lake


def keyed(lake: lakelet.Lake, **options: str) -> Table:
    """Two partitions with two buckets each; nothing is compacted by itself unless told."""
    given = {"bucket": "2", "write-only": "true", **{key.replace("_", "-"): text for key, text in options.items()}}
    return lake.create_table(TABLE, COLUMNS, primary_key=["id", "dt"], partitioned_by=["dt"], options=given)


def rows_of(first: int, last: int, value: str) -> list[dict[str, object]]:
    return [{"id": number, "dt": f"d{number % 2}", "v": f"{value}{number}"} for number in range(first, last)]


def filled(table: Table) -> dict[int, str]:
    """Six versions of some rows, and what is left of them."""
    for number in range(6):
        table.write(rows_of(number * 10, number * 10 + 40, f"{number}-"))
    table.delete([{"id": 0, "dt": "d0"}, {"id": 41, "dt": "d1"}])
    return shown(table)


def shown(table: Table) -> dict[int, str]:
    found = table.scan().to_arrow().to_pylist()
    assert len({row["id"] for row in found}) == len(found), "a row is there twice"
    return {row["id"]: row["v"] for row in found}


def unlisted(table: Table) -> set[str]:
    """Data files that no version names."""
    named = {file.name for snapshot in table.snapshots() for _, file in table.files(version=snapshot.id)}
    return {path.name for path in Path(table.location).glob("**/bucket-*/[!.]*")} - named


def frame(spark: SparkSession, first: int, last: int, value: str) -> DataFrame:
    return spark.range(first, last).selectExpr("id", "concat('d', id % 2) AS dt", f"concat('{value}', id) AS v")


def test_one_commit_for_all_buckets(spark: SparkSession, lake: lakelet.Lake) -> None:
    table = keyed(lake)
    expected = filled(table)
    told: list[CompactionProgress] = []
    made = compact(spark, lake.location, TABLE, full=True, progress=told.append)
    assert made is not None
    assert made.commit_kind is CommitKind.COMPACT
    assert made == table.latest_snapshot()
    assert shown(table) == expected
    assert [file.level for _, file in table.files()] == [5] * 4
    assert (told[-1].tasks_done, told[-1].rows_done) == (4, told[-1].rows)
    assert not unlisted(table)
    assert compact(spark, lake.location, TABLE, full=True) is None
    assert {row["id"]: row["v"] for row in spark_table(spark, lake.location, TABLE).collect()} == expected


def test_what_is_due_of_one_partition(spark: SparkSession, lake: lakelet.Lake) -> None:
    table = keyed(lake)
    expected = filled(table)
    assert compact(spark, lake.location, TABLE, partition={"dt": "d1"}) is not None
    levels = {path.split("/")[2]: file.level for path, file in table.files() if file.level}
    assert levels == {"dt=d1": 5}
    assert shown(table) == expected
    with pytest.raises(InvalidError, match="'v' is not a partition key"):
        compact(spark, lake.location, TABLE, partition={"v": "x"})
    with pytest.raises(NotFoundError):
        compact(spark, lake.location, "d.missing")


def test_append_tables(spark: SparkSession, lake: lakelet.Lake) -> None:
    table = lake.create_table(TABLE, COLUMNS, options={"write-only": "true"})
    for number in range(6):
        table.write(rows_of(number * 10, number * 10 + 10, ""))
    expected = shown(table)
    assert compact(spark, lake.location, TABLE, full=True) is not None
    assert len(table.files()) == 1
    assert shown(table) == expected


@pytest.mark.parametrize("options", [{"deletion_vectors.enabled": "true"}, {"merge_engine": "first-row"}, {}])
def test_a_write_compacts_on_executors(spark: SparkSession, lake: lakelet.Lake, options: dict[str, str]) -> None:
    given = {"bucket": "2", "num-sorted-run.compaction-trigger": "2"}
    given |= {key.replace("_", "-"): text for key, text in options.items()}
    table = lake.create_table(TABLE, COLUMNS, primary_key=["id", "dt"], partitioned_by=["dt"], options=given)
    model: dict[int, str] = {}
    for number in range(3):
        made = write(frame(spark, number * 20, number * 20 + 40, f"{number}-"), lake.location, TABLE, mode="upsert")
        fresh = {key: f"{number}-{key}" for key in range(number * 20, number * 20 + 40)}
        model = {**fresh, **model} if "merge_engine" in options else {**model, **fresh}
        assert made == table.latest_snapshot()
        assert shown(table) == model
    kinds = [snapshot.commit_kind for snapshot in table.snapshots()]
    assert CommitKind.COMPACT in kinds
    assert not unlisted(table)


@pytest.mark.parametrize("action", ["kill-worker", "unavailable"])
def test_a_task_that_fails_once_leaves_nothing(
    spark: SparkSession, lake: lakelet.Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    table = keyed(lake)
    expected = filled(table)
    (tmp_path / "seen").mkdir()
    fault = Fault(action, str(tmp_path / "seen"), 1)
    monkeypatch.setattr(compact_job, "open_table", opening_with(lambda store: OnExecutors(store, fault)))
    assert compact(spark, lake.location, TABLE, full=True) is not None
    assert fault.count() == 1
    assert shown(table) == expected
    assert not unlisted(table)


def test_a_task_that_always_fails_changes_nothing(
    spark: SparkSession, lake: lakelet.Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = keyed(lake)
    expected, before = filled(table), table.latest_snapshot()
    (tmp_path / "seen").mkdir()
    fault = Fault("full-disk", str(tmp_path / "seen"), 0)
    monkeypatch.setattr(compact_job, "open_table", opening_with(lambda store: OnExecutors(store, fault)))
    with pytest.raises(UnavailableError, match="No space left"):
        compact(spark, lake.location, TABLE, full=True)
    assert table.latest_snapshot() == before
    assert shown(table) == expected
    assert not unlisted(table)


class _Between(CountingStore):
    """Does something once, right before the driver commits."""

    def __init__(self, store: ObjectStore, action: Callable[[], object]) -> None:
        super().__init__(store)
        self._action: Callable[[], object] | None = action

    def __reduce__(self) -> tuple[object, ...]:
        return _itself, (self._store,)

    def put(self, path: str, data: bytes, *, deferred: bool = False) -> None:
        action, self._action = self._action, None
        if action is not None and "/manifest/" in path:
            action()
        else:
            self._action = action
        super().put(path, data, deferred=deferred)


def _itself(store: ObjectStore) -> ObjectStore:
    return store


@pytest.mark.deep
def test_writers_and_other_compactions_meanwhile(
    spark: SparkSession, lake: lakelet.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = keyed(lake)
    expected = filled(table)

    def meanwhile() -> None:
        table.write(rows_of(0, 5, "late-"))
        table.compact(full=True, partition={"dt": "d0"})

    monkeypatch.setattr(compact_job, "open_table", opening_with(lambda store: _Between(store, meanwhile)))
    compact(spark, lake.location, TABLE, full=True)
    assert shown(table) == expected | {number: f"late-{number}" for number in range(5)}
    assert not unlisted(table)


def test_a_table_made_anew_meanwhile(spark: SparkSession, lake: lakelet.Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(keyed(lake))

    def meanwhile() -> None:
        lake.drop_table(TABLE)
        filled(keyed(lake))

    monkeypatch.setattr(compact_job, "open_table", opening_with(lambda store: _Between(store, meanwhile)))
    compact(spark, lake.location, TABLE, full=True)
    assert len(shown(lake.table(TABLE))) == 88
    assert not unlisted(lake.table(TABLE))


def test_orphans_are_found_and_removed_by_executors(spark: SparkSession, lake: lakelet.Lake) -> None:
    table = keyed(lake)
    expected = filled(table)
    stray = Path(table.location) / "dt=d0" / "bucket-1" / "data-stray-0.parquet"
    stray.write_bytes(b"nobody's")
    os.utime(stray, (1, 1))
    found = remove_orphan_files(spark, lake.location, TABLE, "0 s", dry_run=True)
    assert (found.count, found.bytes) == (1, 8)
    assert found.paths[0].endswith("dt=d0/bucket-1/data-stray-0.parquet")
    assert stray.exists()
    assert remove_orphan_files(spark, lake.location, TABLE, "0 s").count == 1
    assert not stray.exists()
    assert shown(table) == expected


def test_another_number_of_buckets(spark: SparkSession, lake: lakelet.Lake) -> None:
    table = keyed(lake)
    expected = filled(table)
    made = rescale(spark, lake.location, TABLE, 3)
    assert made is not None
    assert table.options["bucket"] == "3"
    assert shown(table) == expected
    assert {path.split("/")[3] for path, _ in table.files()} == {"bucket-0", "bucket-1", "bucket-2"}
    assert not unlisted(table)
    table.write(rows_of(0, 3, "later-"))
    assert shown(table) == expected | {number: f"later-{number}" for number in range(3)}
    assert rescale(spark, lake.location, TABLE, 3) is None


def test_rows_that_waited_get_buckets(spark: SparkSession, lake: lakelet.Lake) -> None:
    table = keyed(lake, bucket="-2")
    expected = {number: f"{min(number // 10, 2)}-{number}" for number in range(60)}
    for number in range(3):
        table.write(rows_of(number * 10, number * 10 + 40, f"{number}-"))
    assert shown(table) == {}
    made = compact(spark, lake.location, TABLE)
    assert made is not None
    assert shown(table) == expected
    assert not unlisted(table)
    assert compact(spark, lake.location, TABLE) is None


def test_append_tables_are_clustered_by_executors(spark: SparkSession, lake: lakelet.Lake) -> None:
    """A task for each partition, one COMPACT commit; conditions on every column of the order read fewer files."""
    options = {"write-only": "true", "target-file-size": "2 kb", "file.block-size": "1 kb"}
    columns = [("p", "STRING"), ("a b", "INT"), ("y", "BIGINT")]
    table = lake.create_table(TABLE, columns, partitioned_by=["p"], options=options)
    rows = spark.range(8000).selectExpr(
        "concat('p', id % 2) p", "cast(id * 7919 % 1009 AS int) `a b`", "id * 104729 % 8009 y"
    )
    write(rows, lake.location, TABLE)
    before = sorted(map(tuple, spark_table(spark, lake.location, TABLE).collect()))
    snapshot = compact(spark, lake.location, TABLE, order_strategy="hilbert", order_by=["a b", "y"])
    assert snapshot is not None
    assert snapshot.commit_kind is CommitKind.COMPACT
    assert sorted(map(tuple, spark_table(spark, lake.location, TABLE).collect())) == before
    assert len(table.files()) >= 20
    for where in ("y < 400", '"a b" BETWEEN 10 AND 60'):
        plan = table.scan(where=where).plan()
        assert sum(len(split.files) for split in plan.splits) < plan.files_total / 2
    with pytest.raises(InvalidError, match="no such column"):
        compact(spark, lake.location, TABLE, order_strategy="order", order_by=["A B"])
