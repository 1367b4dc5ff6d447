"""Remove folders that are left without files, up to the table's own folder.

A store removes a folder only if it is empty, so that a file that a writer is just putting there keeps it.
"""

from __future__ import annotations

from collections.abc import Iterable

from lakelet.storage.home import TableHome


def remove_empty_folders(home: TableHome, folders: Iterable[str]) -> int:
    """Remove those of the folders that are empty, and the folders above that become so; returns their number."""
    removed = 0
    waiting = {folder for folder in folders if folder.startswith(f"{home.paths.root}/")}
    while waiting:
        # The deepest first: a folder above may be empty only afterwards.
        folder = max(waiting, key=lambda path: path.count("/"))
        waiting.discard(folder)
        if home.store.remove_empty_folder(folder):
            removed += 1
            above = folder.rpartition("/")[0]
            if above != home.paths.root:
                waiting.add(above)
    return removed
