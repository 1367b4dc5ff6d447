"""Faults of tasks, drivers and catalogs during an Iceberg insert: the rows are there once, or nothing changed."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType
from pyspark.sql import DataFrame, SparkSession

import lakelet.spark as ls
from lakelet.errors import ConflictError, LakeletError, NotFoundError, UnavailableError
from lakelet.iceberg.transaction import IcebergTransaction
from lakelet.testing.instrumented_stores import SimulatedCrash
from tests.spark.faults import Fault
from tests.spark.iceberg_lakes import IcebergLake, after_the_tasks, tasks_suffer
from tests.unit.iceberg.ice_tables import spec_of

pytestmark = [pytest.mark.spark]

SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "v", StringType()))
ROWS = 40


@pytest.fixture
def lake(tmp_path: Path) -> IcebergLake:
    made = IcebergLake.new(tmp_path / "wh")
    made.create(SCHEMA, spec_of((1, BucketTransform(4), "id_bucket")))
    return made


@pytest.fixture
def fault(tmp_path: Path) -> Callable[[str, int], Fault]:
    (tmp_path / "seen").mkdir()
    return lambda action, times: Fault(action, str(tmp_path / "seen"), times)


def frame(spark: SparkSession, value: str = "new") -> DataFrame:
    return spark.range(0, ROWS, 1, 2).selectExpr("id", f"'{value}' AS v")


def values(lake: IcebergLake) -> Counter[str]:
    return Counter(lake.table().scan().to_arrow().column("v").to_pylist())


@pytest.mark.sampled(at_most=1)
@pytest.mark.parametrize("action", ["kill-worker", "unavailable"])
def test_a_task_that_fails_once_is_repeated_and_leaves_nothing(
    spark: SparkSession,
    lake: IcebergLake,
    fault: Callable[[str, int], Fault],
    monkeypatch: pytest.MonkeyPatch,
    action: str,
) -> None:
    struck = fault(action, 1)
    tasks_suffer(monkeypatch, struck)
    made = ls.insert_iceberg(frame(spark), "iceberg", "db.t", warehouse=lake.location, parallelism=2)
    assert made is not None
    assert struck.count() == 1
    assert made.added_rows == ROWS
    assert values(lake) == {"new": ROWS}
    assert lake.unlisted() == set()


@pytest.mark.sampled(at_most=1)
@pytest.mark.parametrize("action", ["kill-worker", "unavailable", "full-disk"])
def test_a_task_that_always_fails_is_one_clear_error_and_no_change(
    spark: SparkSession,
    lake: IcebergLake,
    fault: Callable[[str, int], Fault],
    monkeypatch: pytest.MonkeyPatch,
    action: str,
) -> None:
    ls.insert_iceberg(frame(spark, "old"), "iceberg", "db.t", warehouse=lake.location)
    tasks_suffer(monkeypatch, fault(action, 0))
    with pytest.raises(LakeletError) as caught:
        ls.insert_iceberg(frame(spark), "iceberg", "db.t", "overwrite", warehouse=lake.location, parallelism=1)
    message = str(caught.value)
    assert len(message) < 700
    assert "\tat " not in message
    assert "iceberg.db.t" in message
    assert values(lake) == {"old": ROWS}
    assert lake.unlisted() == set()


@pytest.mark.sampled(at_most=1)
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_driver_lost_around_its_commit_is_run_again(
    spark: SparkSession, lake: IcebergLake, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    finish = IcebergTransaction.finish_insert

    def crash(self: IcebergTransaction) -> None:
        if moment == "after":
            finish(self)
        raise SimulatedCrash(moment)

    with monkeypatch.context() as patch:
        patch.setattr(IcebergTransaction, "finish_insert", crash)
        with pytest.raises(SimulatedCrash):
            ls.insert_iceberg(frame(spark), "iceberg", "db.t", commit_id="job-7", warehouse=lake.location)
    assert values(lake) == ({"new": ROWS} if moment == "after" else {})
    made = ls.insert_iceberg(frame(spark), "iceberg", "db.t", commit_id="job-7", warehouse=lake.location)
    assert made is not None
    assert values(lake) == {"new": ROWS}
    assert len(lake.table().snapshots()) == 1


def test_a_spec_that_changed_in_flight(spark: SparkSession, lake: IcebergLake, monkeypatch: pytest.MonkeyPatch) -> None:
    def change() -> None:
        with lake.table().update_spec() as update:
            update.add_field("v", IdentityTransform(), "v")

    after_the_tasks(monkeypatch, change)
    with pytest.raises(ConflictError, match="spec"):
        ls.insert_iceberg(frame(spark), "iceberg", "db.t", warehouse=lake.location)
    assert values(lake) == {}
    assert lake.unlisted() == set()


def test_a_replaced_partition_that_changed_in_flight(
    spark: SparkSession, lake: IcebergLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    ls.insert_iceberg(frame(spark, "old"), "iceberg", "db.t", warehouse=lake.location)
    with monkeypatch.context() as patch:
        other = lake.table()
        after_the_tasks(patch, lambda: other.append(frame(spark, "others").limit(3).toArrow()))
        with pytest.raises(ConflictError):
            ls.insert_iceberg(frame(spark), "iceberg", "db.t", "overwrite", warehouse=lake.location)
    assert values(lake) == {"old": ROWS, "others": 3}
    assert lake.unlisted() == set()
    with monkeypatch.context() as patch:
        again = lake.table()
        after_the_tasks(patch, lambda: again.append(frame(spark, "others").limit(3).toArrow()))
        ls.insert_iceberg(frame(spark), "iceberg", "db.t", warehouse=lake.location)
    assert values(lake) == {"old": ROWS, "others": 6, "new": ROWS}


def test_a_table_dropped_in_flight(spark: SparkSession, lake: IcebergLake, monkeypatch: pytest.MonkeyPatch) -> None:
    after_the_tasks(monkeypatch, lambda: lake.lake.catalogs.open("iceberg").drop_table("db.t"))
    with pytest.raises(NotFoundError, match=r"db\.t"):
        ls.insert_iceberg(frame(spark), "iceberg", "db.t", warehouse=lake.location)
    assert list(Path(lake.location).rglob("data/**/*.parquet")) == []


def test_a_catalog_that_goes_down_in_flight(
    spark: SparkSession, lake: IcebergLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = Path(lake.location, "iceberg", "catalog.db")
    kept = database.read_bytes()
    after_the_tasks(monkeypatch, lambda: database.write_bytes(b"no database" * 1000))
    with pytest.raises(UnavailableError, match=r"db\.t"):
        ls.insert_iceberg(frame(spark), "iceberg", "db.t", warehouse=lake.location)
    database.write_bytes(kept)
    assert values(lake) == {}
    assert lake.unlisted() == set()


def test_secrets_are_in_no_plan_and_no_error(
    spark: SparkSession, lake: IcebergLake, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    properties = {
        "type": "sql",
        "uri": f"sqlite:///{lake.location}/iceberg/catalog.db",
        "warehouse": f"file://{lake.location}/iceberg",
        "name": "iceberg",
        "s3.secret-access-key": "very-secret",
    }
    ls.insert_iceberg(frame(spark), properties, "db.t")
    read = ls.iceberg_table(spark, properties, "db.t")
    read.explain(extended=True)
    assert "very-secret" not in "".join(capfd.readouterr())
    after_the_tasks(monkeypatch, lambda: lake.lake.catalogs.open("iceberg").drop_table("db.t"))
    with pytest.raises(NotFoundError) as caught:
        ls.insert_iceberg(frame(spark), properties, "db.t")
    assert "very-secret" not in str(caught.value)
