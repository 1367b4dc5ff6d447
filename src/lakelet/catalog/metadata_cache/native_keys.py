"""The cache keys of native tables."""

from __future__ import annotations

from lakelet.cache.keys import TableCacheKey
from lakelet.storage.paths import TablePaths

NATIVE_CATALOG = "lakelet"
"""The name of the catalog that a lake's own tables are in."""


def key_of(paths: TablePaths) -> TableCacheKey:
    """The key of a table on a branch. A table in a folder of no database has an empty one."""
    return named_key(paths.identifier, paths.branch)


def named_key(identifier: str, branch: str) -> TableCacheKey:
    """The key of the table `database.table`, or of a table that is named by its folder."""
    database, dot, table = identifier.partition(".")
    if not dot or "/" in identifier:
        return TableCacheKey(NATIVE_CATALOG, "", identifier, branch)
    return TableCacheKey(NATIVE_CATALOG, database, table, branch)


def paths_of(key: TableCacheKey) -> TablePaths:
    """The paths of a table."""
    paths = TablePaths.of(key.database, key.table) if key.database else TablePaths(key.table)
    return paths.on_branch(key.branch)
