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

from lakelet.catalog.sql_result import SqlResult
from lakelet.iceberg.row_change import Positions, RowChange, change_rows
from lakelet.iceberg.scan import IcebergScan
from lakelet.iceberg.schema.column_types import model_schema
from lakelet.model.schema import TableSchema
from lakelet.model.types import Field
from lakelet.predicate.tree import Predicate
from lakelet.sql.context import Context
from lakelet.sql.engine.duckdb_engine import Space
from lakelet.sql.iceberg.given_iceberg import given_iceberg
from lakelet.sql.iceberg.iceberg_relation import IcebergVersion
from lakelet.sql.iceberg.table_view import IcebergView, cast_columns
from lakelet.sql.query.conditions import pruning_predicate
from lakelet.sql.query.relation import Deferred, Relation, Rows
from lakelet.sql.statement import Statement
from lakelet.sql.statements.change.change_clauses import Action, Change
from lakelet.sql.statements.change.returned_rows import ReturnedRows
from lakelet.sql.statements.change.row_change import (
    changed_rows,
    check_names,
    found_names,
    return_rows,
    returned_rows,
    several_match,
)
from lakelet.sql.statements.text.internal_names import InternalNames
from lakelet.sql.statements.text.spans import IcebergTarget


def run_change(context: Context, statement: Statement, change: Change) -> SqlResult:
    """Finds and changes rows; gives the snapshot made, and how many rows changed."""
    assert isinstance(change.target, IcebergTarget)
    given = given_iceberg(context, statement.reader, change.target.parts, change.target.word)
    run = _ChangeRun(context, statement, change)
    made = change_rows(given.open(), run.find, kind=change.name.lower(), branch=given.name.branch)
    return run.result(None if made is None else made.id)


@dataclass(slots=True)
class _ChangeRun:
    """A statement, found out on one version after the other until a commit stands. `rows` counts those of the last one."""

    context: Context
    statement: Statement
    change: Change
    rows: int = field(default=0)
    returned: ReturnedRows | None = field(default=None)

    def result(self, snapshot_id: int | None) -> SqlResult:
        """What the statement gives, once it is committed."""
        return SqlResult.changed(snapshot_id, self.rows) if self.returned is None else self.returned.result()

    def find(self, rows: RowChange) -> None:
        """What changes in a version."""
        self.rows = 0
        # Options of ours that a property is called like say nothing about this table.
        schema = replace(model_schema(rows.table), options={})
        check_names(schema)
        self.returned = returned_rows(self.context, self.statement, self.change, schema)
        again = _SeenAgain(_version(rows))
        relations: dict[str, Relation] = {self.change.target.full_name: again}
        found = found_names(self.context, self.statement, self.change, schema, relations)
        target = _Located(rows, found.names)
        with changed_rows(
            self.context,
            self.statement,
            self.change,
            schema,
            found,
            target,
            relations,
            places=True,
            has_coarse=False,
        ) as result:
            for batch in result.to_batches():
                self.rows += batch.num_rows
                return_rows(self.returned, self.change, schema, found.names, batch)
                self._deal(rows, schema, found.names, batch)
        if self.change.source is not None and rows.changes_twice():
            raise several_match(self.change)
        rows.rest_on(None if again.views else target.where)

    def _deal(self, rows: RowChange, schema: TableSchema, names: InternalNames, batch: pa.RecordBatch) -> None:
        """Takes rows of the query away and puts what they become in."""
        actions = np.array([clause.action.value for clause in self.change.clauses])[
            batch.column(names.clause).to_numpy()
        ]
        goes = pa.array(actions != Action.INSERT.value)
        rows.remove(
            batch.column(names.file).filter(goes).to_numpy().astype(np.int32),
            batch.column(names.row).filter(goes).to_numpy().astype(np.int64),
        )
        columns = [name for name in schema.names if name in batch.schema.names]
        if columns:
            rows.add(batch.filter(pa.array(actions != Action.DELETE.value)).select(columns))


@dataclass(slots=True)
class _Located(Deferred):
    """The target, whose rows come with their places. `where` is the condition by which files were left out last."""

    rows: RowChange
    names: InternalNames
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
        return _LocatedView(scan, ours=list(scan.files), rows=self.rows, names=self.names)


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
    names: InternalNames = field(kw_only=True)

    def sql(self, space: Space) -> str:
        """The query that gives the rows."""
        places = f"{self.names.file}, {self.names.row}"
        return f"SELECT {cast_columns(self.scan)}, {places} FROM {space.add_rows(Rows(self._schema, self._located))}"

    @property
    def _schema(self) -> pa.Schema:
        return pa.schema(
            [*self.scan.schema, pa.field(self.names.file, pa.int32()), pa.field(self.names.row, pa.int64())]
        )

    def _located(self, wanted: Sequence[str] | None, condition: pc.Expression | None) -> Iterator[pa.RecordBatch]:
        schema, file, row = self._schema, self.names.file, self.names.row
        names = [name for name in schema.names if wanted is None or name in wanted]
        given = pa.schema([schema.field(name) for name in names])
        columns = [name for name in names if name not in (file, row)]
        for batch, number, positions in self.rows.read(self.scan, columns):
            arrays = [] if batch is None else list(batch.columns)
            if file in names:
                arrays.append(_numbers(number, positions))
            if row in names:
                arrays.append(pa.array(positions))
            yield pa.RecordBatch.from_arrays(arrays, schema=given)


def _numbers(number: int, positions: Positions) -> pa.Array:
    return pa.array(np.full(len(positions), number, np.int32))


def _version(rows: RowChange) -> IcebergVersion:
    return IcebergVersion(rows.table, ref=rows.branch)
