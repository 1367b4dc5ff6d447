"""Views of the latest queries over Iceberg tables, kept: a snapshot never changes, nor do its files.

Kept are views of tables on this machine alone: what it takes to read another store, such as a credential, may end.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from lakelet.cache.lru_cache import LruCache
from lakelet.iceberg.scan import IcebergScan
from lakelet.sql.iceberg.table_view import IcebergView

_KEPT = 64
# A plan of more files or deleted rows than this is made anew.
_MOST_FILES = 10_000
_MOST_DELETED = 5_000_000


class IcebergViews:
    """The latest views, by what they are views of."""

    def __init__(self) -> None:
        self._views: LruCache[IcebergView] = LruCache()

    def view(self, key: Hashable, make: Callable[[], IcebergView]) -> IcebergView:
        """The view that is known by a key, made where it is not."""
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
