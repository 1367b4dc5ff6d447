"""Look up rows by primary key: keys of any form in, the newest rows out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelet.commit.metadata.schemas import SchemaVersions
from lakelet.errors import InvalidError
from lakelet.model.arrow.arrow_types import arrow_schema, to_arrow
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.model.types import INTEGERS, MAX_LENGTH, STRINGS, Atomic
from lakelet.options import TableOptions
from lakelet.read.lookup.point_reader import PointReader
from lakelet.scan.plan import Planner
from lakelet.sink.rows.cast import RowCaster
from lakelet.sink.rows.row_input import batches_of
from lakelet.storage.home import TableHome


def get_rows(
    home: TableHome, schema: TableSchema, snapshot: Snapshot | None, keys: Any, columns: Sequence[str] | None
) -> pa.Table:
    """The rows of a snapshot with these keys, in the order of the keys."""
    rows, _ = find_rows(home, schema, snapshot, key_table(keys, schema), chosen_columns(columns, schema))
    return rows


def get_row(
    home: TableHome,
    schema: TableSchema,
    snapshot: Snapshot | None,
    key: Mapping[str, Any],
    columns: Sequence[str] | None,
) -> dict[str, Any] | None:
    """The row of a snapshot with this key, None where there is none."""
    keys = one_key(key, schema)
    schema_of = SchemaVersions(home, {schema.id: schema})
    reader = PointReader(home, schema, chosen_columns(columns, schema), schema_of)
    if snapshot is None:
        return None
    planner = Planner(home, schema, schema_of, TableOptions(schema.options))
    return reader.get(planner.plan_keys(snapshot, keys), keys)


def find_rows(
    home: TableHome,
    schema: TableSchema,
    snapshot: Snapshot | None,
    keys: pa.Table,
    columns: Sequence[str],
    *,
    retracts: bool = False,
) -> tuple[pa.Table, npt.NDArray[np.int64]]:
    """The rows of a snapshot with these keys, and for each the index of its key, ascending. With `retracts` also the retracts of
    keys that are deleted, as far as files still hold them."""
    schema_of = SchemaVersions(home, {schema.id: schema})
    reader = PointReader(home, schema, columns, schema_of)
    if snapshot is None or not keys.num_rows:
        return reader.schema.empty_table(), np.empty(0, np.int64)
    planner = Planner(home, schema, schema_of, TableOptions(schema.options))
    return reader.get_many(planner.plan_keys(snapshot, keys), keys, retracts=retracts)


def chosen_columns(columns: Sequence[str] | None, schema: TableSchema) -> tuple[str, ...]:
    """The columns to read: those named, else all; InvalidError for none and for one named twice."""
    if isinstance(columns, str):
        raise InvalidError(f"columns {columns!r}: expected a list of names, such as [{columns!r}]")
    names = schema.names if columns is None else tuple(schema.field(name).name for name in columns)
    if not names or len(set(names)) != len(names):
        raise InvalidError(f"columns {list(names)}: expected at least one column, each once")
    return names


def one_key(key: Mapping[str, Any], schema: TableSchema) -> pa.Table:
    """One primary key in the table's types."""
    found = _plain_key(key, schema)
    return key_table([dict(key)], schema) if found is None else found


def _plain_key(key: Mapping[str, Any], schema: TableSchema) -> pa.Table | None:
    """A key whose values are whole numbers and text of the table's very types, as `key_table` would convert it; else None."""
    return _plain_columns([key], schema) if schema.primary_keys else None


def _plain_columns(keys: Sequence[Mapping[str, Any]], schema: TableSchema) -> pa.Table | None:
    """The same for many keys."""
    # The long way tells other columns of the table, which are ignored, from those that it does not have.
    if set(map(len, keys)) != {len(schema.primary_keys)}:
        return None
    columns: list[pa.Array] = []
    for name in schema.primary_keys:
        data_type, values = schema.field(name).type, [key.get(name) for key in keys]
        if not isinstance(data_type, Atomic):
            return None
        types = set(map(type, values))
        is_text = data_type.kind in STRINGS and data_type.precision == MAX_LENGTH and types == {str}
        if not is_text and not (data_type.kind in INTEGERS and types == {int}):
            return None
        try:
            columns.append(pa.array(values, to_arrow(data_type)))
        except (pa.ArrowException, OverflowError, ValueError):
            # The long way says what is wrong with it.
            return None
    return pa.Table.from_arrays(columns, list(schema.primary_keys))


def key_table(keys: Any, schema: TableSchema) -> pa.Table:
    """The primary keys of any supported input, in the table's types; other columns are ignored."""
    if not schema.primary_keys:
        raise InvalidError("the table has no primary key, so that no row has a key to be found by")
    if type(keys) is list and set(map(type, keys)) == {dict}:
        plain = _plain_columns(keys, schema)
        if plain is not None:
            return plain
    fields = [schema.field(name) for name in schema.primary_keys]
    caster = RowCaster(fields)
    arrow = arrow_schema(schema.fields)
    batches, rows = [], 0
    for batch in batches_of(keys, arrow, fields):
        missing = [name for name in schema.primary_keys if name not in batch.schema.names]
        if missing:
            raise InvalidError(
                f"a key needs the columns {', '.join(schema.primary_keys)}; {missing[0]!r} is missing, there are "
                f"{', '.join(batch.schema.names) or 'none'}"
            )
        batches.append(caster.cast(batch.select(list(schema.primary_keys)), first_row=rows))
        rows += batch.num_rows
    return pa.Table.from_batches(batches, caster.schema)
