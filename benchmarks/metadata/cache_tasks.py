"""Lakelet's side of the measurements of the metadata cache: hot against cold, in one process each."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

# Loaded before the clock starts.
import pyarrow.dataset  # noqa: F401

import lakelet
from benchmarks.append.rows import table as rows_of
from benchmarks.contender import serve, timed, timed_finely
from benchmarks.metadata.file_layout import SEED
from benchmarks.metadata.plan_layouts import TABLE
from lakelet.catalog.lake import Lake
from lakelet.table import Table

ZIPF_EXPONENT = 1.2


def plans(folder: str, where: str, day: str, repeats: int) -> dict[str, Any]:
    """Plans of one table by a lake that knows it, by one that does not, and after a commit of another lake."""
    lake, other = lakelet.connect(folder), lakelet.connect(folder).table(TABLE)
    target = lake.table(TABLE)
    counted: dict[str, int] = {}
    for _ in range(2):
        counted = {"files": target.scan(where=where).plan().files, "all_files": target.scan().plan().files}

    def cold(condition: str | None) -> None:
        lakelet.connect(folder).table(TABLE).scan(where=condition).plan()

    return {
        **counted,
        **_least("", lambda: target.scan(where=where).plan(), 20 * repeats),
        **_least("all_", lambda: target.scan().plan(), 20 * repeats),
        **_least("cold_", lambda: cold(where), repeats),
        **_least("cold_all_", lambda: cold(None), repeats),
        **_least("new_", lambda: target.scan(where=where).plan(), repeats, lambda: _commit(other, day)),
        **_least("new_all_", lambda: target.scan().plan(), repeats, lambda: _commit(other, day)),
    }


def refreshes(folder: str, day: str, repeats: int) -> dict[str, Any]:
    """All four levels of a table: hot, loaded anew, and refreshed without and with a commit in between."""
    lake, other = lakelet.connect(folder), lakelet.connect(folder).table(TABLE)
    cache = lake.cache

    def load() -> None:
        cache.get_complete_metadata(TABLE, include_partitions=True)

    load()
    return {
        **_least("", lambda: cache.refresh_table(TABLE), 20 * repeats),
        **_least("hot_", load, 20 * repeats),
        **_least("new_", lambda: cache.refresh_table(TABLE), repeats, lambda: _commit(other, day)),
        **_least("cold_", load, repeats, lambda: cache.invalidate_table(TABLE)),
    }


def make_tables(folder: str, tables: int) -> dict[str, Any]:
    """Tables of one row each."""
    lake = lakelet.connect(folder)
    lake.create_database("bench")
    for number in range(tables):
        lake.create_table(f"bench.t{number}", [("id", "BIGINT")]).write([{"id": number}])
    return {}


def threads(folder: str, tables: int, threads: int, lookups: int, limit_bytes: int) -> dict[str, Any]:
    """Look-ups of many threads at once, and a plan for every thousand, in a cache that holds a part of the tables: failures,
    evictions, and the most bytes that were cached."""
    lake = lakelet.connect(folder, {"cache.max-bytes": str(limit_bytes), "cache.staleness": "manual"})
    failures: list[str] = []
    most = [0] * threads

    def run(number: int) -> None:
        names = _drawn(tables, lookups, SEED + number)
        try:
            for place, name in enumerate(names):
                if place % 1000 == 0:
                    lake.table(name).scan().plan()
                lake.cache.get_table_metadata(name)
                most[number] = max(most[number], lake.cache.tiers.nbytes)
        except Exception as error:
            failures.append(repr(error))

    running = [threading.Thread(target=run, args=(number,)) for number in range(threads)]
    with timed() as timer:
        for one in running:
            one.start()
        for one in running:
            one.join()
    found = lake.cache.get_all_metrics()
    evictions = sum(one.eviction_count for one in found.level_stats.values())
    return {**timer.taken, "failures": failures[:3], "most_bytes": max(most), "evictions": evictions}


def popular(folder: str, tables: int, draws: int) -> dict[str, Any]:
    """Plans of many tables, a few of which are asked for most often: the share of hits of all levels."""
    fresh: Lake = lakelet.connect(folder)
    with timed() as timer:
        for name in _drawn(tables, draws, SEED):
            fresh.table(name).scan().plan()
    taken = {key: seconds / draws for key, seconds in timer.taken.items()}
    return {**taken, "hit_ratio": fresh.cache.get_all_metrics().overall_hit_ratio}


def _drawn(tables: int, draws: int, seed: int) -> list[str]:
    chosen = np.random.default_rng(seed).zipf(ZIPF_EXPONENT, draws) % tables
    return [f"bench.t{number}" for number in chosen.tolist()]


def _commit(table: Table, day: str) -> None:
    row = rows_of(1)
    table.write(row.append_column("dt", [[day]]))


def _least(
    name: str, action: Callable[[], object], repeats: int, before: Callable[[], object] | None = None
) -> dict[str, float]:
    """The least time of some calls, each after `before`, whose time does not count: on the clock, and of the processor."""
    taken = []
    for _ in range(max(1, repeats)):
        if before is not None:
            before()
        with timed_finely() as timer:
            action()
        taken.append(timer.taken)
    return {f"{name}{key}": min(one[key] for one in taken) for key in taken[0]}


if __name__ == "__main__":
    serve(plans, refreshes, make_tables, threads, popular)
