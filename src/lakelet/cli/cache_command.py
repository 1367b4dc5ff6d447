"""Implementations of `cache stats`, `cache warm` and `cache clear`.

Every process has a cache of its own, so that these commands show what a process that opens the warehouse would load and keep.
"""

from __future__ import annotations

from collections.abc import Sequence

from lakelet.catalog.lake import Lake
from lakelet.cli.output.output import Output
from lakelet.errors import InvalidError, NotFoundError
from lakelet.operations.metadata_cache import cache_alerts, cache_report, clear_cache, warm_cache

_COLUMNS = (
    "level",
    "hit ratio",
    "hits",
    "misses",
    "average load",
    "entries",
    "bytes",
    "evictions",
)

_ALERT_COLUMNS = ("metric", "option", "alert")


def show_stats(lake: Lake, output: Output, tables: Sequence[str]) -> None:
    """Loads the tables twice and prints the counts of each level."""
    chosen = _chosen(lake, tables)
    _warm(lake, chosen)
    _warm(lake, chosen)
    rows = [
        (one.level, one.hit_ratio, one.hits, one.misses, one.average_load, one.entries, one.nbytes, one.evictions)
        for one in cache_report(lake, "/tiered_cache_stats")
    ]
    output.rows(f"metadata cache, {len(chosen)} tables", _COLUMNS, rows)
    metrics = lake.cache.get_all_metrics()
    if lake.cache.settings.compares:
        output.values("compatibility mode", {"comparisons": metrics.comparisons, "differences": metrics.differences})
    alerts = cache_alerts(lake)
    if alerts:
        output.rows("alerts", _ALERT_COLUMNS, [(one.metric, one.option, one.message) for one in alerts])


def warm_tables(lake: Lake, output: Output, tables: Sequence[str], hottest: int | None = None) -> None:
    """Loads the tables, or the hottest, and prints how many, how large they are, and how long it took."""
    if hottest is None:
        chosen = _chosen(lake, tables)
    elif tables:
        raise InvalidError("tables are named, or the hottest are taken: found both")
    else:
        chosen = [name for name, _ in lake.cache.hottest_tables(hottest)]
    _warm(lake, chosen)
    metrics = lake.cache.get_all_metrics()
    seconds = sum(stats.total_load_seconds for stats in metrics.level_stats.values())
    output.values(
        "loaded metadata",
        {
            "tables": len(chosen),
            "bytes": metrics.total_memory_usage_bytes,
            "load time": f"{seconds * 1000:.0f} ms",
        },
    )


def clear_tables(lake: Lake, output: Output, tables: Sequence[str]) -> None:
    """Drops the tables from the cache and prints how many they were."""
    chosen = _chosen(lake, tables)
    clear_cache(lake, chosen)
    output.values("cleared metadata", {"tables": len(chosen), "bytes left": lake.cache.tiers.nbytes})


def _chosen(lake: Lake, tables: Sequence[str]) -> list[str]:
    if tables:
        return list(tables)
    return [f"{database}.{name}" for database in lake.databases() for name in lake.tables(database)]


def _warm(lake: Lake, tables: Sequence[str]) -> None:
    done = warm_cache(lake, tables)
    if done.failed:
        more = f"; {len(done.failed) - 1} more could not be loaded" if len(done.failed) > 1 else ""
        raise NotFoundError(f"{done.failed[0][0]}: {done.failed[0][1]}{more}")
