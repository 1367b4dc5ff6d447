"""The change of a table's schema that a payload's growth makes: one new version for all fields of a batch."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from lakelet.model.schema import TableSchema
from lakelet.model.schema_change import evolution
from lakelet.model.types import Array, Atomic, DataType, Kind, Row
from lakelet.options import SERVICE_EXACT_INTEGERS
from lakelet.service.ingest.payload_growth import PayloadGrowth
from lakelet.service.tables.served_table import OpenTable, exact_integers
from lakelet.service.tables.table_layout import PAYLOAD, TIMESTAMP

Misfit = tuple[int, str, Any]


def payload_row(schema: TableSchema) -> Row | None:
    """The type of the payload, None before its first field."""
    found = next((field.type for field in schema.fields if field.name == PAYLOAD), None)
    return found if isinstance(found, Row) else None


def grow_payload(
    opened: OpenTable,
    misfits: Sequence[Misfit],
    seen: TableSchema,
    check: Callable[[TableSchema], object] = lambda _: None,
) -> bool:
    """Alter a table so that it holds values that did not fit its schema `seen`, as far as it can; whether its schema is another
    now. Another process may alter it at any time: values that did not fit an older schema are to be looked at again, and the
    change is computed from the schema that is the newest when it is made. `check` is asked first, with the planned schema;
    what it raises leaves the table as it is."""
    newest = opened.schema
    if newest.id != seen.id:
        return True
    planned = grown_schema(newest, misfits)
    if planned is None:
        return False
    check(planned)
    opened.table.alter(lambda schema: grown_schema(schema, misfits) or schema)
    return True


def grown_schema(schema: TableSchema, misfits: Sequence[Misfit]) -> TableSchema | None:
    """The schema that holds the values, None where it is the same."""
    before, exact = payload_row(schema), exact_integers(schema)
    growth = PayloadGrowth(before, exact)
    for _, name, value in misfits:
        growth.show(name, value)
    after = growth.row
    changed = schema
    if after is not None and before is None:
        changed = evolution.add_column(changed, [PAYLOAD], after, after=TIMESTAMP)
    elif after is not None and before is not None and after is not before:
        changed = evolution.change_type(_with_doubles(changed, after), [PAYLOAD], after)
    if growth.exact != exact:
        text = json.dumps(sorted(growth.exact), ensure_ascii=False)
        changed = replace(changed, options={**changed.options, SERVICE_EXACT_INTEGERS.name: text})
    return None if changed is schema else changed


def _with_doubles(schema: TableSchema, after: Row) -> TableSchema:
    """The schema in which fields that were BIGINT and are DOUBLE afterwards are so already: what they have held is exact as a
    DOUBLE, which `evolution` cannot know."""
    fields = tuple(
        replace(field, type=_doubled(field.type, after)) if field.name == PAYLOAD else field for field in schema.fields
    )
    return replace(schema, fields=fields)


def _doubled(old: DataType, new: DataType) -> DataType:
    if isinstance(old, Row) and isinstance(new, Row):
        types = {field.name: field.type for field in new.fields}
        return replace(
            old,
            fields=tuple(replace(one, type=_doubled(one.type, types.get(one.name, one.type))) for one in old.fields),
        )
    if isinstance(old, Array) and isinstance(new, Array):
        return replace(old, element=_doubled(old.element, new.element))
    if isinstance(old, Atomic) and isinstance(new, Atomic) and (old.kind, new.kind) == (Kind.BIGINT, Kind.DOUBLE):
        return replace(old, kind=Kind.DOUBLE)
    return old
