"""Data files in SST beside those in Parquet: scans of all columns and of one, and the first row by its key.

Keys of 16 bytes, values of 100 that differ in every row, and a number; compression is the default, zstd. Rows per second are
those of processor time, which other load disturbs less.
"""

from __future__ import annotations

from benchmarks.benchmark import Result, Scale, beside, faster
from benchmarks.rounds import Contender, best_of, run_task

ROWS = 1_000_000
_RATE = 1_000_000
_TASKS = ("scan", "scan_one_column", "first_get", "written")
_FORMATS = ("sst", "parquet")


def measure_sst(scale: Scale) -> list[Result]:
    """Tables with SST files: scans, the first get and the write, against the same table in Parquet."""
    names = [f"{task} {kind}" for task in _TASKS for kind in _FORMATS]
    found = best_of(
        scale.rounds, *(Contender(name, lambda number, task=name: _run(scale, task, number)) for name in names)
    )
    scanned = found["scan sst"]
    rate = scanned["rows"] / scanned["user_seconds"]
    held = None if scale.quick else rate >= _RATE
    return [
        Result(
            "rows of a scan in a second of processor", scanned, {}, rate, f"{rate:,.0f} rows/s", f"≥ {_RATE:,}", held
        ),
        beside("scan of all columns, Parquet", scanned, found["scan parquet"]),
        beside("scan of one column, Parquet", found["scan_one_column sst"], found["scan_one_column parquet"]),
        faster("first get of a process, Parquet", found["first_get sst"], found["first_get parquet"], None),
        beside("write, Parquet", found["written sst"], found["written parquet"]),
    ]


def _run(scale: Scale, name: str, number: int) -> dict[str, float]:
    task, kind = name.split()
    folder = scale.folder / f"{task}-{kind}-{number}"
    folder.mkdir()
    return run_task("keyed/sst_tasks.py", task, {"folder": str(folder), "rows": scale.of(ROWS), "kind": kind})
