"""Lakelet's side of the measurements of primary-key tables, and the tables that peers read."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from statistics import median, quantiles
from typing import Any

# Loaded before the clock starts, as the peers load their scanners.
import pyarrow.dataset  # noqa: F401

import lakelet
from benchmarks.contender import repeated, serve, timed
from benchmarks.keyed.keyed_rows import KEYS, SCHEMA, half_new_ids, load_ids, rows_of, scattered, update_ids
from lakelet.table import Table
from lakelet.table.read.kept_lookup import THREAD_NAME

TABLE = "bench.keyed"


def make(
    folder: str,
    key: str,
    buckets: int,
    rows: int,
    upserts: int,
    upsert_rows: int,
    options: dict[str, str] | None = None,
) -> dict[str, Any]:
    """A table of one load and some upserts of known keys, each a sorted run of every bucket."""
    target = _create(folder, key, buckets, options)
    target.write(rows_of(load_ids(rows), 0))
    for version in range(1, upserts + 1):
        target.write(rows_of(update_ids(rows, upsert_rows, version), version))
    files = target.files()
    return {"paths": [str(Path(folder, path)) for path, _ in files], "stored_rows": sum(f.row_count for _, f in files)}


def read(folder: str, columns: list[str] | None, ordered: bool, repeats: int) -> dict[str, Any]:
    """The rows of the table, from opening it."""
    counts: list[int] = []
    taken = repeated(lambda _: counts.append(_open(folder).scan(columns, ordered=ordered).to_arrow().num_rows), repeats)
    return {**taken, "rows": counts[-1]}


def read_again(folder: str, columns: list[str] | None, repeats: int) -> dict[str, Any]:
    """The rows of the table, again and again by one lake."""
    target = _open(folder)
    counts: list[int] = []
    taken = repeated(lambda _: counts.append(target.scan(columns).to_arrow().num_rows), repeats)
    return {**taken, "rows": counts[-1]}


def read_stream(folder: str, columns: list[str] | None, repeats: int) -> dict[str, Any]:
    """The same, batch by batch, none kept."""
    counts: list[int] = []
    taken = repeated(
        lambda _: counts.append(sum(batch.num_rows for batch in _open(folder).scan(columns).to_batches())), repeats
    )
    return {**taken, "rows": counts[-1]}


def write(rows: int, key: str, buckets: int, folder: str, repeats: int) -> dict[str, Any]:
    """The first write of a new table: sort, files, statistics, commit."""
    data = rows_of(load_ids(rows), 0)
    tables = [_create(f"{folder}/{number}", key, buckets) for number in range(repeats + 1)]
    return repeated(lambda number: tables[number].write(data), repeats)


def write_stream(rows: int, upserts: int, upsert_rows: int, folder: str) -> dict[str, Any]:
    """One bucket by a load and some upserts whose rows are made as they are asked for."""
    target = _create(folder, "BIGINT", 1)
    with timed() as timer:
        target.write(scattered(rows, rows, 0))
        for version in range(1, upserts + 1):
            target.write(scattered(rows, upsert_rows, version))
    files = target.files()
    return {**timer.taken, "files": len(files), "stored_rows": sum(file.row_count for _, file in files)}


def load(folder: str, buckets: int, rows: int, options: dict[str, str] | None = None) -> dict[str, Any]:
    """A table of one load; -1 is for dynamic buckets."""
    target = _create(folder, "BIGINT", buckets, options)
    with timed() as timer:
        target.write(scattered(rows, rows, 0))
    return timer.taken


def upsert_stream(folder: str, rows: int, count: int) -> dict[str, Any]:
    """Known keys anew, whose rows are made as they are asked for."""
    target = _open(folder)
    with timed() as timer:
        target.write(scattered(rows, count, 1))
    return timer.taken


def upsert(folders: list[str], rows: int, count: int) -> dict[str, Any]:
    """An upsert of half new rows into copies of one table, from opening it, and a read of all rows after it."""
    data = rows_of(half_new_ids(rows, count), 1)
    taken = repeated(lambda number: _open(folders[number]).write(data), len(folders) - 1)
    with timed() as timer:
        found = _open(folders[-1]).scan().to_arrow().num_rows
    return {**taken, "read_seconds": timer.taken["seconds"], "rows": found}


def get(folder: str, key: str, rows: int, warm_up: int, count: int) -> dict[str, Any]:
    """Rows by their keys, one by one, out of a table that has answered `warm_up` of them, half of them from lookup files."""
    target = _open(folder)
    keys = rows_of(update_ids(rows, warm_up + count, 99), 0).select(KEYS[key]).to_pylist()
    times, processor = [], []
    for place, wanted in enumerate(keys):
        if place == warm_up // 2:
            for thread in threading.enumerate():
                if thread.name == THREAD_NAME:
                    thread.join()
        begin, used = time.perf_counter(), time.thread_time()
        found = target.get(wanted)
        times.append(time.perf_counter() - begin)
        processor.append(time.thread_time() - used)
        assert found is not None
        assert all(found[name] == value for name, value in wanted.items())
    counted, used_by = times[warm_up:], processor[warm_up:]
    return {
        "seconds": median(counted),
        "user_seconds": median(used_by),
        "p99_seconds": quantiles(counted, n=100)[98],
        "p99_user_seconds": quantiles(used_by, n=100)[98],
        "first_seconds": times[0],
    }


def get_many(folder: str, key: str, rows: int, count: int, repeats: int) -> dict[str, Any]:
    """Rows by many keys at once."""
    target = _open(folder)
    keys = rows_of(update_ids(rows, count, 98), 0).select(KEYS[key])
    counts: list[int] = []
    taken = repeated(lambda _: counts.append(target.get_many(keys).num_rows), repeats)
    return {**taken, "rows": counts[-1]}


def _create(folder: str, key: str, buckets: int, more: dict[str, str] | None = None) -> Table:
    lake = lakelet.connect(folder)
    lake.create_database("bench")
    # Runs are not to be compacted: the cost of merging them, and of writing them, is measured.
    options = {"bucket": str(buckets), "write-only": "true", **(more or {})}
    return lake.create_table(TABLE, SCHEMA, primary_key=KEYS[key], options=options)


def _open(folder: str) -> Table:
    return lakelet.connect(folder).table(TABLE)


if __name__ == "__main__":
    serve(make, read, read_again, read_stream, write, write_stream, load, upsert_stream, upsert, get, get_many)
