"""An upsert of half known, half new keys into a large table, against the formats that rewrite files for it.

A contender's table is loaded once and copied for every upsert. Reading all rows afterwards is measured too, once: a table
that merges at read time pays part of the price there.
"""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

from benchmarks.benchmark import Result, Scale, at_most, faster
from benchmarks.rounds import Contender, Measured, best_of, run_task
from benchmarks.table_copies import linked

ROWS = 10_000_000
UPSERT_ROWS = 1_000_000
BUCKETS = 5
"""As many as dynamic buckets come to with their default of two million rows each."""
REPEATS = 5
SLOW_ROUNDS = 2


def measure_upsert(scale: Scale) -> list[Result]:
    """1M rows into 10M."""
    rows, count = scale.of(ROWS), scale.of(UPSERT_ROWS)
    size = {"rows": rows, "count": count}
    fixed, dynamic, delta, iceberg = (scale.folder / name for name in ("fixed", "dynamic", "delta", "iceberg"))
    for folder, buckets in ((fixed, BUCKETS), (dynamic, -1)):
        run_task("keyed/keyed_tasks.py", "load", {"folder": str(folder), "buckets": buckets, "rows": rows})
    run_task("peers/delta_tasks.py", "load", {"folder": str(delta), "rows": rows})
    metadata = run_task("peers/pyiceberg_upsert_tasks.py", "load", {"folder": str(iceberg), "rows": rows})["metadata"]

    def copied(script: str, table: Path, repeats: int, _: int) -> Measured:
        copies = [linked(table, scale.folder / f"copy-{number}") for number in range(repeats + 1)]
        measured = run_task(script, "upsert", {"folders": [str(copy) for copy in copies], **size})
        for copy in copies:
            shutil.rmtree(copy)
        return measured

    def pyiceberg(_: int) -> Measured:
        return run_task(
            "peers/pyiceberg_upsert_tasks.py",
            "upsert",
            {"folder": str(iceberg), "metadata": metadata, "repeats": 0, **size},
        )

    found = best_of(
        scale.rounds,
        Contender("fixed", partial(copied, "keyed/keyed_tasks.py", fixed, REPEATS)),
        Contender("dynamic", partial(copied, "keyed/keyed_tasks.py", dynamic, REPEATS)),
        Contender("delta", partial(copied, "peers/delta_tasks.py", delta, 1), rounds=SLOW_ROUNDS),
        Contender("pyiceberg", pyiceberg, rounds=SLOW_ROUNDS),
    )
    assert all(measured["rows"] == rows + count // 2 for measured in found.values())
    return _results(f"upsert of {count:,} rows into {rows:,}", found)


def _results(name: str, found: dict[str, Measured]) -> list[Result]:
    fixed, dynamic = found["fixed"], found["dynamic"]
    results = [at_most(f"{name}, dynamic buckets, fixed buckets", dynamic, fixed, 1.5)]
    better = min(("delta", "pyiceberg"), key=lambda peer: float(found[peer]["seconds"]))
    for peer, label in (("delta", "deltalake merge"), ("pyiceberg", "pyiceberg upsert")):
        least = 10 if peer == better else None
        results.append(faster(f"{name}, fixed buckets, {label}", fixed, found[peer], least))
        results.append(faster(f"{name}, dynamic buckets, {label}", dynamic, found[peer], None))
        results.append(faster(f"{name}, read after it, {label}", fixed, found[peer], None, "read_seconds"))
    return results
