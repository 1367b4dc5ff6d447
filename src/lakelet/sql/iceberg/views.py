"""A cache of the views of the latest queries over Iceberg tables: a snapshot and its files are immutable.

Only views of local tables are cached: credentials for another store may expire.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from lakelet.cache.lru_cache import LruCache
from lakelet.iceberg.scan import IcebergScan
from lakelet.sql.iceberg.table_view import IcebergView

_KEPT = 64
# A plan of more files or deleted rows than this is not cached.
_MOST_FILES = 10_000
_MOST_DELETED = 5_000_000


class IcebergViews:
    """The latest views, by version and conditions."""

    def __init__(self) -> None:
        self._views: LruCache[IcebergView] = LruCache()

    def view(self, key: Hashable, make: Callable[[], IcebergView]) -> IcebergView:
        """The cached view of a key, else a newly made one."""
        found = self._views.get(key)
        if found is None:
            found = make()
            if _is_kept(found.scan):
                self._views.put(key, found, limit=_KEPT)
        return found


def _is_kept(scan: IcebergScan) -> bool:
    deletes = {delete.path: delete.row_count for file in scan.files for delete in file.deletes}
    local = all(scan.local_path(file.path) is not None for file in scan.files)
    return local and len(scan.files) <= _MOST_FILES and sum(deletes.values()) <= _MOST_DELETED
