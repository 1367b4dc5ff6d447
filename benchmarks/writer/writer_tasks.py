"""The tasks of `measure_writer`: keys of 16 bytes, values of 100."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import lakelet
from benchmarks.contender import serve, timed

_THREADS = 8
_COLUMNS = [("k", "STRING NOT NULL"), ("v", "STRING")]


def lakelet_batches(folder: str, rows: int, batch: int) -> dict[str, Any]:
    """Batches that the system syncs when it likes."""
    return _lakelet(folder, rows, batch, "never")


def lakelet_synced(folder: str, rows: int, batch: int) -> dict[str, Any]:
    """Batches that are durable one by one."""
    return _lakelet(folder, rows, batch, "always")


def lakelet_streamed(folder: str, rows: int, batch: int) -> dict[str, Any]:
    """Batches that are made as they are put, until all rows are committed: memory is the writer's alone."""
    writer = _writer(folder, "never")
    value = pa.array(["v" * 100] * batch)
    with timed() as timer:
        for begin in range(0, rows, batch):
            keys = [f"{number:016}" for number in range(begin, begin + batch)]
            writer.put_many(pa.table({"k": keys, "v": value}))
        writer.close()
    return {**timer.taken, "rows": rows}


def sqlite_batches(folder: str, rows: int, batch: int) -> dict[str, Any]:
    """The same into SQLite, a transaction for each batch, without a sync."""
    return _sqlite(folder, rows, batch, "OFF")


def sqlite_synced(folder: str, rows: int, batch: int) -> dict[str, Any]:
    """The same into SQLite, each transaction synced."""
    return _sqlite(folder, rows, batch, "FULL")


def lakelet_threads(folder: str, rows: int) -> dict[str, Any]:
    """Single durable puts of several threads, which share syncs."""
    writer = _writer(folder, "always")
    value = "v" * 100

    def put(first: int) -> None:
        for number in range(first, rows, _THREADS):
            writer.put({"k": f"{number:016}", "v": value})

    put(rows - 1)
    threads = [threading.Thread(target=put, args=(first,)) for first in range(_THREADS)]
    with timed() as timer:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    syncs = writer.status().syncs
    writer.close()
    return {**timer.taken, "rows": rows, "syncs": syncs}


def sqlite_single(folder: str, rows: int) -> dict[str, Any]:
    """Single durable inserts, one after the other."""
    database, value = _database(folder, "FULL"), "v" * 100
    with timed() as timer:
        for number in range(rows):
            database.execute("INSERT OR REPLACE INTO t VALUES (?, ?)", (f"{number:016}", value))
    return {**timer.taken, "rows": rows}


def fsync_each(folder: str, rows: int) -> dict[str, Any]:
    """What the disk takes: a record of the same size, and a sync, for each row."""
    record = b"r" * 180
    descriptor = os.open(Path(folder, "log"), os.O_RDWR | os.O_CREAT)
    with timed() as timer:
        for _ in range(rows):
            os.write(descriptor, record)
            os.fsync(descriptor)
    os.close(descriptor)
    return {**timer.taken, "rows": rows}


def _lakelet(folder: str, rows: int, batch: int, sync: str) -> dict[str, Any]:
    batches = list(_batches(rows, batch))
    writer = _writer(folder, sync)
    with timed() as closed:
        with timed() as put:
            for one in batches:
                writer.put_many(one)
        writer.close()
    return {**put.taken, "rows": rows, "closed_seconds": closed.taken["seconds"]}


def _sqlite(folder: str, rows: int, batch: int, synchronous: str) -> dict[str, Any]:
    batches = [list(zip(*one.to_pydict().values(), strict=True)) for one in _batches(rows, batch)]
    database = _database(folder, synchronous)
    with timed() as timer:
        for one in batches:
            database.execute("BEGIN")
            database.executemany("INSERT OR REPLACE INTO t VALUES (?, ?)", one)
            database.execute("COMMIT")
    return {**timer.taken, "rows": rows, "closed_seconds": timer.taken["seconds"]}


def _batches(rows: int, batch: int) -> Iterator[pa.Table]:
    """Keys in a random order, each once."""
    order = np.random.default_rng(7).permutation(rows)
    for begin in range(0, rows, batch):
        keys = [f"{number:016}" for number in order[begin : begin + batch].tolist()]
        yield pa.table({"k": keys, "v": ["v" * 100] * len(keys)})


def _writer(folder: str, sync: str) -> Any:
    lake = lakelet.connect(str(Path(folder, "lake")))
    lake.create_database("bench")
    table = lake.create_table("bench.rows", _COLUMNS, primary_key=["k"], options={"bucket": "1"})
    return table.writer(wal_folder=Path(folder, "wal"), options={"wal.sync": sync})


def _database(folder: str, synchronous: str) -> sqlite3.Connection:
    database = sqlite3.connect(str(Path(folder, "rows.db")), isolation_level=None)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute(f"PRAGMA synchronous={synchronous}")
    database.execute("CREATE TABLE t (k TEXT PRIMARY KEY, v TEXT)")
    return database


if __name__ == "__main__":
    serve(
        lakelet_batches,
        sqlite_batches,
        lakelet_synced,
        sqlite_synced,
        lakelet_streamed,
        lakelet_threads,
        sqlite_single,
        fsync_each,
    )
