"""The metadata cache: hot plans, refreshes and look-ups against the same without it, and repeated merge reads."""

from __future__ import annotations

import shutil
from collections.abc import Mapping

from benchmarks.benchmark import Result, Scale, at_most, faster, under
from benchmarks.keyed.keyed_rows import KEYS
from benchmarks.keyed.measure_keyed import REPEATS, make_layout
from benchmarks.metadata.file_layout import Layout
from benchmarks.rounds import Contender, Measured, best_of, run_task

FILES_PER_DAY = 100
THREADS = 100
LOOKUPS = 10_000
LIMIT_BYTES = 1 << 20
TABLES = 1_000
DRAWS = 50_000
VALUES = ["price", "paid"]
MERGE_LIMITS = {"BIGINT": 2.1, "uuid": 3.5, "(string, int)": 3.5}


def measure_cache(scale: Scale) -> list[Result]:
    """What the metadata cache saves: plans, refreshes, many threads, many tables, repeated merge reads."""
    return [*_measure_plans(scale), *_measure_popular(scale), *_measure_merge_reads(scale)]


def _measure_plans(scale: Scale) -> list[Result]:
    layout = Layout(days=scale.of(1_000), files_per_day=FILES_PER_DAY, commits=100, order="mixed")
    folder, day = str(scale.folder / "plans"), layout.day(layout.days // 2)
    shape = {"days": layout.days, "files_per_day": FILES_PER_DAY, "commits": layout.commits, "order": layout.order}
    run_task("metadata/plan_layouts.py", "lakelet_table", {"folder": folder, **shape})
    where = f"dt = '{day}'"
    asked = {"folder": folder, "day": day, "repeats": REPEATS}
    found = best_of(
        scale.rounds,
        Contender("plans", lambda _: run_task("metadata/cache_tasks.py", "plans", {**asked, "where": where})),
        Contender("refreshes", lambda _: run_task("metadata/cache_tasks.py", "refreshes", asked)),
    )
    shutil.rmtree(folder)
    plans, refreshes = found["plans"], found["refreshes"]
    name = f"{layout.files:,} files"
    return [
        _within(f"hot plan of {name}, one partition", plans, "seconds", 5),
        _within(f"hot plan of {name}, all", plans, "all_seconds", 50),
        faster(f"hot plan of {name}, one partition, cold", plans, _other(plans, "cold_seconds"), None),
        faster(f"hot plan of {name}, all, cold", _other(plans, "all_seconds"), _other(plans, "cold_all_seconds"), None),
        _times(f"plan of {name} after a commit, one partition, cold", plans, "new_seconds", "cold_seconds", 10),
        _times(f"plan of {name} after a commit, all, cold", plans, "new_all_seconds", "cold_all_seconds", 10),
        _times(f"hot metadata of {name}, all levels, cold", refreshes, "hot_seconds", "cold_seconds", 100),
        _within(f"refresh of {name}, unchanged", refreshes, "seconds", 5),
        _times(f"refresh of {name} after a commit, loaded anew", refreshes, "new_seconds", "cold_seconds", 5),
    ]


def _measure_popular(scale: Scale) -> list[Result]:
    """Many tables, asked for by one thread, and by many in a cache that does not hold all of them."""
    folder, lookups = str(scale.folder / "tables"), scale.of(LOOKUPS)
    shape = {"tables": scale.of(TABLES), "draws": scale.of(DRAWS)}
    tables = {"folder": folder, "tables": shape["tables"]}
    run_task("metadata/cache_tasks.py", "make_tables", tables)
    found = run_task("metadata/cache_tasks.py", "popular", {"folder": folder, **shape})
    many = {**tables, "threads": THREADS, "lookups": lookups, "limit_bytes": LIMIT_BYTES}
    crowd = run_task("metadata/cache_tasks.py", "threads", many)
    shutil.rmtree(folder)
    ratio = found["hit_ratio"]
    return [
        Result(
            f"{shape['draws']:,} plans of {shape['tables']:,} tables, Zipf",
            found,
            {},
            ratio,
            f"{ratio * 100:.1f} % hits, {found['seconds'] * 1000:.2f} ms a plan",
            "≥ 95 % hits",
            ratio >= 0.95,
        ),
        _crowd(crowd, lookups),
    ]


def _measure_merge_reads(scale: Scale) -> list[Result]:
    results = []
    for key in KEYS:
        layout = make_layout(scale, key, 2)
        asked = {"columns": VALUES, "repeats": REPEATS}
        found = best_of(
            scale.rounds,
            Contender(
                "plain",
                lambda _, asked=asked, paths=layout.paths: run_task(
                    "peers/arrow_tasks.py", "read_again", {**asked, "paths": paths}
                ),
            ),
            Contender(
                "again",
                lambda _, asked=asked, folder=layout.folder: run_task(
                    "keyed/keyed_tasks.py", "read_again", {**asked, "folder": folder}
                ),
            ),
        )
        name = f"repeated merge read, {layout.name}, price and paid"
        results.append(at_most(f"{name}, pyarrow.dataset", found["again"], found["plain"], MERGE_LIMITS[key]))
        shutil.rmtree(layout.folder)
    return results


def _other(measured: Mapping[str, float], key: str) -> Measured:
    """Another of the times that one task has measured."""
    processor = key.removesuffix("seconds") + "user_seconds"
    return {"seconds": measured[key], "user_seconds": measured[processor]}


def _within(name: str, measured: Measured, key: str, limit_ms: float) -> Result:
    taken, processor = (_other(measured, key)[one] * 1000 for one in ("seconds", "user_seconds"))
    return under(name, measured, taken, limit_ms, f"{taken:.2f} ms (processor {processor:.2f} ms)", "ms")


def _times(name: str, measured: Measured, ours: str, peer: str, least: float) -> Result:
    return faster(name, _other(measured, ours), _other(measured, peer), least)


def _crowd(found: Measured, lookups: int) -> Result:
    most, each = found["most_bytes"] / (1 << 20), found["user_seconds"] / (THREADS * lookups) * 1e6
    text = (
        f"{len(found['failures'])} failures, {most:.2f} MiB cached at most, {found['evictions']:,} evictions, "
        f"{found['seconds']:.1f} s (processor {each:.0f} µs a look-up)"
    )
    right = not found["failures"] and found["most_bytes"] <= LIMIT_BYTES
    name = f"{THREADS} threads with {lookups:,} look-ups each, a cache of {LIMIT_BYTES >> 20} MiB"
    return Result(name, found, {}, most, text, f"no failure, ≤ {LIMIT_BYTES >> 20} MiB", right)
