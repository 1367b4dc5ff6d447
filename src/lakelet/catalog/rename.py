"""Move a table's folder, on stores that can rename and on those that cannot.

A folder is a table as soon as it has a schema. Where the store can only copy, schemas are therefore copied last and removed
first. A crash midway leaves:

    before the schemas    the table under the old name, and copies under the new one that are no table: rename again
    among the schemas     the table under the old name; with several schema versions the new one may be visible as well, but
                          incomplete: drop it, then rename again
    while removing        the table under the new name, and perhaps an incomplete one under the old: drop that

Nobody may write to the table meanwhile.
"""

from __future__ import annotations

from lakelet.storage.paths import TablePaths
from lakelet.storage.store import ObjectStore


def in_the_way(store: ObjectStore, old: TablePaths, new: TablePaths) -> str | None:
    """A file under the new name that was not copied by an earlier, interrupted move of the same table."""
    sizes: dict[str, int] | None = None
    for info in store.list(new.root):
        if sizes is None:
            sizes = {found.path[len(old.root) :]: found.size for found in store.list(old.root)}
        if store.moves_atomically or sizes.get(info.path[len(new.root) :]) != info.size:
            return info.path
    return None


def move_table(store: ObjectStore, old: TablePaths, new: TablePaths) -> None:
    """Rename the folder `old` to `new`, under which nothing is in the way."""
    if store.moves_atomically:
        store.move_folder(old.root, new.root)
        return
    stored = [info.path for info in store.list(old.root)]
    ordered = sorted(stored, key=lambda path: path.startswith(f"{old.schema_folder}/"))
    for path in ordered:
        store.copy(path, new.root + path[len(old.root) :])
    store.delete_folder(old.schema_folder)
    store.delete_folder(old.root)
