"""Streams out of tables beside a batch read of the same changes, in one session."""

from __future__ import annotations

from benchmarks.benchmark import Result, Scale
from benchmarks.rounds import run_task
from benchmarks.spark.measure_spark import CLOCK, PROCESSOR, compared

TASKS = "spark/stream_read_tasks.py"
# A stream gives at least 0.7 times the rows of a batch in the same time.
LIMIT = 1 / 0.7
SHAPES = {
    "append table": {"rows": 100_000, "commits": 20, "written": 500_000, "buckets": 0},
    "primary-key table, large commits": {"rows": 2_000_000, "commits": 5, "written": 400_000, "buckets": 4},
    "primary-key table, small commits": {"rows": 5_000_000, "commits": 10, "written": 1_000, "buckets": 4},
}


def measure_stream_read(scale: Scale) -> list[Result]:
    """The changes of some commits as a stream, beyond the start of a query, against `ls.table(start=…)`."""
    results = []
    for name, shape in SHAPES.items():
        own = {**shape, "rows": scale.of(shape["rows"]), "written": scale.of(shape["written"])}
        folder = str(scale.folder / name.replace(" ", "-").replace(",", ""))
        found = run_task(TASKS, "changes", {"folder": folder, **own, "rounds": scale.rounds})
        text = f"stream of {own['commits']} commits of {own['written']:,} rows, {name} of {own['rows']:,}"
        reading = {key: found["stream"][key] - found["empty stream"][key] for key in (CLOCK, PROCESSOR)}
        results.append(compared(f"{text}, batch read of the changes", reading, found["batch"], LIMIT))
        results.append(compared(f"{text}, its start included, batch read", found["stream"], found["batch"], None))
    return results
