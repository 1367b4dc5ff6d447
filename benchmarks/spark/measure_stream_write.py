"""Streams into tables: the body of a trigger beside the whole, large batches beside `df.write.parquet`, a sustained run."""

from __future__ import annotations

from benchmarks.benchmark import Result, Scale, under
from benchmarks.rounds import Measured, run_task

TASKS = "spark/stream_write_tasks.py"
SMALL, LARGE = 1_000, 100_000
BATCHES = 40
LIMIT_MS = {"fixed": 200, "append": 150, "dynamic": None}
LARGE_LIMIT = 1.3
SUSTAINED_ROWS = 200_000
SUSTAINED_SECONDS = 600
RATE = 200_000
KEYS = 5_000_000


def measure_stream_write(scale: Scale) -> list[Result]:
    """Triggers of 1,000 and of 100,000 rows, and batches without a pause: ten minutes in full, one in a quick run."""
    results = []
    batches = max(10, scale.of(BATCHES))
    small = run_task(TASKS, "triggers", {"folder": str(scale.folder / "small"), "rows": SMALL, "batches": batches})
    for name, limit in LIMIT_MS.items():
        found = small[name]
        body = found["seconds"] * 1000
        text = f"{body:.0f} ms in foreachBatch, {found['trigger_seconds'] * 1000:.0f} ms the whole trigger (medians)"
        title = f"trigger of {SMALL:,} rows, {name} table"
        if limit is None:
            results.append(Result(title, found, {}, body, text, "", None))
        else:
            results.append(under(title, found, body, limit, text, "ms"))
    large = run_task(TASKS, "triggers", {"folder": str(scale.folder / "large"), "rows": LARGE, "batches": batches // 2})
    for name in LIMIT_MS:
        results.append(_beside_parquet(name, large[name], large["parquet"]))
    seconds = max(60, scale.of(SUSTAINED_SECONDS))
    for name, keys in (("append", 0), ("fixed", KEYS)):
        shape = {"folder": str(scale.folder / f"sustained-{name}"), "name": name, "rows": SUSTAINED_ROWS, "keys": keys}
        results.append(_sustained(name, run_task(TASKS, "sustained", {**shape, "seconds": seconds})))
    return results


def _beside_parquet(name: str, ours: Measured, peer: Measured) -> Result:
    ratio = ours["seconds"] / peer["seconds"]
    text = (
        f"{ratio:.2f} × df.write.parquet in foreachBatch ({ours['seconds'] * 1000:.0f} against {peer['seconds'] * 1000:.0f} ms), "
        f"triggers {ours['trigger_seconds'] * 1000:.0f} against {peer['trigger_seconds'] * 1000:.0f} ms"
    )
    return Result(
        f"trigger of {LARGE:,} rows, {name} table", ours, peer, ratio, text, f"≤ {LARGE_LIMIT} ×", ratio <= LARGE_LIMIT
    )


def _sustained(name: str, found: Measured) -> Result:
    rate = found["rows_per_second"]
    kinds = ("first_python_bytes", "last_python_bytes", "first_jvm_bytes", "last_jvm_bytes")
    python, last_python, jvm, last_jvm = (found[kind] / (1 << 20) for kind in kinds)
    heaps = ", ".join(f"{heap / (1 << 20):.0f}" for heap in found["live_heap_bytes"])
    text = (
        f"{rate:,.0f} rows/s for {found['seconds']:.0f} s; body {found['first_body_seconds']:.2f} s at first and "
        f"{found['last_body_seconds']:.2f} s at last, {found['files']} files; MiB: Python {python:.0f} and {last_python:.0f}, "
        f"JVM {jvm:.0f} and {last_jvm:.0f}, its heap after collections in each quarter {heaps}"
    )
    title = f"sustained stream into a {name} table, compaction in the background"
    if name != "append":
        return Result(f"{title}, {KEYS:,} keys", found, {}, rate, text, "", None)
    return Result(title, found, {}, rate / RATE, text, f"≥ {RATE:,} rows/s", rate >= RATE)
