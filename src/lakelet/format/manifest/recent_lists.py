"""Remember the manifest lists that were encoded or decoded last, by their bytes.

Place in the data path: inside `manifest_file`. A commit writes two lists, and the next commit on top of it, mostly of the same
process, reads just these two. The key is the whole content of a file, so that what is remembered is never out of date, whatever
happens to a path; the files themselves are read all the same.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence

from lakelet.model.manifest import ManifestFile

_MOST_LISTS = 32
# Decoding a longer list is a smaller part of what is done with it, and it takes more memory.
_MOST_MANIFESTS = 64


class RecentLists:
    """The last few lists; threads may share one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lists: OrderedDict[bytes, tuple[ManifestFile, ...]] = OrderedDict()

    def get(self, data: bytes) -> tuple[ManifestFile, ...] | None:
        """The manifests of the list with this content, None where it is not remembered."""
        with self._lock:
            found = self._lists.get(data)
            if found is not None:
                self._lists.move_to_end(data)
            return found

    def put(self, data: bytes, manifests: Sequence[ManifestFile]) -> None:
        """Remember the manifests of a list, unless there are many, in place of the one that was used least recently."""
        if len(manifests) > _MOST_MANIFESTS:
            return
        with self._lock:
            self._lists[data] = tuple(manifests)
            self._lists.move_to_end(data)
            if len(self._lists) > _MOST_LISTS:
                self._lists.popitem(last=False)
