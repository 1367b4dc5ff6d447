"""Which cached tables are in a folder, whatever name they have been opened by.

A folder has several names where a symbolic link or a mount leads to it, or where the case of letters does not matter: two lakes
may be opened over one warehouse by different names, and a database or a table may be a link itself. Names are not compared, the
folders are.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from lakelet.cache.keys import TableCacheKey
from lakelet.catalog.metadata_cache.native_keys import NATIVE_CATALOG, paths_of

_ADDRESS = "://"


def is_folder(location: str | None) -> bool:
    """Whether a warehouse is a folder of this machine, rather than a bucket."""
    return location is not None and _ADDRESS not in location


def tables_in(folders: Iterable[str | None], tables: Iterable[TableCacheKey], warehouse: str) -> list[TableCacheKey]:
    """Those of a warehouse's native tables, on all branches, whose folder is one of these, and those whose folder is gone: one
    that was dropped or renamed can be compared no more."""
    wanted = {None, *(_identity(folder) for folder in folders if folder is not None)}
    top = warehouse.rstrip("/")
    native = (table for table in tables if table.catalog == NATIVE_CATALOG)
    return [table for table in native if _identity(f"{top}/{paths_of(table).root}") in wanted]


def _identity(folder: str) -> tuple[int, int] | None:
    try:
        found = os.stat(folder)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino
