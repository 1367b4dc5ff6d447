"""Metadata: the plan of a table with many files, commits as snapshots pile up, and the Avro codec under both."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from typing import Any

from benchmarks.benchmark import Result, Scale, faster
from benchmarks.metadata.file_layout import ROWS_PER_FILE, Layout
from benchmarks.rounds import HERE, PYPAIMON, REPOSITORY, Contender, ContenderError, Measured, best_of, run_task

COMMITS = 5_000
EARLY = 50
COMMIT_WINDOW = 40


def measure_plan(scale: Scale) -> list[Result]:
    """A cold plan with a partition filter, in both orders of commits."""
    return [result for order in ("by_day", "mixed") for result in _measure_layout(scale, order)]


def _measure_layout(scale: Scale, order: str) -> list[Result]:
    layout = Layout(days=scale.of(1_000), files_per_day=100, commits=100, order=order)
    shape = {"days": layout.days, "files_per_day": layout.files_per_day, "order": order}
    folder, iceberg_folder = str(scale.folder / f"lakelet-{order}"), str(scale.folder / f"iceberg-{order}")
    made = run_task("metadata/plan_layouts.py", "lakelet_table", {"folder": folder, "commits": layout.commits, **shape})
    # pyiceberg's table has the same files in about as many manifests as Lakelet's merging leaves.
    iceberg = run_task("metadata/plan_layouts.py", "iceberg_table", {"folder": iceberg_folder, "commits": 10, **shape})
    day = layout.day(layout.days // 2)

    def pypaimon(native: bool, _: int) -> Measured:
        arguments = {"folder": folder, "column": "dt", "value": day, "native": native}
        return run_task("peers/pypaimon_tasks.py", "plan", arguments, PYPAIMON)

    found = best_of(
        scale.rounds,
        Contender(
            "lakelet",
            lambda _: run_task("append/lakelet_tasks.py", "plan", {"folder": folder, "where": f"dt = '{day}'"}),
        ),
        Contender("pypaimon", partial(pypaimon, False)),
        Contender("native", partial(pypaimon, True)),
        Contender(
            "pyiceberg",
            lambda _: run_task(
                "peers/pyiceberg_tasks.py", "plan", {"metadata": iceberg["metadata"], "column": "dt", "value": day}
            ),
        ),
    )
    ours = found["lakelet"]
    assert ours["files"] == found["pyiceberg"]["files"] == layout.files_per_day
    assert found["pypaimon"]["rows"] == found["native"]["rows"] == layout.files_per_day * ROWS_PER_FILE
    name = f"plan of {layout.files:,} files {order.replace('_', ' ')} ({made['manifests']} manifests)"
    results = []
    for peer, least in (("pypaimon", 10), ("pyiceberg", 5), ("native", None)):
        label = "pypaimon native" if peer == "native" else peer
        results.append(faster(f"{name}, {label}", ours, found[peer], least))
        results.append(
            faster(f"{name}, {label}, with start-up and imports", ours, found[peer], None, "process_seconds")
        )
    return results


def measure_commits(scale: Scale) -> list[Result]:
    """Appends of one row: the median write near the 5,000th snapshot against that near the 50th."""
    count = scale.of(COMMITS)
    arguments = {"count": count, "windows": [EARLY, count], "width": COMMIT_WINDOW}
    runs = []
    for number in range(1 if scale.quick else 2):
        runs.append(
            run_task(
                "append/lakelet_tasks.py", "commits", {"folder": str(scale.folder / f"table-{number}"), **arguments}
            )
        )
        assert runs[-1]["rows"] == count
    early, late = (min(run["windows"][str(end)] for run in runs) for end in (EARLY, count))
    text = f"{late / early:.2f} × ({late * 1000:.1f} against {early * 1000:.1f} ms, medians of {COMMIT_WINDOW})"
    return [
        Result(
            f"commit at {count:,} snapshots, at {EARLY}",
            {"seconds": late},
            {"seconds": early, "runs": runs},
            late / early,
            text,
            "≤ 2 ×",
            late <= 2 * early,
        )
    ]


def measure_avro(scale: Scale) -> list[Result]:
    """Decoding and encoding manifests against fastavro; `avro_codec.py` is the measurement."""
    done = subprocess.run(
        [sys.executable, str(HERE / "metadata" / "avro_codec.py"), str(scale.of(10_000))],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(REPOSITORY / "src"), **os.environ},
    )
    if done.returncode:
        raise ContenderError(f"avro_codec.py failed:\n{done.stderr[-2000:]}")
    report: dict[str, Any] = json.loads(done.stdout)
    results = []
    for name, found in report["results"].items():
        ratio, least = found["times_faster"], 4 if name.startswith("decode") else 1
        text = f"{ratio:.1f} × as fast ({found['ms']} against {found['fastavro_ms']} ms)"
        ours, peer = {"seconds": found["ms"] / 1000}, {"seconds": found["fastavro_ms"] / 1000}
        results.append(
            Result(f"avro {name.replace('_', ' ')}, fastavro", ours, peer, ratio, text, f"≥ {least} ×", ratio >= least)
        )
    return results
