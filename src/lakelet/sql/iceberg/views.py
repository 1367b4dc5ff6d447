"""Views of the latest queries over Iceberg tables, kept: a snapshot never changes, nor do its files.

Kept are views of tables on this machine alone: what it takes to read another store, such as a credential, may end.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable

from lakelet.iceberg.scan import IcebergScan
from lakelet.sql.iceberg.table_view import IcebergView

_KEPT = 64
# A plan of more files or deleted rows than this is made anew.
_MOST_FILES = 10_000
_MOST_DELETED = 5_000_000


class IcebergViews:
    """The latest views, by what they are views of."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._views: OrderedDict[object, IcebergView] = OrderedDict()

    def view(self, key: Hashable, make: Callable[[], IcebergView]) -> IcebergView:
        """The view that is known by a key, made where it is not."""
        with self._lock:
            found = self._views.get(key)
            if found is not None:
                self._views.move_to_end(key)
                return found
        made = make()
        if _is_kept(made.scan):
            with self._lock:
                self._views[key] = made
                while len(self._views) > _KEPT:
                    self._views.popitem(last=False)
        return made


def _is_kept(scan: IcebergScan) -> bool:
    deletes = {delete.path: delete.row_count for file in scan.files for delete in file.deletes}
    local = all(scan.local_path(file.path) is not None for file in scan.files)
    return local and len(scan.files) <= _MOST_FILES and sum(deletes.values()) <= _MOST_DELETED
