"""Writes of one row, each durable when it returns, against a durable insert into SQLite on the same disk.

SQLite is the measure of what the disk takes: with its default journal an insert waits for it about as often as a commit here,
with a write-ahead log once. The median tells a usual write; every few writes one compacts small files as well, which the mean
over all of them has in it. All of it is measured in one process, in turns.
"""

from __future__ import annotations

from benchmarks.benchmark import Result, Scale, at_most, beside
from benchmarks.rounds import run_task

WRITES = 200


def measure_small_write(scale: Scale) -> list[Result]:
    """One row at a time: `write()` and SQL's INSERT against a durable insert into SQLite (`synchronous=FULL`), in turns."""
    runs = []
    for number in range(1 if scale.quick else 2):
        folder = scale.folder / f"turns-{number}"
        folder.mkdir()
        runs.append(
            run_task("append/small_write_tasks.py", "turns", {"folder": str(folder), "count": scale.of(WRITES)})
        )
    # The quieter run, as a whole: numbers of different moments do not compare.
    found = min(runs, key=lambda run: float(run["seconds"]))["contenders"]
    write, insert, upsert = found["write"], found["insert"], found["upsert"]
    journal, log = found["DELETE"], found["WAL"]
    return [
        at_most("write() of one row, SQLite's insert with its default journal", write, journal, 6),
        at_most("SQL INSERT of one row, write() of it", insert, write, 1.5),
        beside("upsert of one row, SQLite's insert with its default journal", upsert, journal),
        beside("write() of one row, SQLite's insert with a write-ahead log", write, log),
        beside("write() of one row, mean with compaction, SQLite's insert", write, journal, "mean_seconds"),
    ]
