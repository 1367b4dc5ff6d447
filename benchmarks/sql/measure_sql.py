"""SQL: TPC-H beside DuckDB on the same files, INSERT … SELECT beside a write, the start of the command line."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from benchmarks.benchmark import Result, Scale, at_most, faster, under
from benchmarks.rounds import Contender, Measured, best_of, run_task

SCALE_FACTOR = 1
BUCKETS = 2
REPEATS = 3
PLAIN_LIMIT = 1.15
MERGED_LIMIT = 1.8
INSERT_ROWS = 1_000_000
INSERT_LEAST = 0.7
START_SECONDS = 0.6
STARTS = 5


def measure_sql(scale: Scale) -> list[Result]:
    """TPC-H (scale factor 1) on primary-key tables, compacted and with a tenth of the rows upserted; INSERT by SELECT."""
    folder = str(scale.folder)
    run_task("sql/sql_tasks.py", "make", {"folder": folder, "scale": SCALE_FACTOR * scale.share, "buckets": BUCKETS})
    turns = best_of(
        scale.rounds,
        Contender("turns", lambda _: run_task("sql/sql_tasks.py", "turns", {"folder": folder, "repeats": REPEATS})),
    )["turns"]
    inserts = best_of(
        scale.rounds,
        Contender(
            "insert",
            lambda _: run_task(
                "sql/sql_tasks.py", "insert", {"folder": folder, "rows": scale.of(INSERT_ROWS), "repeats": REPEATS}
            ),
        ),
    )["insert"]

    def side(measured: Measured, name: str) -> Measured:
        return {"seconds": measured[f"{name}_seconds"]}

    alone = side(turns, "duckdb")
    return [
        at_most(
            "TPC-H, 22 queries, compacted tables, DuckDB on the same files", side(turns, "plain"), alone, PLAIN_LIMIT
        ),
        at_most(
            "TPC-H, 22 queries, a tenth of the rows upserted, DuckDB on compacted files",
            side(turns, "merged"),
            alone,
            MERGED_LIMIT,
        ),
        faster(
            f"INSERT … SELECT of {inserts['rows']:,} rows, table.write() of the same",
            side(inserts, "insert"),
            side(inserts, "write"),
            INSERT_LEAST,
        ),
    ]


def measure_cli_start(scale: Scale) -> list[Result]:
    """`lakelet sql "SELECT 1"` in a new process, from its start to its end."""
    command = [str(Path(sys.executable).with_name("lakelet")), "sql", "SELECT 1", "--warehouse", str(scale.folder)]

    def start(_: int) -> Measured:
        begin = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        return {"seconds": time.perf_counter() - begin}

    ours = best_of(max(scale.rounds, STARTS), Contender("start", start))["start"]
    text = f"{ours['seconds']:.2f} s for the whole process"
    return [under('lakelet sql "SELECT 1"', ours, ours["seconds"], START_SECONDS, text, "s")]
