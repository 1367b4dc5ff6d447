"""Columns of a table that incoming rows lack, and what an upsert does about them.

    error      InvalidError that names them: a row replaces the whole stored row, so that their values would be lost
    default    the column's default, else NULL
    keep       the values that are stored for the key

Only an upsert can lose values. Appends, overwrites and tables that keep the first row of a key fill in defaults; retracts
("-U", "-D") need nothing but their key. A row of a table that merges values (`partial-update`, `aggregation`) replaces none: a
column that it lacks takes its default as in Paimon, and is NULL without one, which a partial update and most functions leave out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from lakelet.errors import InvalidError
from lakelet.model.schema import TableSchema
from lakelet.model.types import Array, DataType, Field, Map, Multiset, Row
from lakelet.options import FIRST_ROW, FOLDING, MERGE_ENGINE, WRITE_MISSING_COLUMNS, TableOptions
from lakelet.sink.rows.defaults import ColumnDefaults
from lakelet.sink.rows.row_input import Apart

ERROR, DEFAULT, KEEP = "error", "default", "keep"
POLICIES = (ERROR, DEFAULT, KEEP)
_SHOWN = 5


def missing_policy(asked: str | None, schema: TableSchema, *, replaces: bool) -> str:
    """The policy of a write for missing columns: the caller's, else that of the table's option for upserts."""
    if asked is not None and asked not in POLICIES:
        raise InvalidError(f"missing {asked!r}: expected one of {', '.join(POLICIES)}")
    if asked == KEEP and not schema.primary_keys:
        raise InvalidError("missing='keep': the table has no primary key, so that no row has stored values to keep")
    if asked == KEEP and replaces:
        raise InvalidError(
            "missing='keep' goes with upserts: an overwrite replaces the rows whose values would be kept"
        )
    options = TableOptions(schema.options)
    if schema.primary_keys and options.get(MERGE_ENGINE) in FOLDING and asked != ERROR:
        with_default = [field.name for field in schema.fields if ColumnDefaults.of(schema, 0).has(field)]
        if asked == KEEP and with_default:
            raise InvalidError(
                f"missing='keep': the table merges values ('{MERGE_ENGINE.name}' = '{options.get(MERGE_ENGINE)}'), and a row "
                f"that lacks column {with_default[0]!r} would update it with its default"
            )
        return DEFAULT
    upserts = bool(schema.primary_keys) and not replaces and options.get(MERGE_ENGINE) != FIRST_ROW
    if asked == ERROR:
        return ERROR
    if not upserts:
        return DEFAULT
    return asked or str(options.get(WRITE_MISSING_COLUMNS))


def rows_apart(policy: str, kinds: object) -> Apart:
    """How dicts that leave out different columns are separated into batches. Where they keep stored values they have different
    keys, so that their order is irrelevant, unless row kinds are given in a parallel list."""
    if policy == DEFAULT:
        return Apart.NEVER
    listed = kinds is not None and not isinstance(kinds, str)
    return Apart.TOGETHER if policy == KEEP and not listed else Apart.IN_ORDER


def missing_columns(found: pa.Schema, fields: Sequence[Field]) -> tuple[str, ...]:
    """The columns that rows lack, and as `column.field` the fields that their ROW values lack."""
    names: list[str] = []
    for field in fields:
        index = found.get_field_index(field.name)
        if index < 0:
            names.append(field.name)
        else:
            names += missing_fields(found.field(index).type, field.type, field.name)
    return tuple(names)


def missing_fields(found: pa.DataType, wanted: DataType, where: str) -> Iterator[str]:
    """The fields that the ROWs inside a value lack, after the name of the value."""
    if pa.types.is_dictionary(found):
        found = found.value_type
    match wanted:
        case Row(fields) if pa.types.is_struct(found):
            for field in fields:
                index = found.get_field_index(field.name)
                if index < 0:
                    yield f"{where}.{field.name}"
                else:
                    yield from missing_fields(found.field(index).type, field.type, f"{where}.{field.name}")
        case Array(element) if hasattr(found, "value_type"):
            yield from missing_fields(found.value_type, element, f"{where}.element")
        case Map(key, value) if pa.types.is_map(found):
            yield from missing_fields(found.key_type, key, f"{where}.key")
            yield from missing_fields(found.item_type, value, f"{where}.value")
        case Multiset(element) if pa.types.is_map(found):
            yield from missing_fields(found.key_type, element, f"{where}.key")


def missing_error(names: Sequence[str], *, first_row: int = 0) -> InvalidError:
    """The error that names missing columns and the possible policies."""
    more = len(names) - _SHOWN
    shown = ", ".join(repr(name) for name in names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
    from_row = f" from row {first_row} on" if first_row else ""
    return InvalidError(
        f"the data lacks {'column' if len(names) == 1 else 'columns'} {shown}{from_row}, and an upsert replaces whole rows: give "
        "the values, or say missing='keep' (stored values stay) or missing='default' (the column's default, else NULL); the "
        f"table option '{WRITE_MISSING_COLUMNS.name}' says it for every write"
    )
