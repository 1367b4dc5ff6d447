"""The options of the metadata cache. They are given to `connect`; most can be changed while a lake is open."""

from datetime import timedelta
from typing import Any

from lakelet.options.kinds import BOOL, DURATION, POSITIVE, SIZE, STRING, Kind, integer
from lakelet.options.option import ACTED, Option, declare
from lakelet.options.staleness import Staleness, parse_staleness

_ENTRIES: Kind[int] = integer(0)
_SECONDS: Kind[int] = integer(0)
STALENESS: Kind[Staleness] = Kind("staleness", "strict, manual or bounded(<milliseconds>)", parse_staleness)

ENABLE_TIERED_CACHE = declare(
    "enable_tiered_cache",
    BOOL,
    "true",
    "Whether metadata that was read once is cached. Without it every plan reads the store.",
    ACTED,
)
CACHE_STALENESS = declare(
    "cache.staleness",
    STALENESS,
    "strict",
    "How old the newest version may be that a query sees: `strict` looks at every query, `bounded(<ms>)` at most that often, "
    "`manual` only after REFRESH. Changes by the same process are always seen, and commits always look.",
    ACTED,
)
CACHE_MAX_BYTES = declare(
    "cache.max-bytes", SIZE, "256 mb", "Memory that all levels of the cache may take together.", ACTED
)
CACHE_LOAD_THREADS = declare(
    "cache.load-threads",
    POSITIVE,
    "8",
    "Threads that load metadata in the background: revalidation and warm-up.",
    ACTED,
)
COMPATIBILITY_MODE = declare(
    "tiered_cache_compatibility_mode",
    BOOL,
    "false",
    "Whether every answer is read from the store, compared with what the cache would have said, and a difference counted and "
    "logged.",
    ACTED,
)
ROLLOUT_PERCENTAGE = declare(
    "tiered_cache_rollout_percentage",
    integer(0, 100),
    "100",
    "Percentage of tables that are cached, chosen by a hash of their names.",
    ACTED,
)
CACHE_PERSIST_FOLDER = declare(
    "cache.persist-folder",
    STRING,
    None,
    "Local folder in which cached metadata and the query history survive the process; unset means none. Given to `connect` only.",
    ACTED,
)
CACHE_PERSIST_INTERVAL: Option[timedelta] = declare(
    "cache.persist-interval",
    DURATION,
    "1 min",
    "Time between two writes to `cache.persist-folder`; the first comes a moment after the first query, the last when the lake "
    "is closed.",
    ACTED,
)
CACHE_ADAPTIVE_SIZE = declare(
    "cache.adaptive-size",
    BOOL,
    "true",
    "Whether the cache shrinks while more than 80 % of the container's or machine's memory is in use, and grows back below 50 %.",
    ACTED,
)
CACHE_PREFETCH = declare(
    "cache.prefetch",
    BOOL,
    "true",
    "Whether tables that are usually asked for together with another one are loaded in the background with it.",
    ACTED,
)
CACHE_REFRESH_INTERVAL: Option[timedelta] = declare(
    "cache.refresh-interval",
    DURATION,
    "0 s",
    "Time between two refreshes of all cached tables in the background; 0 means none.",
    ACTED,
)

TABLE_METADATA_EXPIRE = declare(
    "iceberg_table_metadata_cache_expire_seconds",
    _SECONDS,
    "86400",
    "Seconds after which cached table metadata (level 1) is loaded again, of native tables too.",
    ACTED,
)
TABLE_METADATA_SIZE = declare(
    "iceberg_table_metadata_cache_max_size",
    _ENTRIES,
    "10000",
    "Tables in level 1 of the cache, native ones too.",
    ACTED,
)
TABLE_METADATA_BYTES = declare("cache.table-metadata.max-bytes", SIZE, "64 mb", "Memory of level 1.", ACTED)
SNAPSHOT_EXPIRE = declare(
    "iceberg_snapshot_cache_expire_seconds",
    _SECONDS,
    "7200",
    "Seconds after which a cached snapshot (level 2) is loaded again, of native tables too.",
    ACTED,
)
SNAPSHOT_SIZE = declare(
    "iceberg_snapshot_cache_max_size", _ENTRIES, "50000", "Snapshots in level 2 of the cache, native ones too.", ACTED
)
SNAPSHOT_BYTES = declare("cache.snapshot.max-bytes", SIZE, "64 mb", "Memory of level 2.", ACTED)
SCHEMA_EXPIRE = declare(
    "iceberg_schema_cache_expire_seconds",
    _SECONDS,
    "43200",
    "Seconds after which a cached schema version (level 3) is loaded again, of native tables too.",
    ACTED,
)
SCHEMA_SIZE = declare(
    "iceberg_schema_cache_max_size",
    _ENTRIES,
    "5000",
    "Schema versions in level 3 of the cache, native ones too.",
    ACTED,
)
SCHEMA_BYTES = declare("cache.schema.max-bytes", SIZE, "64 mb", "Memory of level 3.", ACTED)
PARTITION_EXPIRE = declare(
    "iceberg_partition_cache_expire_seconds",
    _SECONDS,
    "3600",
    "Seconds after which cached partitions, manifests and plans (level 4) are loaded again, of native tables too.",
    ACTED,
)
PARTITION_SIZE = declare(
    "iceberg_partition_cache_max_size",
    _ENTRIES,
    "10000",
    "Entries in level 4 of the cache: partitions of a snapshot, decoded manifests, plans. 0 switches the level off.",
    ACTED,
)
PARTITION_BYTES = declare("cache.partition.max-bytes", SIZE, "256 mb", "Memory of level 4.", ACTED)

# Expiry, entries and bytes of levels 1 to 4.
TIER_OPTIONS: tuple[tuple[Option[int], Option[int], Option[int]], ...] = (
    (TABLE_METADATA_EXPIRE, TABLE_METADATA_SIZE, TABLE_METADATA_BYTES),
    (SNAPSHOT_EXPIRE, SNAPSHOT_SIZE, SNAPSHOT_BYTES),
    (SCHEMA_EXPIRE, SCHEMA_SIZE, SCHEMA_BYTES),
    (PARTITION_EXPIRE, PARTITION_SIZE, PARTITION_BYTES),
)

CACHE_OPTIONS: tuple[Option[Any], ...] = (
    ENABLE_TIERED_CACHE,
    CACHE_STALENESS,
    CACHE_MAX_BYTES,
    CACHE_LOAD_THREADS,
    COMPATIBILITY_MODE,
    ROLLOUT_PERCENTAGE,
    CACHE_PERSIST_FOLDER,
    CACHE_PERSIST_INTERVAL,
    CACHE_ADAPTIVE_SIZE,
    CACHE_PREFETCH,
    CACHE_REFRESH_INTERVAL,
    *(option for options in TIER_OPTIONS for option in options),
)
