"""Queries of the service over 10 million rows, beside DuckDB on the same files; both in one process, in turns."""

from __future__ import annotations

from benchmarks.benchmark import Result, Scale
from benchmarks.rounds import Contender, Measured, best_of, run_task

ROWS = 10_000_000
REPEATS = 3
LIMIT = 1.2
ALLOWED_SECONDS = 0.010


def measure_query(scale: Scale) -> list[Result]:
    """Queries of the service over 10M rows and DuckDB on the same files: processor time, the answer as JSON included."""
    folder = str(scale.folder)
    run_task("service/query_tasks.py", "make", {"folder": folder, "rows": scale.of(ROWS)})
    found = best_of(
        scale.rounds,
        Contender(
            "turns", lambda _: run_task("service/query_tasks.py", "turns", {"folder": folder, "repeats": REPEATS})
        ),
    )["turns"]
    return [_compared(found, name) for name in found["queries"]]


def _compared(found: Measured, name: str) -> Result:
    ours, peer = found[f"{name}_service_seconds"], found[f"{name}_duckdb_seconds"]
    ratio = (ours - ALLOWED_SECONDS) / peer
    text = f"{ratio:.2f} × its time and 10 ms ({ours * 1000:.0f} against {peer * 1000:.0f} ms of processor)"
    return Result(
        f"{found['queries'][name]}, DuckDB on the same files",
        {"seconds": ours},
        {"seconds": peer},
        ratio,
        text,
        f"≤ {LIMIT} × and 10 ms",
        ratio <= LIMIT,
    )
