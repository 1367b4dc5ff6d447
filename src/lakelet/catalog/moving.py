"""Moving a table's folder, on stores that can rename and on those that cannot.

A folder is a table as soon as it has a schema. Where the store can only copy, schemas are therefore copied last and removed
first: whatever a crash leaves behind, exactly one of the two names is the table, and it is complete, or both are and
the rename can be run again after dropping one. Nobody may write to the table meanwhile.
"""

from __future__ import annotations

from lakelet.storage.paths import TablePaths
from lakelet.storage.store import ObjectStore


def move_table(store: ObjectStore, old: TablePaths, new: TablePaths) -> None:
    """Gives the folder `old` the name `new`, under which there is no table."""
    if store.moves_atomically:
        store.move_folder(old.root, new.root)
        return
    stored = [info.path for info in store.list(old.root)]
    ordered = sorted(stored, key=lambda path: path.startswith(f"{old.schema_folder}/"))
    for path in ordered:
        store.copy(path, new.root + path[len(old.root) :])
    store.delete_folder(old.schema_folder)
    store.delete_folder(old.root)
