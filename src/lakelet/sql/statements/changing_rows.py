"""UPDATE, DELETE and MERGE on their way: rows are found by a query over one snapshot, and written as one commit.

    statement ─ query over the pinned version ─ rows that go, rows that come ─ commit ─ done again where others were faster

Where the statement names its target once more, it sees the pinned snapshot there too. A row of the target is changed once: a
statement by which several rows of the source would change it is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakelet.errors import InvalidError
from lakelet.model.bucket_mode import BucketMode, bucket_mode
from lakelet.model.row_kind import RowKind
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.model.types import with_nullable
from lakelet.options import MERGE_ENGINE, TableOptions
from lakelet.sink.cast import RowCaster
from lakelet.sink.defaults import default_array
from lakelet.sql.case_names import check_columns_apart
from lakelet.sql.context import Context
from lakelet.sql.iceberg.hooks import iceberg_handler
from lakelet.sql.relation import Relation, Rows
from lakelet.sql.result import SqlResult
from lakelet.sql.statement import Statement
from lakelet.sql.statements.change_clauses import Action, Change
from lakelet.sql.statements.change_query import CLAUSE, DEFAULTS, OLDER, TARGET, ChangeQuery
from lakelet.sql.statements.spans import IcebergTarget
from lakelet.storage.home import TableHome
from lakelet.table.keyed_deleting import check_none_waiting, check_takes_deletes
from lakelet.table.located_rows import FILE, ROW, LocatedRows
from lakelet.table.looked_up_change import LookedUpChange
from lakelet.table.row_changes import RowChanges, prepare_changes
from lakelet.table.scanning import TableScan
from lakelet.table.table import check_usable
from lakelet.table.writable import check_writable

_KINDS = {
    Action.UPDATE: RowKind.UPDATE_AFTER,
    Action.DELETE: RowKind.DELETE,
    Action.INSERT: RowKind.INSERT,
    Action.NOTHING: RowKind.INSERT,
}


def run_change(context: Context, statement: Statement, change: Change) -> SqlResult:
    """Finds and changes rows; gives the last snapshot made, and how many rows changed."""
    if isinstance(change.target, IcebergTarget):
        return iceberg_handler(context, "changing:run_change")(context, statement, change)
    table = change.target.table
    schema = table.schema
    check_writable(schema)
    run = _ChangeRun(context, statement, change, table.home)
    # Rows that wait for a bucket have no numbers by which the commit could tell that others came in.
    postpones = bool(schema.primary_keys) and bucket_mode(schema) is BucketMode.POSTPONE_MODE
    prepare = prepare_changes(table.home, run.find)
    made = LookedUpChange(table.home, table.new_commit(), prepare, change.inserts or postpones).run()
    return SqlResult.changed(None if made is None else made.id, run.rows)


@dataclass(slots=True)
class _ChangeRun:
    """A statement, found out on one version after the other until a commit stands. `rows` counts those of the last one."""

    context: Context
    statement: Statement
    change: Change
    home: TableHome
    rows: int = field(default=0)

    def find(self, schema: TableSchema, snapshot: Snapshot | None, located: LocatedRows) -> Iterator[RowChanges]:
        """What changes in a version."""
        self.rows = 0
        check_usable(schema)
        check_names(schema)
        self._check_engine(schema)
        check_none_waiting(self.home, schema, snapshot)
        places = not schema.primary_keys or self.change.source is not None
        scan = TableScan(self.home, schema, snapshot, schema.names)
        relations = self._relations(schema, scan, located if places else None)
        dealt = _Dealing(self.change, schema, self.home)
        with changed_rows(self.context, self.statement, self.change, schema, relations, places=places) as result:
            for batch in result.to_batches():
                self.rows += batch.num_rows
                yield from dealt.deal(batch)
        dealt.check()

    def _relations(self, schema: TableSchema, scan: TableScan, located: LocatedRows | None) -> dict[str, Relation]:
        return {
            TARGET: scan if located is None else Rows(located.schema, located.read),
            DEFAULTS: pa.table({one.name: default_array(one, 1) for one in schema.fields}),
            # Where the statement names the table once more.
            self.change.target.full_name: scan,
        }

    def _check_engine(self, schema: TableSchema) -> None:
        if not schema.primary_keys:
            return
        actions = {clause.action for clause in self.change.clauses}
        engine = TableOptions(schema.options).get(MERGE_ENGINE)
        if engine != "deduplicate" and actions & {Action.UPDATE, Action.DELETE}:
            what = "keeps the first row of each key" if engine == "first-row" else "merges rows of one key"
            raise InvalidError(
                f"{self.change.name}: {self.change.target.shown} {what} ('{MERGE_ENGINE.name}' = '{engine}'), so that its "
                "rows can be neither changed nor deleted"
            )
        if Action.DELETE in actions:
            check_takes_deletes(schema)


def changed_rows(
    context: Context,
    statement: Statement,
    change: Change,
    schema: TableSchema,
    relations: Mapping[str, Relation],
    *,
    places: bool,
    has_coarse: bool = True,
) -> SqlResult:
    """A row for each that changes: its clause, where `places` says so its place, and what it becomes. `relations` has the target
    and the defaults of columns."""
    names: Sequence[str] = ()
    if any(clause.takes_all for clause in change.clauses):
        bare = ChangeQuery(statement, replace(change, clauses=()), schema, places)
        names = bare.source().schema(context, relations).names
    query = ChangeQuery(statement, change, schema, places, names, has_coarse)
    inner = query.inner()
    return query.outer(inner, inner.schema(context, relations)).run(context, relations)


def several_match(change: Change) -> InvalidError:
    """The error of a statement by which a row would be changed twice, with nobody to say which change counts."""
    return InvalidError(f"{change.name}: several rows of the source match one row of {change.target.shown}")


def check_names(schema: TableSchema) -> None:
    """InvalidError where DuckDB would take two columns for one."""
    check_columns_apart(schema.names, "the table")


class _Dealing:
    """Turns what the query gives into rows that go and rows that come."""

    def __init__(self, change: Change, schema: TableSchema, home: TableHome) -> None:
        self._change = change
        self._schema = schema
        self._home = home
        self._kinds = np.array([_KINDS[clause.action] for clause in change.clauses], np.int8)
        self._coming = RowCaster(schema.fields)
        # Rows that are there are taken away as they are, whatever the schema asks of them by now.
        self._going = RowCaster([replace(one, type=with_nullable(one.type, True)) for one in schema.fields])
        self._came = 0
        self._files: list[NDArray[np.int32]] = []
        self._rows: list[NDArray[np.int64]] = []
        self._keys: list[pa.RecordBatch] = []

    def deal(self, batch: pa.RecordBatch) -> Iterator[RowChanges]:
        """The changes that rows of the query are."""
        if OLDER in batch.schema.names and pa.compute.any(batch.column(OLDER)).as_py():
            raise InvalidError(
                f"{self._change.name}: a row would get a lower value of 'sequence.field' than it has, and would stay as it is"
            )
        kinds = self._kinds[batch.column(CLAUSE).to_numpy()]
        gone = kinds != RowKind.INSERT
        files = rows = None
        if ROW in batch.schema.names:
            files = batch.column(FILE).filter(pa.array(gone)).to_numpy().astype(np.int32)
            rows = batch.column(ROW).filter(pa.array(gone)).to_numpy().astype(np.int64)
            self._files.append(files)
            self._rows.append(rows)
        names = [name for name in self._schema.names if name in batch.schema.names]
        comes = kinds != RowKind.DELETE
        coming = self._cast_coming(batch.filter(pa.array(comes)).select(names)) if names else None
        if self._schema.primary_keys:
            yield from self._keyed(batch.select(names), coming, kinds, comes)
        else:
            empty = pa.RecordBatch.from_pylist([], self._coming.schema)
            yield RowChanges(coming if coming is not None else empty, None, files, rows)

    def _keyed(
        self, batch: pa.RecordBatch, coming: pa.RecordBatch | None, kinds: NDArray[np.int8], comes: NDArray[np.bool_]
    ) -> Iterator[RowChanges]:
        if not comes.all():
            going = self._going.cast(batch.filter(pa.array(~comes)))
            self._remember_keys(going)
            yield RowChanges(going, kinds[~comes])
        if coming is not None and coming.num_rows:
            self._remember_keys(coming)
            yield RowChanges(coming, kinds[comes])

    def _cast_coming(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        cast = self._coming.cast(batch, first_row=self._came)
        self._came += batch.num_rows
        return cast

    def _remember_keys(self, rows: pa.RecordBatch) -> None:
        if self._change.inserts:
            keys = list(self._schema.primary_keys)
            self._keys.append(pa.RecordBatch.from_arrays([rows.column(name) for name in keys], keys))

    def check(self) -> None:
        """InvalidError where a row would be changed twice, with nobody to say which change counts."""
        if self._change.source is not None and self._rows:
            files, rows = np.concatenate(self._files), np.concatenate(self._rows)
            order = np.lexsort((rows, files))
            twice = (np.diff(files[order]) == 0) & (np.diff(rows[order]) == 0)
            if twice.any():
                raise several_match(self._change)
        if self._keys:
            keys = pa.Table.from_batches(self._keys)
            counts = keys.group_by(keys.column_names).aggregate([([], "count_all")])
            if counts.num_rows < keys.num_rows:
                found = (
                    counts.sort_by([("count_all", "descending")]).select(keys.column_names).slice(0, 1).to_pylist()[0]
                )
                shown = ", ".join(f"{name} = {value!r}" for name, value in found.items())
                raise InvalidError(f"{self._change.name}: several rows would be written with the key {shown}")
