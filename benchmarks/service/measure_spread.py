"""Queries that three workers run together over 30 million rows, beside DuckDB with three threads on the same files."""

from __future__ import annotations

from benchmarks.benchmark import Result, Scale
from benchmarks.rounds import Contender, Measured, best_of, run_task

ROWS = 30_000_000
REPEATS = 3
LIMIT = 1.2
ALLOWED_SECONDS = 0.015


def measure_spread(scale: Scale) -> list[Result]:
    """Three workers of a cluster, without its network, and DuckDB: time, the answer as JSON included."""
    folder = str(scale.folder)
    run_task("service/spread_tasks.py", "make", {"folder": folder, "rows": scale.of(ROWS)})
    found = best_of(
        scale.rounds,
        Contender(
            "turns", lambda _: run_task("service/spread_tasks.py", "turns", {"folder": folder, "repeats": REPEATS})
        ),
    )["turns"]
    return [_compared(found, name) for name in found["queries"]]


def _compared(found: Measured, name: str) -> Result:
    ours, peer = found[f"{name}_service_seconds"], found[f"{name}_duckdb_seconds"]
    ratio = (ours - ALLOWED_SECONDS) / peer
    used = [found[f"{name}_{whose}_processor"] * 1000 for whose in ("service", "duckdb")]
    clock = f"{ours * 1000:.0f} against {peer * 1000:.0f} ms"
    text = f"{ratio:.2f} × its time and 15 ms ({clock}; processor {used[0]:.0f} against {used[1]:.0f} ms)"
    return Result(
        f"{found['queries'][name]}, by three workers, DuckDB with three threads on the same files",
        {"seconds": ours},
        {"seconds": peer},
        ratio,
        text,
        f"≤ {LIMIT} × and 15 ms",
        ratio <= LIMIT,
    )
