"""Lakelet's side of each measurement."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median
from typing import Any

# Loaded before the clock starts, as the peers load their scanners and predicates.
import pyarrow.dataset  # noqa: F401

import lakelet

# What opening and planning need is loaded before the clock starts, as the peers' modules are; `import lakelet` alone does not.
import lakelet.catalog.connect
import lakelet.catalog.metadata_cache.open
import lakelet.predicate.where
import lakelet.scan.plan
import lakelet.table.table
from benchmarks.append.rows import SCHEMA, batches, table
from benchmarks.contender import serve, timed

TABLE = "bench.rows"


def write(rows: int, folder: str) -> dict[str, Any]:
    """A new table's first write: files, statistics, commit; every file and folder is on the disk when it returns."""
    data = table(rows)
    lake = lakelet.connect(folder)
    lake.create_database("bench")
    target = lake.create_table(TABLE, SCHEMA)
    with timed() as timer:
        target.write(data)
    files = target.files()
    paths = [str(Path(folder, path)) for path, _ in files]
    return {**timer.taken, "files": paths, "bytes": sum(file.size for _, file in files)}


def read(folder: str) -> dict[str, Any]:
    """All rows of the table, from opening it."""
    with timed() as timer:
        data = lakelet.connect(folder).table(TABLE).scan().to_arrow()
    return {**timer.taken, "rows": data.num_rows}


def write_stream(rows: int, folder: str) -> dict[str, Any]:
    """One write of batches that are made as it asks for them."""
    lake = lakelet.connect(folder)
    lake.create_database("bench")
    target = lake.create_table(TABLE, SCHEMA)
    with timed() as timer:
        target.write(batches(rows))
    return {**timer.taken, "files": len(target.files())}


def read_stream(folder: str) -> dict[str, Any]:
    """All rows, batch by batch, none kept."""
    with timed() as timer:
        rows = sum(batch.num_rows for batch in lakelet.connect(folder).table(TABLE).scan().to_batches())
    return {**timer.taken, "rows": rows}


def commits(folder: str, count: int, windows: list[int], width: int) -> dict[str, Any]:
    """Appends of one row each; the median time of a write in the `width` writes that end at each window."""
    lake = lakelet.connect(folder)
    lake.create_database("bench")
    target = lake.create_table(TABLE, SCHEMA)
    row = table(1)
    times: list[float] = []
    for _ in range(count):
        begin = time.perf_counter()
        target.write(row)
        times.append(time.perf_counter() - begin)
    return {
        "seconds": sum(times),
        "windows": {str(end): median(times[end - width : end]) for end in windows},
        "means": {str(end): sum(times[end - width : end]) / width for end in windows},
        "rows": target.scan().count(),
    }


def plan(folder: str, where: str) -> dict[str, Any]:
    """The plan of a scan with a filter, from opening the table."""
    with timed() as timer:
        found = lakelet.connect(folder).table(TABLE).scan(where=where).plan()
    return {**timer.taken, "files": found.files, "manifests_read": found.manifests_read}


if __name__ == "__main__":
    serve(write, read, write_stream, read_stream, commits, plan)
