"""Change events into rows, and into tables: events a second of one core."""

from __future__ import annotations

from benchmarks.benchmark import Result, Scale
from benchmarks.rounds import run_task

TASKS = "spark/cdc_tasks.py"
ROWS = 1_000_000
LEAST = 100_000


def measure_cdc(scale: Scale) -> list[Result]:
    """Events of eight columns in every envelope: read into rows of the table's types, and applied to a new table."""
    rows = scale.of(ROWS)
    found = run_task(TASKS, "events", {"folder": str(scale.folder), "rows": rows, "rounds": scale.rounds})
    results = []
    for name, times in sorted((name, times) for name, times in found.items() if isinstance(times, dict)):
        rate = rows / times["processor_seconds"]
        text = f"{rate:,.0f} events a second of a core ({rows:,} in {times['seconds']:.2f} s on two)"
        if name.endswith("applied"):
            results.append(Result(f"{name} to a new table", times, {}, rate, text, "", None))
        else:
            target = f"≥ {LEAST:,} a second"
            results.append(Result(name, times, {}, rate / LEAST, text, target, rate >= LEAST))
    return results
