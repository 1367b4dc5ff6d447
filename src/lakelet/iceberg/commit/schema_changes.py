"""Check that files written in one schema are valid in the table's current schema.

Columns are resolved by id: one that was added, renamed, widened or dropped meanwhile is read correctly. A required column that
the files do not have is not.
"""

from __future__ import annotations

from pyiceberg.schema import Schema

from lakelet.errors import ConflictError
from lakelet.iceberg.library_internals import fields_by_id, parents_by_id


def check_schema(table: str, written: Schema, now: Schema) -> None:
    """ConflictError where a column is required now that the files may not have."""
    if written.schema_id == now.schema_id:
        return
    had = fields_by_id(written)
    for field in fields_by_id(now).values():
        before = had.get(field.field_id)
        if not field.required or (before is not None and before.required):
            continue
        if before is None and (field.initial_default is not None or _inside_new(now, field.field_id, had)):
            continue
        name = now.find_column_name(field.field_id)
        raise ConflictError(
            f"table {table}: column {name} became required while rows without it were written; nothing was committed"
        )


def _inside_new(now: Schema, field_id: int, had: dict[int, object] | object) -> bool:
    """Whether a column is nested in one that the files do not have: where that is NULL, nothing inside is required."""
    parents = parents_by_id(now)
    parent = parents.get(field_id)
    return parent is not None and parent not in had  # type: ignore[operator]
