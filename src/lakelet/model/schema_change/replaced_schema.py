"""The schema of CREATE OR REPLACE TABLE: whether the history can be kept, and which field ids the columns get.

Older snapshots are read in their own schema, so only what decides the location of files and the merge of their rows must
stay: the keys, the buckets and the options that are immutable on a live table.
"""

from __future__ import annotations

from dataclasses import replace

from lakelet.errors import InvalidError
from lakelet.model.bucket_mode import bucket_mode
from lakelet.model.schema import TableSchema
from lakelet.model.types import Field, renumber, with_nullable
from lakelet.options import check_alter, keeps_iceberg_metadata


def replaced_schema(old: TableSchema, target: TableSchema) -> TableSchema | None:
    """The schema that follows `old` and has the columns, options and comment of `target`; None where the table has to be a new
    one. A column keeps its id where its name and type stay; any other is a new one, so that no old value shows in it."""
    if (old.primary_keys, old.partition_keys) != (target.primary_keys, target.partition_keys):
        return None
    if bucket_mode(old) is not bucket_mode(target) or old.bucket_keys != target.bucket_keys:
        return None
    keys = {*old.primary_keys, *old.partition_keys, *old.bucket_keys}
    if any(not _same_type(old.field(name), target.field(name)) for name in keys):
        return None
    if keeps_iceberg_metadata(old.options) != keeps_iceberg_metadata(target.options):
        return None
    try:
        check_alter(old.options, target.options)
    except InvalidError:
        return None
    fields: list[Field] = []
    next_id = old.highest_field_id + 1
    for field in target.fields:
        before = next((other for other in old.fields if other.name == field.name), None)
        if before is not None and _same_type(before, field):
            fields.append(replace(field, id=before.id, type=with_nullable(before.type, field.type.nullable)))
            continue
        own = next_id
        inner, next_id = renumber(field.type, own + 1)
        fields.append(replace(field, id=own, type=inner))
    changed = replace(target, fields=tuple(fields), highest_field_id=next_id - 1, id=old.id, time_ms=old.time_ms)
    return old if changed == old else replace(changed, id=old.id + 1, time_ms=target.time_ms)


def _same_type(before: Field, after: Field) -> bool:
    """Whether two columns have the same type, ignoring the ids of inner fields and NOT NULL."""
    types = [renumber(with_nullable(field.type, True), 0)[0] for field in (before, after)]
    return types[0] == types[1]
