"""Writers at once on one Iceberg table: threads with one catalog, and processes with one each."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from lakelet.errors import ConflictError
from lakelet.iceberg.table import IcebergTable
from tests.unit.iceberg.commit.tables import begin, check_sums, new_catalog, new_table, rows_of, write

COLUMNS = pa.schema([("id", pa.int64()), ("day", pa.int32())])
PATIENT = {"commit.retry.num-retries": "100", "commit.retry.min-wait-ms": "5", "commit.retry.max-wait-ms": "100"}
NAME = "shop.orders"


def ids(table: IcebergTable) -> list[object]:
    return sorted(one["id"] for one in rows_of(table))  # type: ignore[type-var]


def test_threads_append(tmp_path: Path) -> None:
    catalog = new_catalog(tmp_path)
    table = new_table(catalog, COLUMNS, {"day": "identity"}, properties=PATIENT)

    def writer(number: int) -> None:
        for turn in range(5):
            write(catalog.table(NAME), [{"id": number * 100 + turn, "day": turn % 2}])

    _at_once([lambda number=number: writer(number) for number in range(4)])  # type: ignore[misc]
    assert ids(table) == sorted(number * 100 + turn for number in range(4) for turn in range(5))
    assert len(table.reloaded().library.snapshots()) == 20
    check_sums(table)


def test_processes_append(tmp_path: Path) -> None:
    catalog = new_catalog(tmp_path)
    table = new_table(catalog, COLUMNS, {"day": "identity"}, properties=PATIENT)
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_append, args=(tmp_path, number)) for number in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(600)
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert ids(table) == sorted(number * 100 + turn for number in range(2) for turn in range(6))
    check_sums(table)


def test_overwrites_of_the_same_partition_do_not_both_stand(tmp_path: Path) -> None:
    catalog = new_catalog(tmp_path)
    table = new_table(catalog, COLUMNS, {"day": "identity"}, properties=PATIENT)
    write(table, [{"id": 0, "day": 1}, {"id": 1, "day": 2}])
    inserts = [begin(table, [{"id": 10 + number, "day": 1}], "overwrite_partitions") for number in range(3)]
    conflicts: list[ConflictError] = []

    def finish(number: int) -> None:
        try:
            inserts[number].finish_insert()
        except ConflictError as error:
            conflicts.append(error)

    _at_once([lambda number=number: finish(number) for number in range(3)])  # type: ignore[misc]
    assert len(conflicts) == 2
    found = ids(table)
    assert len(found) == 2
    assert found[0] == 1
    check_sums(table)


def test_overwrites_of_other_partitions_all_stand(tmp_path: Path) -> None:
    catalog = new_catalog(tmp_path)
    table = new_table(catalog, COLUMNS, {"day": "identity"}, properties=PATIENT)
    write(table, [{"id": number, "day": number} for number in range(4)])
    inserts = [begin(table, [{"id": 10 + number, "day": number}], "overwrite_partitions") for number in range(3)]
    _at_once([one.finish_insert for one in inserts])
    assert ids(table) == [3, 10, 11, 12]
    check_sums(table)


def _append(folder: Path, number: int) -> None:
    table = new_catalog(folder).table(NAME)
    for turn in range(6):
        write(table, [{"id": number * 100 + turn, "day": turn}])


def _at_once(tasks: list[Callable[[], object]]) -> None:
    errors: list[BaseException] = []

    def run(task: Callable[[], object]) -> None:
        try:
            task()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(task,)) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
