"""Which levels a change invalidates: a pure function, as the table in the design says.

    DROP_TABLE          1 2 3 4      the table
    ALTER_SCHEMA            3 4      the table
    DATA_CHANGE           2   4      the table
    METADATA_REFRESH    1 2   4      the table; schemas are kept unless they changed
    PARTITION_REFRESH         4      the table
    DATABASE_REFRESH    1 2 3 4      all tables of the database
    CATALOG_REFRESH     1 2 3 4      all tables of the catalog

Where level 1 is kept, its pointers are revalidated at the next use, whatever staleness is allowed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from lakelet.cache.keys import TableCacheKey
from lakelet.cache.level import CacheLevel


class InvalidationType(Enum):
    """A reason to drop cached metadata."""

    DROP_TABLE = "drop_table"
    ALTER_SCHEMA = "alter_schema"
    DATA_CHANGE = "data_change"
    METADATA_REFRESH = "metadata_refresh"
    PARTITION_REFRESH = "partition_refresh"
    CATALOG_REFRESH = "catalog_refresh"
    DATABASE_REFRESH = "database_refresh"


class Scope(Enum):
    """What an invalidation covers."""

    TABLE = "table"
    DATABASE = "database"
    CATALOG = "catalog"


_ALL = frozenset(CacheLevel)
_LEVELS = {
    InvalidationType.DROP_TABLE: _ALL,
    InvalidationType.ALTER_SCHEMA: frozenset({CacheLevel.SCHEMA, CacheLevel.PARTITION}),
    InvalidationType.DATA_CHANGE: frozenset({CacheLevel.SNAPSHOT, CacheLevel.PARTITION}),
    InvalidationType.METADATA_REFRESH: frozenset(
        {CacheLevel.TABLE_METADATA, CacheLevel.SNAPSHOT, CacheLevel.PARTITION}
    ),
    InvalidationType.PARTITION_REFRESH: frozenset({CacheLevel.PARTITION}),
    InvalidationType.CATALOG_REFRESH: _ALL,
    InvalidationType.DATABASE_REFRESH: _ALL,
}


def invalidated_levels(kind: InvalidationType) -> frozenset[CacheLevel]:
    """The levels that a change of this kind invalidates."""
    return _LEVELS[kind]


def scope_of(kind: InvalidationType) -> Scope:
    """Whether a change of this kind covers a table, a database or a catalog."""
    if kind is InvalidationType.CATALOG_REFRESH:
        return Scope.CATALOG
    return Scope.DATABASE if kind is InvalidationType.DATABASE_REFRESH else Scope.TABLE


@dataclass(frozen=True, slots=True)
class Invalidation:
    """A change elsewhere, as it is sent to other caches. Of a database or catalog the other parts of the key are ignored."""

    kind: InvalidationType
    table: TableCacheKey
