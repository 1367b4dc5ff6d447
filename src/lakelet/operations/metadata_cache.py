"""The metadata cache of a lake: statistics by catalog, database and table, settings, warm-up and refresh."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakelet.cache.coordinator import Refreshed, TieredCacheCoordinator
from lakelet.cache.keys import TableCacheKey
from lakelet.cache.level import CacheLevel
from lakelet.cache.settings import cache_option_names
from lakelet.cache.upkeep.alerts import Alert
from lakelet.cache.warm_up import WarmedUp, warm_up, warm_up_hottest
from lakelet.catalog.lake import Lake
from lakelet.catalog.metadata_cache.native_keys import NATIVE_CATALOG, key_of
from lakelet.errors import InvalidError, NotFoundError
from lakelet.model.near_names import nearest
from lakelet.table.table import Table

if TYPE_CHECKING:
    from lakelet.iceberg.table import IcebergTable

ROOT = "tiered_cache_stats"
INVALIDATE_TABLE = "invalidate_table_cache"
INVALIDATE_CATALOG = "invalidate_catalog_cache"
WARM_UP = "warmup_tables"
WARM_UP_HOTTEST = "warmup_hot_tables"
_ACTIONS = (INVALIDATE_TABLE, INVALIDATE_CATALOG, WARM_UP, WARM_UP_HOTTEST)
_PARTS = ("catalog", "database", "table")


@dataclass(frozen=True, slots=True)
class LevelReport:
    """The counts of a level; `cached` says which versions of a table are there, where the report is about one."""

    level: str
    hit_ratio: str
    hits: int
    misses: int
    average_load: str
    entries: int
    nbytes: int
    evictions: int
    cached: str | None = None


def cache_report(lake: Lake, path: str) -> tuple[LevelReport, ...]:
    """The counts at `/tiered_cache_stats[/catalog[/database[/table]]]`, a row a level."""
    named = _path_parts(path)
    if named:
        _check_catalog(lake, named[0])
        _check_names(lake, named)
    cache = lake.cache
    matches: Callable[[TableCacheKey], bool] | None = None
    if named:
        matches = lambda table: (table.catalog, table.database, table.table)[: len(named)] == named  # noqa: E731
    cached = _cached_versions(cache, TableCacheKey(*named)) if len(named) == len(_PARTS) else {}
    return tuple(
        LevelReport(
            level.value,
            f"{stats.hit_ratio * 100:.1f}%",
            stats.hit_count,
            stats.miss_count,
            f"{stats.average_load_ms:.0f} ms",
            stats.entries,
            stats.nbytes,
            stats.eviction_count,
            cached.get(level, "") if cached else None,
        )
        for level, stats in cache.tiers.stats(matches).items()
    )


def change_cache(lake: Lake, changes: Sequence[tuple[str, str]]) -> str:
    """Apply settings and actions, which are all checked first; what was done, for people."""
    cache, settings = lake.cache, lake.cache.settings
    actions: list[Callable[[], str]] = []
    for name, value in changes:
        if name in (INVALIDATE_TABLE, WARM_UP):
            tables = [cache.key(text.strip()) for text in value.split(",")]
            for table in tables:
                _check_catalog(lake, table.catalog)
            actions.append(_invalidating(cache, tables) if name == INVALIDATE_TABLE else _warming(cache, tables))
        elif name == INVALIDATE_CATALOG:
            _check_catalog(lake, value)
            actions.append(_invalidating_catalog(cache, value))
        elif name == WARM_UP_HOTTEST:
            actions.append(_warming_hottest(cache, _table_count(value)))
        elif name not in cache_option_names():
            raise InvalidError(f"configuration {name!r} is unknown{nearest(name, (*_ACTIONS, *cache_option_names()))}")
        else:
            settings = settings.changed(name, value)
            actions.append(_told(f"{name} = {value}"))
    cache.configure(settings)
    return "; ".join(action() for action in actions)


def warm_cache(lake: Lake, tables: Sequence[str]) -> WarmedUp:
    """Load levels 1 to 3 of tables."""
    return warm_up(lake.cache, tables)


def warm_hottest(lake: Lake, number: int) -> WarmedUp:
    """Load levels 1 to 3 of the tables that queries asked for most often in the last 24 hours."""
    return warm_up_hottest(lake.cache, number)


def cache_alerts(lake: Lake) -> tuple[Alert, ...]:
    """The metrics of the cache beyond their thresholds."""
    return lake.cache.alerts()


def clear_cache(lake: Lake, tables: Sequence[str]) -> None:
    """Drop everything of tables."""
    for table in tables:
        lake.cache.invalidate_table(table)


def refresh_table(lake: Lake, table: Table | IcebergTable) -> Refreshed:
    """Look what has changed in a table, and have the cache take over just that."""
    if isinstance(table, Table):
        return lake.cache.refresh_table(key_of(table.home.paths))
    database, _, name = table.name.rpartition(".")
    return lake.cache.refresh_table(TableCacheKey(table.catalog, database, name))


def refresh_database(lake: Lake, database: str, catalog: str = NATIVE_CATALOG) -> int:
    """Refresh all cached tables of a database; how many there are."""
    return lake.cache.refresh_database(catalog, database)


def refresh_catalog(lake: Lake, catalog: str) -> int:
    """Refresh all cached tables of a catalog; how many there are."""
    _check_catalog(lake, catalog)
    return lake.cache.refresh_catalog(catalog)


def _path_parts(path: str) -> tuple[str, ...]:
    parts = path.strip("/").split("/")
    if not path.startswith("/") or parts[0] != ROOT or len(parts) > 1 + len(_PARTS) or not all(parts):
        raise InvalidError(
            f"path {path!r}: expected '/{ROOT}', with /catalog, /catalog/database or /catalog/database/table behind it"
            f"{nearest(parts[0], [ROOT]) if parts[0] != ROOT else ''}"
        )
    return tuple(parts[1:])


def _check_catalog(lake: Lake, name: str) -> None:
    if name == NATIVE_CATALOG:
        return
    known = (NATIVE_CATALOG, *lake.catalogs.names())
    if name not in known:
        raise NotFoundError(
            f"catalog {name!r} is not known{nearest(name, known)}: the lake's own tables are in {NATIVE_CATALOG!r}"
        )


def _check_names(lake: Lake, named: Sequence[str]) -> None:
    """NotFoundError for a database or table that is not there."""
    if len(named) < 2:
        return
    catalog, database = named[:2]
    # Both have databases and tables by name.
    home = lake if catalog == NATIVE_CATALOG else lake.catalogs.open(catalog)
    databases = lake.databases() if isinstance(home, Lake) else home.namespaces()
    nested = not isinstance(home, Lake) and home.namespace_exists(database)
    if database not in databases and not nested:
        where = lake.location if isinstance(home, Lake) else f"catalog {catalog}"
        raise NotFoundError(f"database {database!r} is not in {where}{nearest(database, databases)}")
    if len(named) > 2 and named[2] not in home.tables(database):
        raise NotFoundError(f"table {named[2]!r} is not in {database}{nearest(named[2], home.tables(database))}")


def _cached_versions(cache: TieredCacheCoordinator, table: TableCacheKey) -> dict[CacheLevel, str]:
    status = cache.get_table_cache_status(table)
    current = "" if status.schema_id is None else f"current snapshot {status.snapshot_id}, schema {status.schema_id}"
    return {
        CacheLevel.TABLE_METADATA: current,
        CacheLevel.SNAPSHOT: _listed("snapshots", status.snapshot_ids),
        CacheLevel.SCHEMA: _listed("schemas", status.schema_ids),
        CacheLevel.PARTITION: "loaded" if CacheLevel.PARTITION in status.loaded_levels else "",
    }


def _listed(what: str, numbers: Sequence[int]) -> str:
    return f"{what} {', '.join(map(str, numbers))}" if numbers else ""


def _told(message: str) -> Callable[[], str]:
    return lambda: message


def _invalidating(cache: TieredCacheCoordinator, tables: Sequence[TableCacheKey]) -> Callable[[], str]:
    def run() -> str:
        for table in tables:
            cache.invalidate_table(table)
        return f"invalidated {', '.join(map(str, tables))}"

    return run


def _invalidating_catalog(cache: TieredCacheCoordinator, catalog: str) -> Callable[[], str]:
    def run() -> str:
        cache.invalidate_catalog(catalog)
        return f"invalidated catalog {catalog}"

    return run


def _warming(cache: TieredCacheCoordinator, tables: Sequence[TableCacheKey]) -> Callable[[], str]:
    return lambda: _warmed(warm_up(cache, tables))


def _warming_hottest(cache: TieredCacheCoordinator, number: int) -> Callable[[], str]:
    return lambda: _warmed(warm_up_hottest(cache, number))


def _warmed(done: WarmedUp) -> str:
    failed = "".join(f"; {table} was not loaded: {reason}" for table, reason in done.failed)
    return f"loaded {', '.join(done.loaded) or 'nothing'}{failed}"


def _table_count(text: str) -> int:
    if not text.strip().isdigit():
        raise InvalidError(f"configuration {WARM_UP_HOTTEST!r}: expected a number of tables, found {text!r}")
    return int(text)
