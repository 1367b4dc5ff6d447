"""Check that the rows of a snapshot can be read in the columns that a stream began with.

Columns of a stream are fixed when it begins. Snapshots of older schemas are read in them as any scan would. A snapshot made under
a newer schema stops the stream with an error that names the change, unless only columns were added and the stream may leave them
out.
"""

from __future__ import annotations

from lakelet.errors import ConflictError
from lakelet.model.schema import TableSchema
from lakelet.storage.home import TableHome


def check_schema(home: TableHome, began: TableSchema, found: TableSchema, merges: bool) -> None:
    """ConflictError where a snapshot's schema has changed since the stream began."""
    if found.id <= began.id or found.fields == began.fields:
        return
    was, now = ({field.id: field for field in schema.fields} for schema in (began, found))
    changes = [f"column {now[number].name!r} was added" for number in now.keys() - was.keys()]
    others = [f"column {was[number].name!r} was dropped" for number in was.keys() - now.keys()]
    for number in was.keys() & now.keys():
        old, new = was[number], now[number]
        if old.name != new.name:
            others.append(f"column {old.name!r} was renamed to {new.name!r}")
        if old.type != new.type:
            others.append(f"the type of column {old.name!r} became {new.type} from {old.type}")
    if not others and (merges or not changes):
        return
    advice = "" if others else ", or goes on without it where merge-schema is 'true'"
    where, what = home.where(home.paths.branch_root), ", ".join(sorted([*others, *changes]))
    raise ConflictError(
        f"{where}: {what} since the stream began (schema {began.id} became {found.id}); restarted, it reads the new "
        f"columns{advice}"
    )
