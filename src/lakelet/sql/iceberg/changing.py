"""UPDATE, DELETE and MERGE of Iceberg tables: rows are found by a query over the branch's head, and files are written anew.

    statement ─ query over the head, pruned by its condition ─ rows that go, rows that come ─ iceberg.changing: one snapshot

The statement is read and put into a query as for the lake's own tables. Where it names its target once more, it sees the same
version there, and then it rests on all rows of it. What became of a statement that met a rival is worked out anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelet.errors import InvalidError
from lakelet.iceberg.changing import Positions, RowChange, change_rows
from lakelet.iceberg.column_types import model_schema
from lakelet.iceberg.scan import IcebergScan
from lakelet.model.schema import TableSchema
from lakelet.model.types import Field
from lakelet.predicate.tree import Predicate
from lakelet.sink.defaults import default_array
from lakelet.sql.conditions import pruning_predicate
from lakelet.sql.context import Context
from lakelet.sql.engine import Space
from lakelet.sql.iceberg.given_iceberg import given_iceberg
from lakelet.sql.iceberg.reading import IcebergVersion
from lakelet.sql.iceberg.table_view import IcebergView, cast_columns
from lakelet.sql.relation import Deferred, Relation, Rows
from lakelet.sql.result import SqlResult
from lakelet.sql.statement import Statement
from lakelet.sql.statements.change_clauses import Action, Change
from lakelet.sql.statements.change_query import CLAUSE, DEFAULTS, TARGET
from lakelet.sql.statements.changing_rows import changed_rows, check_names, several_match
from lakelet.sql.statements.spans import IcebergTarget
from lakelet.table.located_rows import FILE, ROW

_PLACES = (pa.field(FILE, pa.int32()), pa.field(ROW, pa.int64()))


def run_change(context: Context, statement: Statement, change: Change) -> SqlResult:
    """Finds and changes rows; gives the snapshot made, and how many rows changed."""
    assert isinstance(change.target, IcebergTarget)
    given = given_iceberg(context, statement.reader, change.target.parts, change.target.word)
    run = _ChangeRun(context, statement, change)
    made = change_rows(given.open(), run.find, kind=change.name.lower(), branch=given.name.branch)
    return SqlResult.changed(None if made is None else made.id, run.rows)


@dataclass(slots=True)
class _ChangeRun:
    """A statement, found out on one version after the other until a commit stands. `rows` counts those of the last one."""

    context: Context
    statement: Statement
    change: Change
    rows: int = field(default=0)

    def find(self, rows: RowChange) -> None:
        """What changes in a version."""
        self.rows = 0
        # Options of ours that a property is called like say nothing about this table.
        schema = replace(model_schema(rows.table), options={})
        check_names(schema)
        _check_places(schema)
        target = _Located(rows)
        again = _SeenAgain(_version(rows))
        relations: dict[str, Relation] = {
            TARGET: target,
            DEFAULTS: pa.table({one.name: default_array(one, 1) for one in schema.fields}),
            self.change.target.full_name: again,
        }
        with changed_rows(
            self.context, self.statement, self.change, schema, relations, places=True, has_coarse=False
        ) as result:
            for batch in result.to_batches():
                self.rows += batch.num_rows
                self._deal(rows, schema, batch)
        if self.change.source is not None and rows.changes_twice():
            raise several_match(self.change)
        rows.rest_on(None if again.views else target.where)

    def _deal(self, rows: RowChange, schema: TableSchema, batch: pa.RecordBatch) -> None:
        """Takes rows of the query away and puts what they become in."""
        actions = np.array([clause.action.value for clause in self.change.clauses])[batch.column(CLAUSE).to_numpy()]
        goes = pa.array(actions != Action.INSERT.value)
        rows.remove(
            batch.column(FILE).filter(goes).to_numpy().astype(np.int32),
            batch.column(ROW).filter(goes).to_numpy().astype(np.int64),
        )
        names = [name for name in schema.names if name in batch.schema.names]
        if names:
            rows.add(batch.filter(pa.array(actions != Action.DELETE.value)).select(names))


@dataclass(slots=True)
class _Located(Deferred):
    """The target, whose rows come with their places. `where` is the condition by which files were left out last."""

    rows: RowChange
    where: Predicate | None = None
    _scans: dict[tuple[str, ...], tuple[Predicate | None, IcebergScan]] = field(default_factory=dict)

    @property
    def fields(self) -> tuple[Field, ...]:
        """The columns that conditions are understood on."""
        return _version(self.rows).fields

    def view(self, context: Context, texts: Sequence[str]) -> IcebergView:
        """What the statement's query reads of it where one of the conditions holds."""
        key = tuple(texts)
        if key not in self._scans:
            where = pruning_predicate(texts, self.fields)
            self._scans[key] = where, self.rows.scan(where)
        self.where, scan = self._scans[key]
        return _LocatedView(scan, ours=list(scan.files), rows=self.rows)


@dataclass(slots=True)
class _SeenAgain(Deferred):
    """The version that is changed, where the statement names it once more; `views` counts how often it was asked for."""

    version: IcebergVersion
    views: int = 0

    @property
    def fields(self) -> tuple[Field, ...]:
        """The columns that conditions are understood on."""
        return self.version.fields

    def view(self, context: Context, texts: Sequence[str]) -> IcebergView:
        """What a query reads of it where one of the conditions holds."""
        self.views += 1
        return self.version.view(context, texts)


@dataclass(frozen=True, slots=True)
class _LocatedView(IcebergView):
    """The rows of a scan with their places, read by us alone."""

    rows: RowChange = field(kw_only=True)

    def sql(self, space: Space) -> str:
        """The query that gives the rows."""
        schema = pa.schema([*self.scan.schema, *_PLACES])
        return f"SELECT {cast_columns(self.scan)}, {FILE}, {ROW} FROM {space.add_rows(Rows(schema, self._located))}"

    def _located(self, wanted: Sequence[str] | None, condition: pc.Expression | None) -> Iterator[pa.RecordBatch]:
        schema = pa.schema([*self.scan.schema, *_PLACES])
        names = [name for name in schema.names if wanted is None or name in wanted]
        given = pa.schema([schema.field(name) for name in names])
        columns = [name for name in names if name not in (FILE, ROW)]
        for batch, number, positions in self.rows.read(self.scan, columns):
            arrays = [] if batch is None else list(batch.columns)
            if FILE in names:
                arrays.append(_numbers(number, positions))
            if ROW in names:
                arrays.append(pa.array(positions))
            yield pa.RecordBatch.from_arrays(arrays, schema=given)


def _numbers(number: int, positions: Positions) -> pa.Array:
    return pa.array(np.full(len(positions), number, np.int32))


def _version(rows: RowChange) -> IcebergVersion:
    return IcebergVersion(rows.table, ref=rows.branch)


def _check_places(schema: TableSchema) -> None:
    """InvalidError where a column is called like what a row's place is called in queries."""
    taken = next((name for name in schema.names if name.lower() in (FILE, ROW)), None)
    if taken is not None:
        raise InvalidError(f"column {taken!r}: rows of a table with a column of this name cannot be changed")
