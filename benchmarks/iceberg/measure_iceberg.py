"""Rows into the partitions of an Iceberg table: beside pyiceberg's `append`, and with what memory."""

from __future__ import annotations

import shutil
from functools import partial
from typing import Any

from benchmarks.benchmark import Result, Scale, faster, under
from benchmarks.rounds import Contender, Measured, best_of, run_task

ROWS = 1_000_000
MANY_ROWS = 10_000_000
PARTITIONS = (100, 1_000)
MANY_PARTITIONS = 5_000
ROUNDS = 3
LARGE_ROUNDS = 2
LEAST = 3
MEMORY_LIMIT = 1 << 30


def _fresh(scale: Scale, task: str, arguments: dict[str, Any], number: int) -> Measured:
    folder = scale.folder / f"{task}-{number}"
    measured = run_task("iceberg/iceberg_tasks.py", task, {**arguments, "folder": str(folder)})
    shutil.rmtree(folder)
    return measured


def _against_append(scale: Scale, rows: int, rounds: int) -> list[Result]:
    results = []
    for partitions in PARTITIONS:
        arguments = {"rows": rows, "partitions": partitions}
        found = best_of(
            min(scale.rounds, rounds),
            Contender("lakelet", partial(_fresh, scale, "ours", arguments)),
            Contender("pyiceberg", partial(_fresh, scale, "append", arguments)),
        )
        ours, peer = found["lakelet"], found["pyiceberg"]
        assert ours["rows"] == peer["rows"] == rows
        assert ours["files"] == peer["files"] == partitions
        results.append(faster(f"{rows:,} rows into {partitions:,} partitions, pyiceberg append", ours, peer, LEAST))
    return results


def measure_iceberg(scale: Scale) -> list[Result]:
    """1M rows into 100 and 1,000 partitions of an Iceberg table, with the commit."""
    return _against_append(scale, scale.of(ROWS), ROUNDS)


def measure_iceberg_large(scale: Scale) -> list[Result]:
    """10M rows into 100 and 1,000 partitions of an Iceberg table, with the commit: more than the writer holds in memory."""
    return _against_append(scale, scale.of(MANY_ROWS), LARGE_ROUNDS)


def measure_iceberg_memory(scale: Scale) -> list[Result]:
    """10M rows, made as they are written, into 5,000 partitions of an Iceberg table: one file each, in bounded memory."""
    rows = scale.of(MANY_ROWS)
    ours = _fresh(scale, "bounded", {"rows": rows, "partitions": MANY_PARTITIONS}, 0)
    assert ours["rows"] == rows
    assert ours["files"] == MANY_PARTITIONS
    peak = ours["peak_bytes"] / (1 << 20)
    text = f"{peak:.0f} MiB at most, {rows / ours['seconds']:,.0f} rows a second"
    name = f"{rows:,} rows into {MANY_PARTITIONS:,} partitions, memory"
    return [under(name, ours, peak, MEMORY_LIMIT >> 20, text, "MiB")]
