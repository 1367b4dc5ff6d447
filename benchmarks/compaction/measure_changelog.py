"""Measure what the changelog of `lookup` adds to a compaction, by processor time.

The same rows wait on level 0 in two tables, one whose compaction makes a changelog and one whose compaction does not. Each table
is made once and copied for every compaction of it, the data files as links.
"""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

from benchmarks.benchmark import Result, Scale, at_most
from benchmarks.rounds import Contender, Measured, best_of, run_task
from benchmarks.table_copies import linked

ROWS = 1_000_000
REPEATS = 3
LIMIT = 1.6
PROCESSOR = "user_seconds"
ENGINES: dict[str, dict[str, str]] = {
    "deduplicate": {},
    "partial-update": {"merge-engine": "partial-update"},
    "aggregation": {"merge-engine": "aggregation", "fields.price.aggregate-function": "sum"},
    "deletion vectors": {"deletion-vectors.enabled": "true"},
}
# Upserts, the rows of each, whether the bucket is compacted as a whole, engines. A compaction of few rows with deduplicate and no
# changelog only moves a file: there is nothing to compare with.
SHAPES = {
    "few rows": (1, 10_000, False, ("partial-update", "aggregation", "deletion vectors")),
    "a tenth": (1, 100_000, True, ("deduplicate", "partial-update", "aggregation")),
    "as many rows as there are": (5, 200_000, True, ("deduplicate",)),
}


def measure_compaction_changelog(scale: Scale) -> list[Result]:
    """A compaction of upserts into one bucket of 1M rows, with `changelog-producer` = `lookup` and without."""
    results = []
    for shape, (upserts, upsert_rows, full, engines) in SHAPES.items():
        for engine in engines:
            found = _compacted(scale, ENGINES[engine], upserts, scale.of(upsert_rows), full)
            name = f"compaction with the lookup producer, {engine}, {shape} in level 0, the same without"
            results.append(at_most(name, found["lookup"], found["none"], LIMIT, PROCESSOR))
    return results


def _compacted(
    scale: Scale, options: dict[str, str], upserts: int, upsert_rows: int, full: bool
) -> dict[str, Measured]:
    contenders = []
    folders = []
    for producer in ("none", "lookup"):
        folder = scale.folder / f"changelog-{producer}"
        folders.append(folder)
        # Without a producer compaction takes level 0 as the one with it does.
        asked = {**options, "changelog-producer": producer, "force-lookup": "true"}
        shape = {"rows": scale.of(ROWS), "upserts": upserts, "upsert_rows": upsert_rows, "options": asked}
        run_task("compaction/compaction_tasks.py", "make_waiting", {"folder": str(folder), **shape})
        contenders.append(Contender(producer, partial(_compacted_copies, scale, folder, full)))
    found = best_of(scale.rounds, *contenders)
    for folder in folders:
        shutil.rmtree(folder)
    assert found["lookup"]["changelog_rows"] == 2 * upsert_rows or upserts > 1
    assert found["none"]["changelog_rows"] == 0
    return found


def _compacted_copies(scale: Scale, table: Path, full: bool, _: int) -> Measured:
    copies = [linked(table, scale.folder / f"copy-{number}") for number in range(REPEATS + 1)]
    arguments = {"folders": [str(copy) for copy in copies], "full": full}
    measured = run_task("compaction/compaction_tasks.py", "compact_waiting", arguments)
    for copy in copies:
        shutil.rmtree(copy)
    return measured
