"""Measures Lakelet against its peers in one run: `make bench`, or `python -m benchmarks.run [NAME…] [--quick] [--rounds N]`.

Without names everything is measured; `--list` says what there is. Each measurement is a process of its own. The numbers
go to `benchmarks/results/<time>.json`, with the machine and the commit, and as a table of ratios to the terminal; with
`--page` also to a section of RESULTS.md. A target that is missed is marked, and that is all: nothing fails.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.append.measure_rows import measure_memory, measure_read, measure_write
from benchmarks.append.measure_small_write import measure_small_write
from benchmarks.benchmark import Result, Scale
from benchmarks.compaction.measure_changelog import measure_compaction_changelog
from benchmarks.compaction.measure_compaction import (
    measure_compaction,
    measure_compaction_inline,
    measure_compaction_memory,
)
from benchmarks.iceberg.measure_iceberg import measure_iceberg, measure_iceberg_large, measure_iceberg_memory
from benchmarks.iceberg.measure_iceberg_plan import measure_iceberg_plan
from benchmarks.keyed.measure_folds import measure_folds, measure_vector_memory, measure_vector_scan
from benchmarks.keyed.measure_keyed import (
    measure_get,
    measure_keyed_memory,
    measure_keyed_write,
    measure_merge_read,
    measure_winners,
)
from benchmarks.keyed.measure_lookup import measure_lookup
from benchmarks.keyed.measure_sst import measure_sst
from benchmarks.keyed.measure_upsert import measure_upsert
from benchmarks.metadata.measure_cache import measure_cache
from benchmarks.metadata.measure_cache_lookups import measure_cache_lookups
from benchmarks.metadata.measure_metadata import measure_avro, measure_commits, measure_plan
from benchmarks.results_page import PAGE, put_section
from benchmarks.retention.measure_retention import measure_expiry, measure_orphans
from benchmarks.rounds import REPOSITORY, ContenderError
from benchmarks.service.measure_batches import measure_batches
from benchmarks.service.measure_query import measure_query
from benchmarks.service.measure_single_write import measure_single_write
from benchmarks.service.measure_spread import measure_spread
from benchmarks.service.measure_start import measure_start
from benchmarks.spark.measure_cdc import measure_cdc
from benchmarks.spark.measure_iceberg_spark import measure_iceberg_spark
from benchmarks.spark.measure_spark import measure_spark_read, measure_spark_upsert, measure_spark_write
from benchmarks.spark.measure_spark_peers import measure_spark_peers
from benchmarks.spark.measure_stream_read import measure_stream_read
from benchmarks.spark.measure_stream_write import measure_stream_write
from benchmarks.sql.measure_sql import measure_cli_start, measure_sql
from benchmarks.writer.measure_writer import measure_writer

BENCHMARKS: dict[str, Callable[[Scale], list[Result]]] = {
    "write": measure_write,
    "read": measure_read,
    "plan": measure_plan,
    "cache": measure_cache,
    "cache_lookups": measure_cache_lookups,
    "commit": measure_commits,
    "small_write": measure_small_write,
    "writer": measure_writer,
    "memory": measure_memory,
    "avro": measure_avro,
    "merge_read": measure_merge_read,
    "folds": measure_folds,
    "vector_scan": measure_vector_scan,
    "vector_memory": measure_vector_memory,
    "keyed_write": measure_keyed_write,
    "keyed_memory": measure_keyed_memory,
    "get": measure_get,
    "lookup": measure_lookup,
    "sst": measure_sst,
    "upsert": measure_upsert,
    "winners": measure_winners,
    "compaction": measure_compaction,
    "compaction_memory": measure_compaction_memory,
    "compaction_inline": measure_compaction_inline,
    "compaction_changelog": measure_compaction_changelog,
    "expiry": measure_expiry,
    "orphans": measure_orphans,
    "iceberg": measure_iceberg,
    "iceberg_large": measure_iceberg_large,
    "iceberg_memory": measure_iceberg_memory,
    "iceberg_plan": measure_iceberg_plan,
    "spark_read": measure_spark_read,
    "spark_write": measure_spark_write,
    "spark_upsert": measure_spark_upsert,
    "stream_read": measure_stream_read,
    "spark_peers": measure_spark_peers,
    "iceberg_spark": measure_iceberg_spark,
    "stream_write": measure_stream_write,
    "cdc": measure_cdc,
    "sql": measure_sql,
    "cli_start": measure_cli_start,
    "service_write": measure_single_write,
    "service_batches": measure_batches,
    "service_query": measure_query,
    "service_spread": measure_spread,
    "service_start": measure_start,
}
_PACKAGES = ("pyarrow", "numpy", "numba", "pyiceberg", "deltalake", "fastavro", "pyspark")
RESULTS = Path(__file__).parent / "results"


def main() -> None:
    """Measure what the command line asks for."""
    arguments = _arguments()
    if arguments.list:
        for name, measure in BENCHMARKS.items():
            print(f"{name:20} {measure.__doc__}")
        return
    names = arguments.names or list(BENCHMARKS)
    share = 0.1 if arguments.quick else arguments.share
    rounds = arguments.rounds or (2 if arguments.quick else 5)
    report: dict[str, Any] = {"machine": _machine(), "commit": _commit(), "share": share, "benchmarks": {}}
    workplace = Path(tempfile.mkdtemp(prefix="lakelet-bench-", dir=arguments.folder))
    try:
        for name in names:
            scale = Scale(share, rounds, workplace / name)
            scale.folder.mkdir()
            print(f"\n{name}", flush=True)
            begin = time.perf_counter()
            try:
                results = BENCHMARKS[name](scale)
            except ContenderError as error:
                print(f"  failed: {error}")
                report["benchmarks"][name] = {"error": str(error)}
                continue
            for result in results:
                print(f"  {result.line()}", flush=True)
            report["benchmarks"][name] = [result.as_json() for result in results]
            if arguments.page:
                put_section(name, BENCHMARKS[name].__doc__ or "", results, report, rounds)
            print(f"  ({time.perf_counter() - begin:.0f} s)")
            shutil.rmtree(scale.folder)
    finally:
        shutil.rmtree(workplace, ignore_errors=True)
        _save(report)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure Lakelet against its peers.")
    parser.add_argument("names", nargs="*", choices=[*BENCHMARKS, []], metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument(
        "--quick", action="store_true", help="a tenth of the data and two rounds: whether it runs, not how fast"
    )
    parser.add_argument("--share", type=float, default=1.0, help="so much of the full size, such as 0.01")
    parser.add_argument("--page", action="store_true", help=f"write a section of {PAGE.name} for each benchmark")
    parser.add_argument("--rounds", type=int, help="how often each contender runs; the best counts (default 5)")
    parser.add_argument("--folder", help="where tables are made (default: the folder for temporary files)")
    parser.add_argument("--list", action="store_true", help="say what each benchmark measures")
    return parser.parse_args()


def _machine() -> dict[str, Any]:
    info = Path("/proc/cpuinfo").read_text(encoding="utf-8") if sys.platform == "linux" else ""
    models = [line.split(":", 1)[1].strip() for line in info.splitlines() if line.startswith("model name")]
    return {
        "processor": models[0] if models else platform.processor(),
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": platform.platform(),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in _PACKAGES},
        "load_before": os.getloadavg()[0],
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _commit() -> str:
    asked = subprocess.run(
        ["git", "-C", str(REPOSITORY), "describe", "--always", "--dirty"], capture_output=True, text=True, check=False
    )
    return asked.stdout.strip() or "none"


def _save(report: dict[str, Any]) -> None:
    RESULTS.mkdir(exist_ok=True)
    stamp = report["machine"]["time"].replace(":", "").replace("+0000", "Z")
    path = RESULTS / f"{stamp}.json"
    path.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    print(f"\n{path.relative_to(REPOSITORY)}")


if __name__ == "__main__":
    main()
