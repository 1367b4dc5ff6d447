"""The cache keys of native tables."""

from __future__ import annotations

from functools import lru_cache

from lakelet.cache.keys import TableCacheKey
from lakelet.storage.paths import MAIN_BRANCH, TablePaths

NATIVE_CATALOG = "lakelet"
"""The name of the catalog that a lake's own tables are in."""


@lru_cache(maxsize=10_000)
def key_of(paths: TablePaths) -> TableCacheKey:
    """The key of a table on a branch. A table in a folder of no database has an empty one."""
    return named_key(paths.identifier, paths.branch)


@lru_cache(maxsize=10_000)
def main_key(paths: TablePaths) -> TableCacheKey:
    """The key of the table itself, for what belongs to no branch."""
    return key_of(paths.on_branch(MAIN_BRANCH))


def named_key(identifier: str, branch: str) -> TableCacheKey:
    """The key of the table `database.table`, or of a table that is named by its folder."""
    database, dot, table = identifier.partition(".")
    if not dot or "/" in identifier:
        return TableCacheKey(NATIVE_CATALOG, "", identifier, branch)
    return TableCacheKey(NATIVE_CATALOG, database, table, branch)


@lru_cache(maxsize=10_000)
def paths_of(key: TableCacheKey) -> TablePaths:
    """The paths of a table."""
    paths = TablePaths.of(key.database, key.table) if key.database else TablePaths(key.table)
    return paths.on_branch(key.branch)
