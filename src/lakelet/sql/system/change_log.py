"""`$audit_log` and `$binlog`: rows with their kinds.

    $audit_log    rowkind  id  amount            $binlog    rowkind  id      amount
                  +I       1   10                           +I       [1]     [10]
                  -U       2   20                           +U       [2, 2]  [20, 30]      before, after
                  +U       2   30                           -D       [3]     [7]
                  -D       3   7

Read as a table they are its newest state, as in Paimon: the newest row of each key under the kind with which it was written,
deleted ones included until a compaction drops them. Rows of append tables are insertions. Over a range of snapshots, which
`changes_relation` gives, they are the changes between these. A fallback branch is not read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelet.commit.metadata.schemas import SchemaVersions
from lakelet.errors import InvalidError
from lakelet.lsm.key_value_columns import VALUE_KIND
from lakelet.model.arrow.arrow_types import arrow_schema
from lakelet.model.row_kind import SHORT_KINDS, RowKind
from lakelet.model.schema import TableSchema
from lakelet.predicate.row_filter import row_filter
from lakelet.read.merge.merge_reader import MergeReader
from lakelet.read.row_counts import only_rows
from lakelet.scan.plan import Where
from lakelet.sql.query.relation import Rows
from lakelet.sql.system.built_rows import required
from lakelet.sql.system.version import Version
from lakelet.table import Table
from lakelet.table.read.changes import ROW_KIND
from lakelet.table.read.table_scan import TableScan

ROWKIND = "rowkind"
AUDIT_LOG, BINLOG = "audit_log", "binlog"
_BEFORE, _AFTER = RowKind.UPDATE_BEFORE.short, RowKind.UPDATE_AFTER.short
# Row kinds and rows, the rows in columns of the table.
_Changes = Callable[[Sequence[str], Where], Iterator[tuple[pa.Array, pa.RecordBatch]]]


def audit_log(table: Table, version: Version) -> Rows:
    """`$audit_log`: the newest state, each row with its kind."""
    scan = version.scan(table)
    return _audited(scan.schema, _state_of(scan))


def binlog(table: Table, version: Version) -> Rows:
    """`$binlog`: the newest state, each value as an array of one."""
    scan = version.scan(table)
    return _packed(scan.schema, _state_of(scan))


def changes_relation(table: Table, system: str, start: int, end: int | None = None) -> Rows:
    """`$audit_log` or `$binlog` of the changes of snapshots (start, end], in the table's current columns."""
    if system not in (AUDIT_LOG, BINLOG):
        raise InvalidError(f"${system} has no changes; expected ${AUDIT_LOG} or ${BINLOG}")
    schema = table.schema

    def changes(names: Sequence[str], where: Where) -> Iterator[tuple[pa.Array, pa.RecordBatch]]:
        for batch in table.change_batches(start, end):
            yield batch.column(ROW_KIND), batch.select(list(names)) if names else only_rows(batch.num_rows)

    return (_audited if system == AUDIT_LOG else _packed)(schema, changes)


def _state_of(scan: TableScan) -> _Changes:
    def state(names: Sequence[str], where: Where) -> Iterator[tuple[pa.Array, pa.RecordBatch]]:
        narrowed = replace(scan, columns=tuple(names), where=where, fallback=None)
        if not scan.schema.primary_keys:
            for batch in narrowed.to_batches():
                yield pa.repeat(pa.scalar(RowKind.INSERT.short), batch.num_rows), batch
            return
        reader = MergeReader(
            scan.home,
            scan.schema,
            names,
            row_filter(where, scan.schema.fields),
            SchemaVersions(scan.home, {scan.schema.id: scan.schema}),
            versions=True,
            drop_deletes=False,
        )
        for batch in reader.batches(narrowed.plan().splits):
            numbers = batch.column(VALUE_KIND).cast(pa.int32())
            rows = batch.select(list(names)) if names else only_rows(batch.num_rows)
            yield pa.array(SHORT_KINDS).take(numbers), rows

    return state


def _audited(table_schema: TableSchema, changes: _Changes) -> Rows:
    fields = [field.with_nullable(True) for field in arrow_schema(table_schema.fields)]
    schema = pa.schema([required(ROWKIND, pa.string()), *fields])

    def read(columns: Sequence[str] | None, condition: pc.Expression | None) -> Iterator[pa.RecordBatch]:
        names = [name for name in schema.names if columns is None or name in columns]
        inside = [name for name in names if name != ROWKIND]
        for kinds, rows in changes(inside, _spared(condition, table_schema)):
            yield _joined(schema, names, kinds, rows)

    return Rows(schema, read)


def _packed(table_schema: TableSchema, changes: _Changes) -> Rows:
    fields = [pa.field(field.name, pa.list_(field.type)) for field in arrow_schema(table_schema.fields)]
    schema = pa.schema([required(ROWKIND, pa.string()), *fields])

    def read(columns: Sequence[str] | None, condition: pc.Expression | None) -> Iterator[pa.RecordBatch]:
        names = [name for name in schema.names if columns is None or name in columns]
        inside = [name for name in names if name != ROWKIND]
        for kinds, rows in _whole_updates(changes(inside, None)):
            last, packed = _pack(kinds, rows)
            yield _joined(schema, names, last, packed)

    return Rows(schema, read)


def _spared(condition: pc.Expression | None, schema: TableSchema) -> Where:
    """The condition if it is on the table's columns alone, else None: the query applies it again anyway."""
    if condition is None or ROWKIND in str(condition):
        return None
    try:
        row_filter(condition, schema.fields)
    except InvalidError:
        return None
    return condition


def _whole_updates(changes: Iterator[tuple[pa.Array, pa.RecordBatch]]) -> Iterator[tuple[pa.Array, pa.RecordBatch]]:
    """The same, with no update split across batches: a trailing -U row is moved to the next batch."""
    waiting: tuple[pa.Array, pa.RecordBatch] | None = None
    for change in changes:
        kinds, rows = change if waiting is None else _together(waiting, change)
        ready = len(kinds) - (kinds[-1].as_py() == _BEFORE) if len(kinds) else 0
        waiting = (kinds.slice(ready), rows.slice(ready)) if ready < len(kinds) else None
        if ready:
            yield kinds.slice(0, ready), rows.slice(0, ready)
    if waiting is not None:
        yield waiting


def _together(
    first: tuple[pa.Array, pa.RecordBatch], second: tuple[pa.Array, pa.RecordBatch]
) -> tuple[pa.Array, pa.RecordBatch]:
    kinds = pa.concat_arrays([first[0], second[0]])
    return kinds, pa.concat_batches([first[1], second[1]]) if second[1].num_columns else only_rows(len(kinds))


def _pack(kinds: pa.Array, rows: pa.RecordBatch) -> tuple[pa.Array, pa.RecordBatch]:
    """Kinds and arrays: two values where a -U row is followed by its +U row, else one."""
    before, after = (pc.equal(kinds, kind).to_numpy(zero_copy_only=False) for kind in (_BEFORE, _AFTER))
    follows = np.zeros(len(kinds), np.bool_)
    follows[1:] = before[:-1] & after[1:]
    starts = np.append(np.flatnonzero(~follows), len(kinds))
    offsets = pa.array(starts.astype(np.int32))
    last = kinds.take(pa.array(starts[1:] - 1))
    if not rows.num_columns:
        return last, only_rows(len(last))
    arrays = [pa.ListArray.from_arrays(offsets, column) for column in rows.columns]
    return last, pa.RecordBatch.from_arrays(arrays, names=rows.schema.names)


def _joined(schema: pa.Schema, names: Sequence[str], kinds: pa.Array, rows: pa.RecordBatch) -> pa.RecordBatch:
    if not names:
        return only_rows(len(kinds))
    arrays = [kinds if name == ROWKIND else rows.column(name) for name in names]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([schema.field(name) for name in names]))
