"""Rows put through `table.writer()`: batches with and without a sync each, and single durable rows of many threads.

SQLite is the peer that is always there, with a write-ahead log as well. The disk itself is the other one: a record appended to a
file and synced, one after the other. All of it is in one process, one after the other, on the same disk.
"""

from __future__ import annotations

from benchmarks.benchmark import Result, Scale, beside, faster, under
from benchmarks.rounds import Contender, best_of, run_task

ROWS = 1_000_000
BATCH = 1_000
SINGLE = 2_000
STREAMED = 10_000_000
# Three memtables of 64 MB, what flushes and compactions hold, and the interpreter with its libraries.
_MOST_MEGABYTES = 1_500


def measure_writer(scale: Scale) -> list[Result]:
    """`table.writer()`: batched puts and durable single puts of 8 threads against SQLite, and against one fsync each."""
    found = best_of(
        scale.rounds,
        *(
            Contender(name, lambda number, task=name: _run(scale, task, number))
            for name in ("lakelet_batches", "sqlite_batches", "lakelet_synced", "sqlite_synced")
        ),
        *(
            Contender(name, lambda number, task=name: _run(scale, task, number))
            for name in ("lakelet_threads", "sqlite_single", "fsync_each")
        ),
        Contender("lakelet_streamed", lambda number: _run(scale, "lakelet_streamed", number)),
    )
    streamed = found["lakelet_streamed"]
    megabytes = streamed["peak_bytes"] / 1e6
    batches, synced, threads = found["lakelet_batches"], found["lakelet_synced"], found["lakelet_threads"]
    return [
        faster("batched puts, SQLite with synchronous=OFF", batches, found["sqlite_batches"], 1.0),
        faster("batched puts with a sync each, SQLite with synchronous=FULL", synced, found["sqlite_synced"], 1.0),
        faster("durable single puts of 8 threads, an fsync for each row", threads, found["fsync_each"], 4.0),
        faster("durable single puts of 8 threads, SQLite's durable inserts", threads, found["sqlite_single"], None),
        beside("batched puts until all is committed, SQLite", batches, found["sqlite_batches"], "closed_seconds"),
        under(
            f"memory of {streamed['rows']:,} rows put and committed",
            streamed,
            megabytes,
            _MOST_MEGABYTES,
            f"{megabytes:,.0f} MB",
            "MB",
        ),
    ]


def _run(scale: Scale, task: str, number: int) -> dict[str, float]:
    folder = scale.folder / f"{task}-{number}"
    folder.mkdir()
    single = task in ("lakelet_threads", "sqlite_single", "fsync_each")
    rows = SINGLE if single else STREAMED if task == "lakelet_streamed" else ROWS
    arguments = {"folder": str(folder), "rows": scale.of(rows)}
    return run_task("writer/writer_tasks.py", task, arguments if single else {**arguments, "batch": BATCH})
