"""Stored values of columns that upserted rows lack: looked up by key, in the version that the write is based on.

    rows without column v ─ their keys ─ point lookups, some keys at a time ─ rows with the stored v, or its default

The lookup sees every committed row, also those of level 0 that readers see only after compaction. Values are those of
one snapshot: the commit conflicts if the buckets of the rows were written to since, and the write is retried.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakelet.commit.metadata.schemas import SchemaVersions
from lakelet.errors import InvalidError
from lakelet.model.bucket_mode import BucketMode, bucket_mode
from lakelet.model.row_arrays import Kinds
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.model.types import DataType, Field, Row
from lakelet.options import ROWKIND_FIELD, TableOptions
from lakelet.read.lookup.point_reader import PointReader
from lakelet.scan.key_plan import Lookup, lookups
from lakelet.scan.plan import Planner
from lakelet.scan.tree import hides_level0
from lakelet.sink.rows.cast import RowCaster
from lakelet.sink.rows.defaults import ColumnDefaults
from lakelet.sink.rows.missing_columns import missing_fields
from lakelet.storage.home import TableHome

_KEYS_AT_ONCE = 131_072


class KeptValues:
    """Fills in the columns that rows of a primary-key table lack, from a snapshot."""

    def __init__(self, home: TableHome, schema: TableSchema, snapshot: Snapshot | None) -> None:
        if bucket_mode(schema) is BucketMode.POSTPONE_MODE:
            raise InvalidError(
                "missing='keep': rows of this table wait for compaction to give them a bucket ('bucket' = '-2'), so that their "
                "values cannot be looked up; give whole rows, or say missing='default'"
            )
        self._schema = schema
        self._snapshot = snapshot
        self._home = home
        self._schema_of = SchemaVersions(home, {schema.id: schema})
        self._plan = self._planner()
        self._keys = RowCaster([schema.field(name) for name in schema.primary_keys])
        # A row's kind is never taken from the stored row.
        self._row_kind = TableOptions(schema.options).get(ROWKIND_FIELD)

    def filled(
        self, batch: pa.RecordBatch, kinds: Kinds | None, defaults: ColumnDefaults, *, first_row: int
    ) -> pa.RecordBatch:
        """The rows with all columns of the table. Rows of new keys get `defaults`; InvalidError where there is none for a column
        that is NOT NULL."""
        whole = [name for name in self._schema.names if name not in batch.schema.names]
        self._check_keyed(whole)
        partly = [field.name for field in self._schema.fields if field.name not in whole and _lacks(batch, field)]
        looked = [name for name in (*whole, *partly) if name != self._row_kind]
        stored, places = self._stored(batch, looked, first_row)
        known = np.zeros(batch.num_rows, np.bool_)
        known[places] = True
        needed = [self._schema.field(name) for name in whole if not defaults.has(self._schema.field(name))]
        self._check_new(batch, needed, known, kinds, first_row)
        rows_of = np.full(batch.num_rows, stored.num_rows, np.int64)
        rows_of[places] = np.arange(len(places))
        # A default for each new row follows the stored values.
        fresh = np.flatnonzero(~known)
        rows_of[fresh] += np.arange(len(fresh))
        columns = []
        for field in self._schema.fields:
            index = batch.schema.get_field_index(field.name)
            if index >= 0 and field.name not in looked:
                columns.append(batch.column(index))
            elif field.name not in looked:
                columns.append(defaults.array(field, batch.num_rows))
            elif index < 0:
                columns.append(_taken(stored.column(field.name), defaults.array(field, len(fresh)), rows_of))
            else:
                before = _taken(stored.column(field.name), pa.nulls(len(fresh)), rows_of)
                columns.append(_filled_inside(batch.column(index), before, field.type, field.name))
        return pa.RecordBatch.from_arrays(columns, names=list(self._schema.names))

    def _planner(self) -> Callable[[pa.Table], Sequence[Lookup]]:
        """The planner of lookups, on one and the same snapshot however long the write takes."""
        snapshot, options = self._snapshot, TableOptions(self._schema.options)
        if snapshot is None:
            return lambda keys: ()
        planner = Planner(self._home, self._schema, self._schema_of, options)
        if not hides_level0(options):
            return lambda keys: planner.plan_keys(snapshot, keys)
        files = planner.committed_files(snapshot)
        return lambda keys: lookups(files, self._schema, keys)

    def _check_keyed(self, whole: Sequence[str]) -> None:
        for name in self._schema.primary_keys:
            if name in whole:
                raise InvalidError(f"the data lacks column {name!r}, which belongs to the primary key")

    def _check_new(
        self,
        batch: pa.RecordBatch,
        needed: Sequence[Field],
        known: NDArray[np.bool_],
        kinds: Kinds | None,
        first_row: int,
    ) -> None:
        """Check that a row of a new key has every column that is neither nullable nor has a default."""
        new = ~known if kinds is None else ~known & (kinds & 1 == 0)
        if not new.any():
            return
        for field in needed:
            if not field.type.nullable:
                row = int(new.argmax())
                key = batch.select(list(self._schema.primary_keys)).slice(row, 1).to_pylist()[0]
                raise InvalidError(
                    f"row {first_row + row} with the new key {key} lacks column {field.name!r}, which is "
                    f"{field.type} without a default"
                )

    def _stored(
        self, batch: pa.RecordBatch, names: Sequence[str], first_row: int
    ) -> tuple[pa.Table, NDArray[np.int64]]:
        """The stored values of the rows that exist, and the rows of the batch that they belong to."""
        keys = self._keys.cast(batch.select(list(self._schema.primary_keys)), first_row=first_row)
        reader = PointReader(self._home, self._schema, names, self._schema_of)
        tables, places = [reader.schema.empty_table()], [np.empty(0, np.int64)]
        for start in range(0, keys.num_rows, _KEYS_AT_ONCE):
            part = pa.Table.from_batches([keys.slice(start, _KEYS_AT_ONCE)])
            rows, at = reader.get_many(self._plan(part), part)
            tables.append(rows)
            places.append(at + start)
        return pa.concat_tables(tables), np.concatenate(places)


def _lacks(batch: pa.RecordBatch, field: Field) -> bool:
    return any(missing_fields(batch.schema.field(field.name).type, field.type, field.name))


def _taken(stored: pa.ChunkedArray, defaults: pa.Array, rows_of: NDArray[np.int64]) -> pa.Array:
    """Of each row the stored value, or one of the defaults where the row is not stored."""
    taken = pa.chunked_array([*stored.chunks, defaults.cast(stored.type)], stored.type).take(pa.array(rows_of))
    return pa.concat_arrays(taken.chunks) if taken.num_chunks != 1 else taken.chunk(0)


def _filled_inside(given: pa.Array, stored: pa.Array, data_type: DataType, where: str) -> pa.Array:
    """A ROW with the fields that it lacks, taken from the stored ROW; elements of lists and maps have no stored counterpart."""
    if pa.types.is_dictionary(given.type):
        given = given.dictionary_decode()
    if not isinstance(data_type, Row) or not pa.types.is_struct(given.type):
        lacking = next(missing_fields(given.type, data_type, where), None)
        if lacking is not None:
            raise InvalidError(
                f"missing='keep': the data lacks {lacking!r}, but elements of lists and maps have no key by which to "
                "find the stored ones: give whole values, or say missing='default'"
            )
        return given
    members = dict(zip([inner.name for inner in given.type], given.flatten(), strict=True))
    before = dict(zip([inner.name for inner in stored.type], stored.flatten(), strict=True))
    arrays = [
        _filled_inside(members[field.name], before[field.name], field.type, f"{where}.{field.name}")
        if field.name in members
        else before[field.name]
        for field in data_type.fields
    ]
    fields = [pa.field(field.name, array.type) for field, array in zip(data_type.fields, arrays, strict=True)]
    return pa.StructArray.from_arrays(arrays, fields=fields, mask=given.is_null())
