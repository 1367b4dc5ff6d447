"""Reads of tables that compute or mark rows: aggregation and partial-update against plain reads and pypaimon's native reader,
and scans with deletion vectors against plain scans of the same files. Ratios are of processor time."""

from __future__ import annotations

import shutil
from functools import partial
from typing import Any

from benchmarks.benchmark import Result, Scale, at_most, faster, under
from benchmarks.rounds import PYPAIMON, Contender, ContenderError, Measured, best_of, run_task

ROWS = 1_000_000
UPSERT_ROWS = 200_000
UPSERTS = 5
MARKED_ROWS = 100_000
REPEATS = 5
PROCESSOR = "user_seconds"

ENGINES: dict[str, dict[str, str]] = {
    "aggregation": {"merge-engine": "aggregation", "fields.price.aggregate-function": "sum"},
    "partial-update": {"merge-engine": "partial-update"},
    "deduplicate": {},
}
LIMITS = {"aggregation": 2.2, "partial-update": 2.2, "deduplicate": 1.35}
VECTORS = {"deletion-vectors.enabled": "true", "write-only": "false"}
VECTOR_LIMIT = 1.15
MANY_ROWS = 10_000_000
MANY_MARKED_ROWS = 1_000_000
MEMORY_LIMIT_MIB = 1536


def measure_folds(scale: Scale) -> list[Result]:
    """All rows of a load and five upserts of a fifth of it, by each merge engine."""
    results = []
    for engine, options in ENGINES.items():
        results += _fold_results(scale, engine, options)
    return results


def measure_vector_scan(scale: Scale) -> list[Result]:
    """All rows of a load of which an upsert has marked a tenth as superseded."""
    folder = str(scale.folder / "vectors")
    made = _made(scale, folder, VECTORS, 1, scale.of(MARKED_ROWS))
    found = best_of(
        scale.rounds,
        Contender("plain", partial(_plain, made["paths"])),
        Contender("lakelet", partial(_ours, folder)),
    )
    assert found["lakelet"]["rows"] == scale.of(ROWS)
    shutil.rmtree(folder)
    name = f"scan of {scale.of(ROWS):,} rows with deletion vectors, pyarrow.dataset of the same files"
    return [at_most(name, found["lakelet"], found["plain"], VECTOR_LIMIT, PROCESSOR)]


def measure_vector_memory(scale: Scale) -> list[Result]:
    """An upsert into one bucket with deletion vectors, with the compaction that makes its rows visible, and the scan after it."""
    rows, upsert_rows = scale.of(MANY_ROWS), scale.of(MANY_MARKED_ROWS)
    folder = str(scale.folder / "vectors")
    options = {**VECTORS, "bucket": "1"}
    run_task("keyed/keyed_tasks.py", "load", {"folder": folder, "buckets": 1, "rows": rows, "options": options})
    upserted = run_task("keyed/keyed_tasks.py", "upsert_stream", {"folder": folder, "rows": rows, "count": upsert_rows})
    read = run_task("keyed/keyed_tasks.py", "read_stream", {"folder": folder, "columns": None, "repeats": 0})
    assert read["rows"] == rows
    results = []
    for task, measured in (("upserting", upserted), ("reading", read)):
        peak = measured["peak_bytes"] / (1 << 20)
        text = f"{peak:.0f} MiB at most, in {measured['seconds']:.1f} s"
        name = f"memory of {task} {upsert_rows:,} of {rows:,} rows with deletion vectors"
        results.append(under(name, measured, peak, MEMORY_LIMIT_MIB, text, "MiB"))
    return results


def _fold_results(scale: Scale, engine: str, options: dict[str, str]) -> list[Result]:
    folder = str(scale.folder / engine)
    made = _made(scale, folder, options, UPSERTS, scale.of(UPSERT_ROWS))
    ways = [
        Contender("plain", partial(_plain, made["paths"])),
        Contender("lakelet", partial(_ours, folder)),
    ]
    native = Contender("native", partial(_native, folder))
    try:
        found = best_of(scale.rounds, *ways, native)
    except ContenderError:
        # The native reader knows fewer merge engines.
        found = best_of(scale.rounds, *ways)
    assert found["lakelet"]["rows"] == scale.of(ROWS)
    shutil.rmtree(folder)
    name, ours = f"merge read by {engine}", found["lakelet"]
    results = [at_most(f"{name}, pyarrow.dataset", ours, found["plain"], LIMITS[engine], PROCESSOR)]
    if "native" in found:
        least = 2 if engine == "deduplicate" else 4
        results.append(faster(f"{name}, pypaimon native", ours, found["native"], least, PROCESSOR))
    else:
        results.append(
            Result(f"{name}, pypaimon native", ours, {}, 0.0, "not measured: it refuses the table", "", None)
        )
    return results


def _made(scale: Scale, folder: str, options: dict[str, str], upserts: int, upsert_rows: int) -> Measured:
    shape = {"rows": scale.of(ROWS), "upserts": upserts, "upsert_rows": upsert_rows, "options": options}
    return run_task("keyed/keyed_tasks.py", "make", {"folder": folder, "key": "BIGINT", "buckets": 2, **shape})


def _plain(paths: list[str], _: int) -> Measured:
    return run_task("peers/arrow_tasks.py", "read_again", {"paths": paths, "columns": None, "repeats": REPEATS})


def _ours(folder: str, _: int) -> Measured:
    arguments: dict[str, Any] = {"folder": folder, "columns": None, "ordered": False, "repeats": REPEATS}
    return run_task("keyed/keyed_tasks.py", "read", arguments)


def _native(folder: str, _: int) -> Measured:
    arguments = {"folder": folder, "columns": None, "native": True, "repeats": REPEATS}
    return run_task("peers/pypaimon_tasks.py", "read_keyed", arguments, PYPAIMON)
