"""Compaction of append tables in tasks that travel as bytes."""

from pathlib import Path

import pyarrow as pa
import pytest

import lakelet
from lakelet.errors import CorruptionError, InvalidError, NotFoundError
from lakelet.operations.append_tasks import planned_tasks, run_task
from lakelet.table import Table

OPTIONS = {"write-only": "true", "bucket": "-1", "compaction.min.file-num": "2"}


@pytest.fixture
def lake(tmp_path: Path) -> lakelet.Lake:
    made = lakelet.connect(tmp_path / "lake")
    made.create_database("shop")
    return made


def filled(lake: lakelet.Lake, name: str = "shop.orders", **options: str) -> Table:
    columns = [("day", "INT"), ("n", "INT")]
    table = lake.create_table(name, columns, partitioned_by=["day"], options={**OPTIONS, **options})
    for number in range(8):
        table.write(pa.table({"day": pa.array([number % 2], pa.int32()), "n": pa.array([number], pa.int32())}))
    return table


def numbers(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow().column("n").to_pylist())


def test_tasks_are_run_in_any_order_and_once(lake: lakelet.Lake) -> None:
    table = filled(lake)
    tasks = planned_tasks(table)
    assert len(tasks) == 2
    made = [run_task(lake, task) for task in reversed(tasks)]
    assert None not in made
    assert (len(table.files()), numbers(table)) == (2, list(range(8)))
    assert [run_task(lake, task) for task in tasks] == [None, None]
    assert planned_tasks(table) == []


def test_deletions_after_the_plan_hold(lake: lakelet.Lake) -> None:
    table = filled(lake, **{"deletion-vectors.enabled": "true"})
    tasks = planned_tasks(table)
    table.delete(where="n = 3 OR n = 4")
    for task in tasks:
        run_task(lake, task)
    assert numbers(table) == [0, 1, 2, 5, 6, 7]


def test_a_task_whose_files_were_dropped_does_nothing(lake: lakelet.Lake) -> None:
    table = filled(lake)
    tasks = planned_tasks(table)
    table.delete(where="day = 1")
    assert sum(run_task(lake, task) is None for task in tasks) == 1
    assert numbers(table) == [0, 2, 4, 6]


def test_a_task_that_is_cancelled_changes_nothing(lake: lakelet.Lake) -> None:
    table = filled(lake)
    assert run_task(lake, planned_tasks(table)[0], lambda: True) is None
    assert len(table.files()) == 8


def test_other_tables_have_no_tasks_and_other_bytes_are_none(lake: lakelet.Lake) -> None:
    table = filled(lake)
    (task, _) = planned_tasks(table)
    keyed = lake.create_table("shop.keyed", [("k", "INT")], primary_key=["k"], options={"bucket": "1"})
    keyed.write(pa.table({"k": pa.array([1], pa.int32())}))
    assert planned_tasks(keyed) == []
    assert planned_tasks(lake.create_table("shop.empty", [("k", "INT")])) == []
    lake.drop_table("shop.orders")
    with pytest.raises(NotFoundError):
        run_task(lake, task)
    with pytest.raises(CorruptionError):
        run_task(lake, task[:-1])
    with pytest.raises(InvalidError, match="version"):
        run_task(lake, b"\0\0\0\7" + task[4:])
    bucketed = {"bucket": "2", "bucket-key": "n"}
    filled(lake, **bucketed)
    with pytest.raises(InvalidError, match="without buckets"):
        run_task(lake, task)
