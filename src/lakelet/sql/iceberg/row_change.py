"""UPDATE, DELETE and MERGE of Iceberg tables: find rows by a query over the branch's head, and rewrite their files.

    statement ─ query over the head, pruned by its condition ─ removed and added rows ─ iceberg.row_change: one snapshot

The statement is parsed and translated into a query as for the lake's own tables. Where it references its target once more, it
reads the same version there, and the change then depends on all of its rows. On a conflict the statement is evaluated again.
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
    """Runs the statement; returns the committed snapshot and the number of changed rows."""
    assert isinstance(change.target, IcebergTarget)
    given = given_iceberg(context, statement.reader, change.target.parts, change.target.word)
    run = _ChangeRun(context, statement, change)
    made = change_rows(given.open(), run.find, kind=change.name.lower(), branch=given.name.branch)
    return run.result(None if made is None else made.id)


@dataclass(slots=True)
class _ChangeRun:
    """The evaluations of a statement, on one version after another until a commit succeeds. `rows` counts those of the last."""

    context: Context
    statement: Statement
    change: Change
    rows: int = field(default=0)
    returned: ReturnedRows | None = field(default=None)

    def result(self, snapshot_id: int | None) -> SqlResult:
        """The result of the committed statement."""
        return SqlResult.changed(snapshot_id, self.rows) if self.returned is None else self.returned.result()

    def find(self, rows: RowChange) -> None:
        """Finds the removed and added rows in a version."""
        self.rows = 0
        # Properties that share a name with an option of ours have no meaning for this table.
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
                self._apply_batch(rows, schema, found.names, batch)
        if self.change.source is not None and rows.changes_twice():
            raise several_match(self.change)
        rows.rest_on(None if again.views else target.where)

    def _apply_batch(self, rows: RowChange, schema: TableSchema, names: InternalNames, batch: pa.RecordBatch) -> None:
        """Removes the old rows of a batch and adds the new ones."""
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
    """The target, whose rows are read with their positions. `where` is the latest condition by which files were pruned."""

    rows: RowChange
    names: InternalNames
    where: Predicate | None = None
    _scans: dict[tuple[str, ...], tuple[Predicate | None, IcebergScan]] = field(default_factory=dict)

    @property
    def fields(self) -> tuple[Field, ...]:
        """The columns that conditions are understood on."""
        return _version(self.rows).fields

    def view(self, context: Context, texts: Sequence[str]) -> IcebergView:
        """The view of the target pruned by the conditions, one of which every needed row satisfies."""
        key = tuple(texts)
        if key not in self._scans:
            where = pruning_predicate(texts, self.fields)
            self._scans[key] = where, self.rows.scan(where)
        self.where, scan = self._scans[key]
        return _LocatedView(scan, ours=list(scan.files), rows=self.rows, names=self.names)


@dataclass(slots=True)
class _SeenAgain(Deferred):
    """The version being changed, where the statement references it once more; `views` counts these references."""

    version: IcebergVersion
    views: int = 0

    @property
    def fields(self) -> tuple[Field, ...]:
        """The columns that conditions are understood on."""
        return self.version.fields

    def view(self, context: Context, texts: Sequence[str]) -> IcebergView:
        """The view of the version pruned by the conditions."""
        self.views += 1
        return self.version.view(context, texts)


@dataclass(frozen=True, slots=True)
class _LocatedView(IcebergView):
    """The rows of a scan with their positions, read by our reader alone."""

    rows: RowChange = field(kw_only=True)
    names: InternalNames = field(kw_only=True)

    def sql(self, space: Space) -> str:
        """The query that returns the rows."""
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
