"""Moving a table's folder, on stores that can rename and on those that cannot.

A folder is a table as soon as it has a schema. Where the store can only copy, schemas are therefore copied last and removed
first. What a crash midway leaves there:

    before the schemas    the table under the old name, and files under the new one that are no table: remove them
    among the schemas     the table under the old name; with several schema versions the new one may be visible as well, but
                          incomplete: drop it, then rename again
    while removing        the table under the new name, and perhaps an incomplete one under the old: drop that

Nobody may write to the table meanwhile.
"""

from __future__ import annotations

from lakelet.storage.paths import TablePaths
from lakelet.storage.store import ObjectStore


def move_table(store: ObjectStore, old: TablePaths, new: TablePaths) -> None:
    """Gives the folder `old` the name `new`, under which there is nothing."""
    if store.moves_atomically:
        store.move_folder(old.root, new.root)
        return
    stored = [info.path for info in store.list(old.root)]
    ordered = sorted(stored, key=lambda path: path.startswith(f"{old.schema_folder}/"))
    for path in ordered:
        store.copy(path, new.root + path[len(old.root) :])
    store.delete_folder(old.schema_folder)
    store.delete_folder(old.root)
