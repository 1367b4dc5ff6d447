"""Run UPDATE, DELETE and MERGE: find the changed rows by a query over one snapshot, and write them as one commit.

    statement ─ query over the pinned version ─ removed and added rows ─ commit ─ retried after a concurrent commit

Where the statement references its target once more, it reads the pinned snapshot there too. A row of the target is changed at
most once: a statement in which several source rows match it is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakelet.catalog.sql_result import SqlResult
from lakelet.errors import InvalidError
from lakelet.lsm.engine.row_update import row_update
from lakelet.model.bucket_mode import BucketMode, bucket_mode
from lakelet.model.row_kind import RowKind
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.model.types import Field, with_nullable
from lakelet.options import FIRST_ROW, MERGE_ENGINE, TableOptions
from lakelet.sink.rows.cast import RowCaster
from lakelet.sink.rows.defaults import LITERALS, ColumnDefaults
from lakelet.sql.context import Context
from lakelet.sql.iceberg.hooks import iceberg_handler
from lakelet.sql.query.case_names import check_columns_apart
from lakelet.sql.query.relation import Relation, Rows
from lakelet.sql.statement import Statement
from lakelet.sql.statements.change.change_clauses import Action, Change
from lakelet.sql.statements.change.change_query import ChangeQuery, source_query
from lakelet.sql.statements.change.folded_update import lost_value
from lakelet.sql.statements.change.merge_query import UNNAMED
from lakelet.sql.statements.change.returned_rows import ReturnedRows
from lakelet.sql.statements.change.row_expressions import check_row_expressions
from lakelet.sql.statements.change.whole_rows import whole_rows
from lakelet.sql.statements.text.internal_names import InternalNames
from lakelet.sql.statements.text.spans import IcebergTarget
from lakelet.storage.home import TableHome
from lakelet.table.change.keyed_deletion import check_none_waiting, check_takes_deletes
from lakelet.table.change.looked_up_change import LookedUpChange
from lakelet.table.change.row_changes import RowChanges, prepare_changes
from lakelet.table.read.located_rows import LocatedRows
from lakelet.table.read.table_scan import TableScan
from lakelet.table.usable import check_usable
from lakelet.table.write.writable import check_writable

_KINDS = {
    Action.UPDATE: RowKind.UPDATE_AFTER,
    Action.DELETE: RowKind.DELETE,
    Action.INSERT: RowKind.INSERT,
    Action.NOTHING: RowKind.INSERT,
    Action.ERROR: RowKind.INSERT,
}


def run_change(context: Context, statement: Statement, change: Change) -> SqlResult:
    """Runs the statement; returns the last committed snapshot and the number of changed rows."""
    if isinstance(change.target, IcebergTarget):
        return iceberg_handler(context, "row_change:run_change")(context, statement, change)
    table = change.target.table
    schema = table.schema
    check_writable(schema)
    # Defaults use the time of the statement, however often it is retried.
    run = _ChangeRun(context, statement, change, table.home, table.home.clock.now_ms())
    # Rows in a postponed bucket have no numbers by which the commit could detect concurrently added ones.
    postpones = bool(schema.primary_keys) and bucket_mode(schema) is BucketMode.POSTPONE_MODE
    prepare = prepare_changes(table.home, run.find)
    made = LookedUpChange(table.home, table.new_commit(), prepare, change.inserts or postpones).run()
    return run.result(None if made is None else made.id)


@dataclass(slots=True)
class _ChangeRun:
    """The evaluations of a statement, on one version after another until a commit succeeds. `rows` counts those of the last."""

    context: Context
    statement: Statement
    change: Change
    home: TableHome
    now_ms: int
    rows: int = field(default=0)
    returned: ReturnedRows | None = field(default=None)

    def result(self, snapshot_id: int | None) -> SqlResult:
        """The result of the committed statement."""
        return SqlResult.changed(snapshot_id, self.rows) if self.returned is None else self.returned.result()

    def find(self, schema: TableSchema, snapshot: Snapshot | None, located: LocatedRows) -> Iterator[RowChanges]:
        """Finds the changes in a version."""
        self.rows = 0
        check_usable(schema)
        check_names(schema)
        self._check_engine(schema)
        check_none_waiting(self.home, schema, snapshot)
        self.returned = returned_rows(self.context, self.statement, self.change, schema)
        places = not schema.primary_keys or self.change.source is not None or self.change.joins
        scan = TableScan(self.home, schema, snapshot, schema.names)
        # Read where the statement references the target once more.
        again: dict[str, Relation] = {self.change.target.full_name: scan}
        found = found_names(self.context, self.statement, self.change, schema, again)
        target: Relation = scan if not places else located_rows(located, found.names)
        builder = _ChangeBuilder(self.change, schema, found.names)
        with changed_rows(
            self.context,
            self.statement,
            self.change,
            schema,
            found,
            target,
            again,
            places=places,
            defaults=ColumnDefaults.of(schema, self.now_ms),
        ) as result:
            for batch in result.to_batches():
                self.rows += batch.num_rows
                return_rows(self.returned, self.change, schema, found.names, batch)
                yield from builder.build(batch)
        builder.check()

    def _check_engine(self, schema: TableSchema) -> None:
        if not schema.primary_keys:
            return
        actions = {clause.action for clause in self.change.clauses}
        engine = TableOptions(schema.options).get(MERGE_ENGINE)
        if Action.UPDATE in actions or (engine == FIRST_ROW and Action.DELETE in actions):
            row_update(schema, f"{self.change.name}: {self.change.target.shown}")
        if Action.DELETE in actions:
            check_takes_deletes(schema)


@dataclass(frozen=True, slots=True)
class FoundNames:
    """The internal names of a statement's query, and the columns of the source of a MERGE."""

    names: InternalNames
    source_columns: Sequence[str] = ()


def found_names(
    context: Context, statement: Statement, change: Change, schema: TableSchema, relations: Mapping[str, Relation]
) -> FoundNames:
    """Chooses internal names that neither the statement nor its tables use."""
    columns: Sequence[str] = ()
    if change.given is not None:
        columns = schema.names
    elif change.joins:
        columns = source_query(statement, change).schema(context, relations).names
    return FoundNames(InternalNames.beside(statement.reader.text, (*schema.names, *columns)), columns)


def located_rows(located: LocatedRows, names: InternalNames) -> Rows:
    """The rows of the target with their positions, under names that no column has."""
    schema = located.schema_with(names.file, names.row)
    return Rows(schema, partial(located.read, file=names.file, row=names.row))


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """The rows of a change's query, with volatile defaults, which differ from row to row, filled in where a clause uses them."""

    result: SqlResult
    defaults: ColumnDefaults
    open_columns: Sequence[tuple[Field, frozenset[int]]]
    clause: str

    def __enter__(self) -> ChangedRows:
        self.result.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.result.__exit__(*error)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows with all their values."""
        for batch in self.result.to_batches():
            filled = batch
            for column, clauses in self.open_columns:
                numbers = batch.column(self.clause).to_numpy(zero_copy_only=False)
                filled = self.defaults.replaced(filled, column, np.isin(numbers, list(clauses)))
            yield filled


def changed_rows(
    context: Context,
    statement: Statement,
    change: Change,
    schema: TableSchema,
    found: FoundNames,
    target: Relation,
    relations: Mapping[str, Relation],
    *,
    places: bool,
    has_coarse: bool = True,
    defaults: ColumnDefaults = LITERALS,
) -> ChangedRows:
    """One row for each changed row: its clause, with `places` its position, and its new values."""
    names = found.names
    known = {**relations, names.target: target}
    if change.given is not None:
        known[names.rows] = change.given.numbered(names.number)
    spans = [span for clause in change.clauses for span in clause.expressions]
    check_row_expressions(context, statement, spans, change.name)
    instead = _rows_as_values(context, statement, change, schema, found, relations)
    query = ChangeQuery(statement, change, schema, names, places, found.source_columns, instead, has_coarse, defaults)
    asked = query.defaulted()
    columns = [one for one in schema.fields if one.name in asked and defaults.has(one)]
    if columns:
        known[names.defaults] = defaults.row(columns)
    inner = query.inner()
    result = query.outer(inner, inner.schema(context, known)).run(context, known)
    return ChangedRows(result, defaults, [(one, asked[one.name]) for one in defaults.volatile(columns)], names.clause)


def _rows_as_values(
    context: Context,
    statement: Statement,
    change: Change,
    schema: TableSchema,
    found: FoundNames,
    relations: Mapping[str, Relation],
) -> dict[int, str]:
    spans = [span for clause in change.clauses for span in clause.expressions]
    spans += [span for span in (change.on, change.where) if span is not None]
    instead = whole_rows(context, statement, spans, change.target.alias, schema.names, found.source_columns)
    if change.joins and change.given is None:
        alias = change.source_alias or UNNAMED
        instead |= whole_rows(context, statement, spans, alias, found.source_columns, schema.names)
    elif instead and change.source is not None:
        others = source_query(statement, change).schema(context, relations).names
        instead = whole_rows(context, statement, spans, change.target.alias, schema.names, others)
    return instead


def returned_rows(context: Context, statement: Statement, change: Change, schema: TableSchema) -> ReturnedRows | None:
    """The collector of RETURNING rows, if the statement has RETURNING."""
    if change.returning is None:
        return None
    target = change.target
    return ReturnedRows(
        context, statement, change.returning, target.alias, target.qualifier, schema.fields, change.name == "MERGE"
    )


def return_rows(
    returned: ReturnedRows | None, change: Change, schema: TableSchema, names: InternalNames, batch: pa.RecordBatch
) -> None:
    """Passes changed rows to RETURNING."""
    if returned is None:
        return
    actions = np.array([clause.action.value for clause in change.clauses])[batch.column(names.clause).to_numpy()]
    for action in dict.fromkeys(clause.action.value for clause in change.clauses):
        returned.add(batch.filter(pa.array(actions == action)).select(list(schema.names)), action)


def several_match(change: Change) -> InvalidError:
    """The error of a statement that would change a row twice, which is ambiguous."""
    return InvalidError(f"{change.name}: several rows of the source match one row of {change.target.shown}")


def check_names(schema: TableSchema) -> None:
    """InvalidError if two columns differ in case alone, which DuckDB cannot distinguish."""
    check_columns_apart(schema.names, "the table")


class _ChangeBuilder:
    """Converts the rows of the query into removed and added rows."""

    def __init__(self, change: Change, schema: TableSchema, names: InternalNames) -> None:
        self._change = change
        self._schema = schema
        self._names = names
        self._kinds = np.array([_KINDS[clause.action] for clause in change.clauses], np.int8)
        self._coming = RowCaster(schema.fields)
        # Existing rows are removed as they are, even if they violate a NOT NULL added since.
        self._going = RowCaster([replace(one, type=with_nullable(one.type, True)) for one in schema.fields])
        self._came = 0
        self._files: list[NDArray[np.int32]] = []
        self._rows: list[NDArray[np.int64]] = []
        self._keys: list[pa.RecordBatch] = []

    def build(self, batch: pa.RecordBatch) -> Iterator[RowChanges]:
        """Converts a batch of the query."""
        names = self._names
        if names.older in batch.schema.names and pa.compute.any(batch.column(names.older)).as_py():
            raise InvalidError(
                f"{self._change.name}: a row would get a lower value of 'sequence.field' than it has, and would stay as it is"
            )
        if names.lost in batch.schema.names and batch.column(names.lost).null_count < batch.num_rows:
            raise lost_value(batch.column(names.lost).drop_null()[0].as_py(), self._schema, self._change.name)
        self._check_taken(batch)
        kinds = self._kinds[batch.column(names.clause).to_numpy()]
        gone = kinds != RowKind.INSERT
        files = rows = None
        if names.row in batch.schema.names:
            files = batch.column(names.file).filter(pa.array(gone)).to_numpy().astype(np.int32)
            rows = batch.column(names.row).filter(pa.array(gone)).to_numpy().astype(np.int64)
            self._files.append(files)
            self._rows.append(rows)
        columns = [name for name in self._schema.names if name in batch.schema.names]
        comes = kinds != RowKind.DELETE
        coming = self._cast_coming(batch.filter(pa.array(comes)).select(columns)) if columns else None
        if self._schema.primary_keys:
            yield from self._keyed(batch.select(columns), coming, kinds, comes)
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

    def _check_taken(self, batch: pa.RecordBatch) -> None:
        if self._names.taken not in batch.schema.names:
            return
        taken = batch.filter(batch.column(self._names.taken)).select(list(self._schema.primary_keys))
        if taken.num_rows:
            shown = ", ".join(f"{name} = {value!r}" for name, value in taken.slice(0, 1).to_pylist()[0].items())
            raise InvalidError(
                f"{self._change.name}: a row would be inserted with the key {shown}, which a row has that did not match"
            )

    def _remember_keys(self, rows: pa.RecordBatch) -> None:
        if self._change.inserts:
            keys = list(self._schema.primary_keys)
            self._keys.append(pa.RecordBatch.from_arrays([rows.column(name) for name in keys], keys))

    def check(self) -> None:
        """InvalidError if a row would be changed twice, which is ambiguous."""
        if self._change.source is not None and self._rows:
            files, rows = np.concatenate(self._files), np.concatenate(self._rows)
            order = np.lexsort((rows, files))
            twice = (np.diff(files[order]) == 0) & (np.diff(rows[order]) == 0)
            if twice.any():
                raise several_match(self._change)
        check_distinct_keys(self._keys, self._change.name)


def check_distinct_keys(keys: Sequence[pa.RecordBatch], name: str) -> None:
    """InvalidError if several rows would be written with the same key."""
    if not keys:
        return
    table = pa.Table.from_batches(keys)
    counts = table.group_by(table.column_names).aggregate([([], "count_all")])
    if counts.num_rows < table.num_rows:
        found = counts.sort_by([("count_all", "descending")]).select(table.column_names).slice(0, 1).to_pylist()[0]
        shown = ", ".join(f"{column} = {value!r}" for column, value in found.items())
        raise InvalidError(f"{name}: several rows would be written with the key {shown}")
