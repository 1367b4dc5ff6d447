"""Tables on Spark beside what Spark does with bare Parquet files: the scans, the writes, the upserts, the memory of a worker.

The contenders of one measurement share a session and take turns in it (`spark_turns`). Both the clock and the processor time of
the whole tree of processes are compared; the target holds for the one that it names.
"""

from __future__ import annotations

from typing import Any

from benchmarks.benchmark import Result, Scale, under
from benchmarks.rounds import Measured, run_task

SCAN_ROWS = 5_000_000
DELETED = (0.001, 0.05, 0.3)
DELETED_LIMIT = 1.35
MANY_FILES = 5_000
PLAN_LIMIT_SECONDS = 2.0
# Rows of the load, buckets, and the limit for all columns. As many rows as the load has come by upserts, so that the stored rows
# are twice as many.
MERGES = ((1_000_000, 2, 1.5), (1_000_000, 4, 1.5), (5_000_000, 4, 1.35))
MERGE_UPSERTS = 5

WRITE_ROWS = 4_000_000
WRITE_BUCKETS = 4
MEMORY_ROWS = 20_000_000
MEMORY_LIMIT_MIB = 1024

UPSERT_ROWS = 10_000_000
UPSERT_BUCKETS = 4
SMALL_UPSERT_ROWS = 1_000_000
SMALL_UPSERT_COUNT = 200_000
SMALL_UPSERT_BUCKETS = 2

CLOCK, PROCESSOR = "seconds", "processor_seconds"
READ, WRITE = "spark/spark_read_tasks.py", "spark/spark_write_tasks.py"


def measure_spark_read(scale: Scale) -> list[Result]:
    """Scans of 5M rows, deleted rows among them, of 5,000 files, and of a table that is merged, against `spark.read.parquet`."""
    return [*_plain_results(scale), *_many_results(scale), *_merge_results(scale)]


def _plain_results(scale: Scale) -> list[Result]:
    rows = scale.of(SCAN_ROWS)
    shape = {"folder": str(scale.folder / "plain"), "rows": rows, "shares": list(DELETED), "rounds": scale.rounds}
    found = run_task(READ, "plain_scan", shape)
    parquet, name = found["parquet"], f"Spark scan of {rows:,} rows"
    return [
        compared(f"{name}, all columns, parquet", found["lakelet"], parquet, 1.05),
        compared(f"{name}, an aggregate, parquet", found["lakelet sum"], found["parquet sum"], 1.05),
        *(
            compared(
                f"{name}, {share:.1%} deleted, parquet of all rows", found[f"deleted {share}"], parquet, DELETED_LIMIT
            )
            for share in DELETED
        ),
    ]


def _many_results(scale: Scale) -> list[Result]:
    files = scale.of(MANY_FILES)
    shape = {"folder": str(scale.folder / "many"), "files": files, "rounds": min(scale.rounds, 3)}
    found = run_task(READ, "many_files", shape)
    ours, parquet = found["lakelet plan"], found["parquet plan"]
    text = f"{ours[CLOCK]:.2f} s; spark.read.parquet {parquet[CLOCK]:.2f} s"
    return [
        under(f"Spark plan of {files:,} files", {**ours}, ours[CLOCK], PLAN_LIMIT_SECONDS, text, "s"),
        compared(f"Spark scan of {files:,} small files, parquet", found["lakelet"], found["parquet"], None),
    ]


def _merge_results(scale: Scale) -> list[Result]:
    results = []
    for load, buckets, limit in MERGES:
        rows = scale.of(load)
        folder = str(scale.folder / f"merge-{load}-{buckets}")
        shape = {"rows": rows, "upserts": MERGE_UPSERTS, "upsert_rows": rows // MERGE_UPSERTS}
        run_task("keyed/keyed_tasks.py", "make", {"folder": folder, "key": "BIGINT", "buckets": buckets, **shape})
        found = run_task(READ, "merge_scan", {"folder": folder, "merged": f"{folder}-rows", "rounds": scale.rounds})
        name = f"Spark merge scan of {2 * rows:,} stored rows, {buckets} buckets"
        results += [
            compared(f"{name}, all columns, parquet of the merged rows", found["lakelet"], found["parquet"], limit),
            compared(f"{name}, two columns, parquet", found["lakelet two"], found["parquet two"], 2.4),
        ]
    return results


def measure_spark_write(scale: Scale) -> list[Result]:
    """4M rows into a new table against `df.write.parquet` after the same shuffle, zstd at level 1, and the memory of a worker."""
    rows = scale.of(WRITE_ROWS)
    results = []
    for key in ("BIGINT", "uuid"):
        shape = {"rows": rows, "key": key, "buckets": WRITE_BUCKETS, "rounds": scale.rounds}
        found = run_task(WRITE, "routed_write", {"folder": str(scale.folder / f"routed-{key}"), **shape})
        name = f"Spark write of {rows:,} rows, {key}, {WRITE_BUCKETS} buckets"
        results += [
            compared(
                f"{name}, sorted, parquet after the same shuffle", found["keyed"], found["parquet"], 1.3, PROCESSOR
            ),
            compared(f"{name}, sorted, parquet after shuffle and sort", found["keyed"], found["sorted parquet"], None),
            compared(
                f"{name}, no primary key, parquet after the same shuffle", found["unkeyed"], found["parquet"], None
            ),
        ]
    found = run_task(
        WRITE, "plain_write", {"folder": str(scale.folder / "plain"), "rows": rows, "rounds": scale.rounds}
    )
    results.append(
        compared(f"Spark write of {rows:,} rows, append table, parquet", found["lakelet"], found["parquet"], None)
    )
    return [*results, *_memory_results(scale)]


def _memory_results(scale: Scale) -> list[Result]:
    rows = scale.of(MEMORY_ROWS)
    shape = {"folder": str(scale.folder / "memory"), "rows": rows, "buckets": WRITE_BUCKETS}
    found = run_task(WRITE, "write_memory", shape)
    results = []
    for buckets in ("fixed", "dynamic"):
        measured = found[buckets]
        peak = measured["worker_peak_bytes"] / (1 << 20)
        text = f"{peak:.0f} MiB at most, in {measured[CLOCK]:.1f} s"
        name = f"memory of a Python worker, write of {rows:,} rows, {buckets} buckets"
        results.append(under(name, measured, peak, MEMORY_LIMIT_MIB, text, "MiB"))
    return results


def measure_spark_upsert(scale: Scale) -> list[Result]:
    """10M rows into 10M, dynamic buckets against fixed ones, and 200,000 into 1M against a Parquet append; half the keys new."""
    rows = scale.of(UPSERT_ROWS)
    results = []
    for by_spark in (True, False):
        shape = {"rows": rows, "count": rows, "buckets": UPSERT_BUCKETS, "rounds": min(scale.rounds, 3)}
        folder = str(scale.folder / f"large-{by_spark}")
        found = run_task(WRITE, "large_upsert", {"folder": folder, "by_spark": by_spark, **shape})
        name = f"Spark upsert of {rows:,} rows into {rows:,} loaded {'by Spark' if by_spark else 'locally'}"
        results.append(compared(f"{name}, dynamic buckets, fixed buckets", found["dynamic"], found["fixed"], 1.5))
    rows, count = scale.of(SMALL_UPSERT_ROWS), scale.of(SMALL_UPSERT_COUNT)
    small = {"rows": rows, "count": count, "buckets": SMALL_UPSERT_BUCKETS, "rounds": scale.rounds}
    found = run_task(WRITE, "small_upsert", {"folder": str(scale.folder / "small"), **small})
    name = f"Spark upsert of {count:,} rows into {rows:,}"
    return [
        *results,
        compared(f"{name}, fixed buckets, parquet append", found["fixed"], found["parquet"], 1.5),
        compared(f"{name}, dynamic buckets, parquet append", found["dynamic"], found["parquet"], None),
    ]


def compared(name: str, ours: Measured, peer: Measured, limit: float | None, key: str = CLOCK) -> Result:
    """How Lakelet's time relates to the peer's, on the clock and of processor; the target is for one of them."""
    ratios: dict[str, Any] = {one: ours[one] / peer[one] for one in (CLOCK, PROCESSOR)}
    text = (
        f"{ratios[CLOCK]:.2f} × its time ({ours[CLOCK]:.2f} against {peer[CLOCK]:.2f} s), "
        f"{ratios[PROCESSOR]:.2f} × its processor time ({ours[PROCESSOR]:.2f} against {peer[PROCESSOR]:.2f} s)"
    )
    ratio = ratios[key]
    if limit is None:
        return Result(name, ours, peer, ratio, text, "", None)
    of = " of processor" if key == PROCESSOR else ""
    return Result(name, ours, peer, ratio, text, f"≤ {limit} ×{of}", ratio <= limit)
