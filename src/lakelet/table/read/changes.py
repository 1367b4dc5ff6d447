"""The changes between two versions of a table, planned as units (`change_plan`) and read here one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import pyarrow as pa

from lakelet.commit.versions.told_versions import read_told, version_before
from lakelet.errors import InvalidError
from lakelet.model.arrow.arrow_types import arrow_schema
from lakelet.model.schema import TableSchema
from lakelet.storage.home import TableHome
from lakelet.table.read.change_plan import ChangePlanner
from lakelet.table.read.change_reader import ChangeReader
from lakelet.table.read.change_unit import ChangeUnit
from lakelet.table.read.read_ahead import read_ahead

ROW_KIND = "_row_kind"


def changes_schema(schema: TableSchema) -> pa.Schema:
    """`_row_kind` and the table's columns."""
    columns = [field.with_nullable(True) for field in arrow_schema(schema.fields)]
    return pa.schema([pa.field(ROW_KIND, pa.string(), nullable=False), *columns])


def read_changes(home: TableHome, schema: TableSchema, start: int, end: int) -> Iterator[pa.RecordBatch]:
    """The changes of snapshots (start, end], oldest first, in the table's current columns."""
    check_range(start, end)
    yield from changed_rows(home, schema, plan_changes(home, schema, start, end))


def check_range(start: object, end: object) -> None:
    """InvalidError unless these are ids of snapshots in their order."""
    for name, number in (("start", start), ("end", end)):
        if not isinstance(number, int) or isinstance(number, bool):
            raise InvalidError(f"{name} {number!r}: expected the id of a snapshot, found {type(number).__name__}")
    assert isinstance(start, int)
    assert isinstance(end, int)
    if not 0 <= start <= end:
        raise InvalidError(f"changes from {start} to {end}: expected 0 <= start <= end")


def plan_changes(home: TableHome, schema: TableSchema, start: int, end: int) -> tuple[ChangeUnit, ...]:
    """The units of snapshots (start, end], which are checked."""
    snapshots = list(read_ahead(partial(read_told, home), range(start + 1, end + 1)))
    if not snapshots:
        return ()
    return ChangePlanner(home, schema).changes(version_before(home, start), snapshots)


def changed_rows(home: TableHome, schema: TableSchema, units: Sequence[ChangeUnit]) -> Iterator[pa.RecordBatch]:
    """The rows of units with their kinds as the first column."""
    for kinds, rows in ChangeReader(home, schema).read(units):
        yield with_kinds(kinds, rows)


def with_kinds(kinds: pa.Array, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows with their kinds as the first column."""
    schema = pa.schema([pa.field(ROW_KIND, pa.string(), nullable=False), *batch.schema])
    return pa.RecordBatch.from_arrays([kinds, *batch.columns], schema=schema)
