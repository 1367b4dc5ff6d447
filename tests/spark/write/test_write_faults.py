"""Faults of tasks and drivers: the rows are right and there once, or there is a clear error and nothing changed."""

import functools
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
from pyspark.sql import DataFrame, SparkSession

import lakelet
from lakelet import LakeletError, Table
from lakelet.errors import NotFoundError
from lakelet.spark.write.table_write import write
from lakelet.spark.write.write_request import DRIVER_ROWS
from lakelet.storage.disk.local_store import LocalStore
from lakelet.testing.instrumented_stores import CountingStore, CrashStore, SimulatedCrash
from tests.spark.faults import Fault, OnDriver, OnExecutors, writes_through
from tests.spark.java import spark_environment
from tests.spark.programs import killed_driver

pytestmark = [pytest.mark.spark]

COLUMNS = [("id", "BIGINT NOT NULL"), ("v", "STRING")]
ROWS = 40
T = TypeVar("T")


@pytest.fixture
def lake(tmp_path: Path) -> lakelet.Lake:
    lake = lakelet.connect(str(tmp_path / "wh"))
    lake.create_database("d")
    return lake


@pytest.fixture
def fault(tmp_path: Path) -> Callable[[str, int], Fault]:
    (tmp_path / "seen").mkdir()
    return lambda action, times: Fault(action, str(tmp_path / "seen"), times)


def keyed(lake: lakelet.Lake) -> Table:
    """Four buckets, so that a task which dies after its first file leaves one behind."""
    return lake.create_table("d.t", COLUMNS, primary_key=["id"], options={"bucket": "4"})


def appended(lake: lakelet.Lake) -> Table:
    return lake.create_table("d.t", COLUMNS)


def frame(spark: SparkSession, value: str = "new") -> DataFrame:
    return spark.range(0, ROWS, 1, 2).selectExpr("id", f"'{value}' AS v")


def rows(table: Table) -> dict[int, str]:
    found = table.scan().to_arrow().to_pylist()
    assert len({row["id"] for row in found}) == len(found), "a row is there twice"
    return {row["id"]: row["v"] for row in found}


def unlisted(table: Table) -> set[str]:
    """The data files that the newest version does not have; a killed process may leave hidden temporaries besides."""
    listed = {file.name for split in table.scan().plan().splits for file in split.files}
    return {path.name for path in Path(table.location).glob("**/bucket-*/[!.]*")} - listed


@pytest.mark.sampled(at_most=1)
@pytest.mark.parametrize(
    ("create", "action"), [(keyed, "kill-worker"), (keyed, "unavailable"), (appended, "kill-worker")]
)
def test_a_task_that_fails_once_is_repeated_and_leaves_nothing(
    spark: SparkSession,
    lake: lakelet.Lake,
    fault: Callable[[str, int], Fault],
    monkeypatch: pytest.MonkeyPatch,
    create: Callable[[lakelet.Lake], Table],
    action: str,
) -> None:
    table = create(lake)
    struck = fault(action, 1)
    writes_through(monkeypatch, lambda store: OnExecutors(store, struck))
    snapshot = write(frame(spark), lake.location, "d.t", parallelism=1, driver_rows=0)
    assert struck.count() == 1
    assert snapshot is not None
    assert snapshot.total_record_count == ROWS
    assert [found.id for found in table.snapshots()] == [1]
    assert rows(table) == dict.fromkeys(range(ROWS), "new")
    assert unlisted(table) == set()


@pytest.mark.sampled(at_most=1)
@pytest.mark.parametrize("action", ["kill-worker", "full-disk"])
def test_a_task_that_always_fails_is_one_clear_error_and_no_change(
    spark: SparkSession,
    lake: lakelet.Lake,
    fault: Callable[[str, int], Fault],
    monkeypatch: pytest.MonkeyPatch,
    action: str,
) -> None:
    table = keyed(lake)
    write(frame(spark, "old"), lake.location, "d.t")
    struck = fault(action, 0)
    writes_through(monkeypatch, lambda store: OnExecutors(store, struck))
    with pytest.raises(LakeletError) as caught:
        write(frame(spark), lake.location, "d.t", parallelism=1, driver_rows=0)
    message = str(caught.value)
    assert struck.count() >= 1
    assert len(message) < 700
    assert "\tat " not in message
    assert "d.db/t" in message
    if action == "full-disk":
        assert "No space left on device" in message
    assert caught.value.__cause__ is None or "Py4J" not in type(caught.value.__cause__).__name__
    assert [found.id for found in table.snapshots()] == [1]
    assert rows(table) == dict.fromkeys(range(ROWS), "old")
    assert unlisted(table) == set()


class DropWhenWritten(CountingStore):
    """Somebody drops the table when the last task has ended."""

    def _around(self, call: str, path: str, action: Callable[[], T]) -> T:
        if after_the_last_task(call, path):
            lakelet.connect(self.location).drop_table("d.t", if_exists=True)
        return super()._around(call, path, action)


def test_a_table_dropped_meanwhile_is_not_made_again(
    spark: SparkSession, lake: lakelet.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyed(lake)
    writes_through(monkeypatch, lambda store: OnDriver(DropWhenWritten(store), store))
    with pytest.raises((NotFoundError, lakelet.ConflictError), match=r"d\.db/t"):
        write(frame(spark), lake.location, "d.t", driver_rows=0)
    assert lake.tables("d") == []
    assert [path for path in Path(lake.location, "d.db").rglob("*") if path.is_file()] == []


def after_the_last_task(call: str, path: str) -> bool:
    """The first thing a driver does then is to look for what other attempts left."""
    return call == "list_folder" and "/bucket-" in path


def test_a_driver_that_dies_at_any_step_can_be_run_again(
    spark: SparkSession, lake: lakelet.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every storage call from the end of the last task to the end of the commit; the job is run again after each."""
    keyed(lake)
    write(frame(spark, "old"), lake.location, "d.t")
    start = Path(lake.location, "d.db", "t")

    def table_for(call: int) -> str:
        shutil.copytree(start, start.parent / f"t{call}")
        return f"d.t{call}"

    def run(name: str) -> None:
        write(frame(spark), lake.location, name, parallelism=1, driver_rows=0, commit_user="job", commit_identifier=7)

    counting = CountingStore(LocalStore(lake.location))
    writes_through(monkeypatch, lambda store: OnDriver(counting, store))
    run(table_for(0))
    log = counting.log
    first = next(number for number, made in enumerate(log, start=1) if after_the_last_task(*made))
    commit = log.index(("put_if_absent", "d.db/t0/snapshot/snapshot-2")) + 1
    assert first < commit < len(log)
    for call in range(first, len(log) + 1):
        name = table_for(call)
        crashing = CrashStore(LocalStore(lake.location), crash_at=call)
        writes_through(monkeypatch, functools.partial(OnDriver, crashing))
        with pytest.raises(SimulatedCrash):
            run(name)
        where = f"crash before call {call}, {crashing.log[call - 1]}"
        table = lake.table(name)
        assert rows(table) == dict.fromkeys(range(ROWS), "new" if call > commit else "old"), where
        writes_through(monkeypatch, lambda store: store)
        run(name)
        assert rows(table) == dict.fromkeys(range(ROWS), "new"), where
        assert [snapshot.id for snapshot in table.snapshots()] == [1, 2], where


def test_a_driver_that_dies_with_the_rows_of_a_small_frame_can_be_run_again(
    spark: SparkSession, lake: lakelet.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At its first file, at its last storage call before the commit, at the commit and right after it."""
    table = keyed(lake)
    write(frame(spark, "old"), lake.location, "d.t")
    start = Path(lake.location, "d.db", "t")

    def table_for(call: int) -> str:
        shutil.copytree(start, start.parent / f"t{call}")
        return f"d.t{call}"

    def run(name: str) -> None:
        write(frame(spark), lake.location, name, commit_user="job", commit_identifier=7)

    counting = CountingStore(LocalStore(lake.location))
    writes_through(monkeypatch, lambda store: OnDriver(counting, store))
    run(table_for(0))
    log = counting.log
    commit = log.index(("put_if_absent", "d.db/t0/snapshot/snapshot-2")) + 1
    first = next(number for number, (_, path) in enumerate(log, start=1) if "/bucket-" in path)
    assert first < commit < len(log)
    for call in (first, commit - 1, commit, commit + 1):
        name = table_for(call)
        writes_through(monkeypatch, functools.partial(OnDriver, CrashStore(LocalStore(lake.location), crash_at=call)))
        with pytest.raises(SimulatedCrash):
            run(name)
        table = lake.table(name)
        assert rows(table) == dict.fromkeys(range(ROWS), "new" if call > commit else "old"), log[call - 1]
        writes_through(monkeypatch, lambda store: store)
        run(name)
        assert rows(table) == dict.fromkeys(range(ROWS), "new"), log[call - 1]
        assert [snapshot.id for snapshot in table.snapshots()] == [1, 2], log[call - 1]


@pytest.mark.sampled(at_most=1)
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("driver_rows", [0, DRIVER_ROWS])
def test_a_driver_killed_around_its_commit_is_run_again(
    spark: SparkSession, lake: lakelet.Lake, java: str, driver_rows: int, moment: str
) -> None:
    table = keyed(lake)
    command = [sys.executable, "-m", killed_driver.__name__, lake.location, "d.t", moment, str(driver_rows)]
    killed = subprocess.run(command, env={**os.environ, **spark_environment(java)}, capture_output=True, timeout=1500)
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-2000:]
    assert len(table.snapshots()) == (moment == "after")
    snapshot = write(frame(spark), lake.location, "d.t", commit_user="job", commit_identifier=7)
    assert snapshot is not None
    assert [found.id for found in table.snapshots()] == [1]
    assert rows(table) == dict.fromkeys(range(ROWS), "new")
