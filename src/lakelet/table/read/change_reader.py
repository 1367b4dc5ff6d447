"""Read change units: the kinds and the rows of changes, in the order of the units.

Neighbours that can be read together are: the files of a whole version in one scan, the buckets of one comparison in one
join.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TypeAlias

import pyarrow as pa

from lakelet.commit.metadata.schemas import SchemaVersions
from lakelet.model.schema import TableSchema
from lakelet.model.split import Split
from lakelet.predicate.row_filter import row_filter
from lakelet.read.changes.changelog_reader import read_changelog
from lakelet.read.changes.keyed_difference import keyed_difference
from lakelet.read.changes.row_difference import row_difference
from lakelet.read.table_reader import TableReader
from lakelet.storage.home import TableHome
from lakelet.table.read.change_unit import ChangeUnit, UnitKind
from lakelet.table.read.changed_keys import ChangedKeys

Change: TypeAlias = tuple[pa.Array, pa.RecordBatch]


class ChangeReader:
    """Reads changes of one table in the columns of `schema`."""

    def __init__(self, home: TableHome, schema: TableSchema) -> None:
        self._home = home
        self._schema = schema
        self._schema_of = SchemaVersions(home, {schema.id: schema})
        self._key = tuple((name, schema.field(name).type) for name in schema.primary_keys)
        self._changed = ChangedKeys(home, schema, self._schema_of) if schema.primary_keys else None
        self._rows = TableReader(home, schema, schema.names, row_filter(None, schema.fields), self._schema_of)

    def read(self, units: Sequence[ChangeUnit]) -> Iterator[Change]:
        """Kinds ("+I", "-U", "+U", "-D") and rows, none of them empty."""
        for (kind, _, by_keys), group in groupby(units, key=_together):
            for kinds, rows in self._looked_up(list(group)) if by_keys else self._read(kind, list(group)):
                if rows.num_rows:
                    yield kinds, rows

    def _read(self, kind: UnitKind, units: Sequence[ChangeUnit]) -> Iterator[Change]:
        before = [split for unit in units for split in unit.before]
        after = [split for unit in units for split in unit.after]
        if kind is UnitKind.COMPARED:
            yield from keyed_difference(self._stream(before), self._stream(after), self._key)
        elif kind is UnitKind.LOGGED:
            yield from read_changelog(self._home, self._schema, self._schema_of, after)
        elif kind is UnitKind.REPLACED:
            gone, come = row_difference(self._stream(before), self._stream(after))
            yield from _marked(gone, "-D")
            yield from _marked(come, "+I")
        else:
            yield from _marked(self._rows.batches(before), "-D")
            yield from _marked(self._rows.batches(after), "+I")

    def _looked_up(self, units: Sequence[ChangeUnit]) -> Iterator[Change]:
        assert self._changed is not None, "only primary-key tables are compared by key"
        before, after = self._changed.rows(units)
        yield from keyed_difference(before.to_reader(), after.to_reader(), self._key)

    def _stream(self, splits: Sequence[Split]) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(self._rows.schema, self._rows.batches(splits))


def _together(unit: ChangeUnit) -> tuple[UnitKind, int, bool]:
    """Units with the same value may be read together; only what leads to one version may be compared in one join."""
    joined = unit.kind in (UnitKind.COMPARED, UnitKind.REPLACED)
    return unit.kind, unit.snapshot_id if joined else 0, ChangedKeys.suffice(unit)


def _marked(batches: Iterator[pa.RecordBatch], kind: str) -> Iterator[Change]:
    for batch in batches:
        yield pa.repeat(kind, batch.num_rows), batch
