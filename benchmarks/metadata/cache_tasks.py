"""Lakelet's side of the measurements of the metadata cache: hot against cold, in one process each."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

# Loaded before the clock starts.
import pyarrow.dataset  # noqa: F401

import lakelet
from benchmarks.append.rows import table as rows_of
from benchmarks.contender import serve
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

    found = {
        "seconds": _least(lambda: target.scan(where=where).plan(), 20 * repeats),
        "all_seconds": _least(lambda: target.scan().plan(), 20 * repeats),
        "cold_seconds": _least(lambda: cold(where), repeats),
        "cold_all_seconds": _least(lambda: cold(None), repeats),
        "new_seconds": _least(lambda: target.scan(where=where).plan(), repeats, lambda: _commit(other, day)),
        "new_all_seconds": _least(lambda: target.scan().plan(), repeats, lambda: _commit(other, day)),
    }
    return {**counted, **found}


def refreshes(folder: str, day: str, repeats: int) -> dict[str, Any]:
    """All four levels of a table: hot, loaded anew, and refreshed without and with a commit in between."""
    lake, other = lakelet.connect(folder), lakelet.connect(folder).table(TABLE)
    cache = lake.cache

    def load() -> None:
        cache.get_complete_metadata(TABLE, include_partitions=True)

    load()
    return {
        "seconds": _least(lambda: cache.refresh_table(TABLE), 20 * repeats),
        "hot_seconds": _least(load, 20 * repeats),
        "new_seconds": _least(lambda: cache.refresh_table(TABLE), repeats, lambda: _commit(other, day)),
        "cold_seconds": _least(load, repeats, lambda: cache.invalidate_table(TABLE)),
    }


def threads(folder: str, where: str, threads: int, lookups: int, limit_bytes: int) -> dict[str, Any]:
    """Look-ups and plans of many threads at once, in a cache of a few bytes; failures, and the most bytes that were cached."""
    lake = lakelet.connect(folder, {"cache.max-bytes": str(limit_bytes), "cache.staleness": "manual"})
    target = lake.table(TABLE)
    failures: list[str] = []
    most = [0] * threads

    def run(number: int) -> None:
        try:
            for place in range(lookups):
                if place % 1000 == 0:
                    target.scan(where=where).plan()
                lake.cache.get_table_metadata(TABLE)
                most[number] = max(most[number], lake.cache.tiers.nbytes)
        except Exception as error:
            failures.append(repr(error))

    running = [threading.Thread(target=run, args=(number,)) for number in range(threads)]
    begin = time.perf_counter()
    for one in running:
        one.start()
    for one in running:
        one.join()
    return {"seconds": time.perf_counter() - begin, "failures": failures[:3], "most_bytes": max(most)}


def popular(folder: str, tables: int, draws: int) -> dict[str, Any]:
    """Plans of many tables, a few of which are asked for most often: the share of hits of all levels."""
    lake = lakelet.connect(folder)
    lake.create_database("bench")
    for number in range(tables):
        lake.create_table(f"bench.t{number}", [("id", "BIGINT")])
        lake.table(f"bench.t{number}").write([{"id": number}])
    fresh: Lake = lakelet.connect(folder)
    chosen = np.random.default_rng(SEED).zipf(ZIPF_EXPONENT, draws) % tables
    begin = time.perf_counter()
    for number in chosen.tolist():
        fresh.table(f"bench.t{number}").scan().plan()
    took = time.perf_counter() - begin
    return {"seconds": took / draws, "hit_ratio": fresh.cache.get_all_metrics().overall_hit_ratio}


def _commit(table: Table, day: str) -> None:
    row = rows_of(1)
    table.write(row.append_column("dt", [[day]]))


def _least(action: Callable[[], object], repeats: int, before: Callable[[], object] | None = None) -> float:
    """The least time of some calls, each after `before`, whose time does not count."""
    taken = []
    for _ in range(max(1, repeats)):
        if before is not None:
            before()
        begin = time.perf_counter()
        action()
        taken.append(time.perf_counter() - begin)
    return min(taken)


if __name__ == "__main__":
    serve(plans, refreshes, threads, popular)
