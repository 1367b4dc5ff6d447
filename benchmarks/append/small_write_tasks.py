"""The task of `measure_small_write`: writes of one row, each durable before the next.

The contenders take turns write by write in one process, so that what the disk and the machine do at any moment is the same for
all of them.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from statistics import mean, median
from typing import Any

import pyarrow as pa

import lakelet
from benchmarks.contender import serve

_WARM = 5


def turns(folder: str, count: int) -> dict[str, Any]:
    """The median and the mean of each contender's writes, after a few that load code."""
    contenders = {**_lakelets(Path(folder, "lake")), **_sqlites(Path(folder))}
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(_WARM + count):
        for name, write in contenders.items():
            begin = time.perf_counter()
            write(number)
            taken[name].append(time.perf_counter() - begin)
    counted = {name: times[_WARM:] for name, times in taken.items()}
    return {
        "seconds": sum(sum(times) for times in counted.values()),
        "contenders": {
            name: {"seconds": median(times), "mean_seconds": mean(times)} for name, times in counted.items()
        },
    }


def _lakelets(folder: Path) -> dict[str, Callable[[int], object]]:
    lake = lakelet.connect(str(folder))
    lake.create_database("bench")
    columns = [("id", "BIGINT NOT NULL"), ("v", "STRING")]
    written, inserted = (lake.create_table(f"bench.{name}", columns) for name in ("written", "inserted"))
    upserted = lake.create_table("bench.upserted", columns, primary_key=["id"], options={"bucket": "1"})

    def row(number: int) -> pa.Table:
        return pa.table({"id": pa.array([number], pa.int64()), "v": ["x"]})

    return {
        "write": lambda number: written.write(row(number)),
        "insert": lambda number: lake.sql(f"INSERT INTO {inserted.name} VALUES ({number}, 'x')"),
        "upsert": lambda number: upserted.write(row(number)),
    }


def _sqlites(folder: Path) -> dict[str, Callable[[int], object]]:
    """Inserts of one row, each a transaction of its own with `synchronous=FULL`."""
    found: dict[str, Callable[[int], object]] = {}
    for journal in ("DELETE", "WAL"):
        database = sqlite3.connect(str(folder / f"{journal}.db"), isolation_level=None)
        database.execute(f"PRAGMA journal_mode={journal}")
        database.execute("PRAGMA synchronous=FULL")
        database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)")
        found[journal] = lambda number, into=database: into.execute("INSERT INTO t VALUES (?, ?)", (number, "x"))  # type: ignore[misc]
    return found


if __name__ == "__main__":
    serve(turns)
