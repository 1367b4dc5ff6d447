"""A version of a table as a SQL view for DuckDB: the union of plain files, read by DuckDB, and the rest, read by us.

SELECT … FROM read_parquet(['…/data-1.parquet', …])  UNION ALL  SELECT … FROM <rows that our reader merges>
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.commit.metadata.schemas import SchemaVersions
from lakelet.errors import UnavailableError
from lakelet.model.split import Split
from lakelet.model.types import Field
from lakelet.predicate.row_filter import row_filter
from lakelet.predicate.tree import columns
from lakelet.read.merge.merge_reader import MergeReader
from lakelet.read.split_files import naming
from lakelet.scan.plan import Plan
from lakelet.sql.engine.duck_types import duck_type
from lakelet.sql.engine.duckdb_engine import Space
from lakelet.sql.lexer.quotes import quoted
from lakelet.sql.query.conditions import pruning_predicate
from lakelet.sql.query.native_files import AssignedFiles, FileAssigner, Outdated
from lakelet.sql.query.native_select import native_selects, row_parts
from lakelet.sql.query.relation import Rows
from lakelet.storage.home import TableHome
from lakelet.table.read.table_scan import TableScan


@dataclass(frozen=True, slots=True)
class TableView:
    """The view of a table in a query: its plan, and the files assigned to each reader."""

    scan: TableScan
    plan: Plan
    assigned: AssignedFiles
    location: str = field(default="")

    @property
    def home(self) -> TableHome:
        """The home of the table."""
        return self.scan.home

    @property
    def paths(self) -> list[str]:
        """The paths of the files that DuckDB reads, below the lake's root."""
        return [file.path for file in self.assigned.files]

    def sql(self, space: Space, part: Field | None = None) -> str:
        """The query that returns the rows; with `part`, a ROW with fewer fields than the column of that name has, those alone."""
        fields = [self.scan.schema.field(name) for name in self.scan.columns]
        in_parts: tuple[str, ...] = ()
        if part is not None:
            fields, in_parts = [part if one.id == part.id else one for one in fields], (part.name,)
        versions = schema_versions(self.scan)
        parts = native_selects(self.assigned, versions, fields, self.location, space.add_frame, in_parts)
        if self.assigned.ours:
            source = space.add_rows(Rows(self.scan.arrow_schema, self._ours))
            parts.append(f"SELECT {cast_columns(self.scan, part)} FROM {source}")
        if not parts:
            nulls = ", ".join(f"CAST(NULL AS {duck_type(one.type)}) AS {quoted(one.name)}" for one in fields)
            return f"SELECT {nulls} WHERE false"
        return " UNION ALL ".join(parts)

    def blame(self, error: BaseException) -> None:
        """Raises the error of a file that DuckDB reads, if one of them is the cause."""
        files = self.assigned.files
        if files:
            with naming(self.home, files):
                raise OSError(str(error)) from error

    def _ours(self, wanted: Sequence[str] | None, condition: pc.Expression | None) -> Iterator[pa.RecordBatch]:
        names = self.scan.columns if wanted is None else tuple(name for name in self.scan.columns if name in wanted)
        scan = replace(self.scan, columns=names)
        return scan.batches_of(self.assigned.ours)


def table_view(
    scan: TableScan,
    texts: Sequence[str],
    location: str | None,
    outdated: Outdated | None,
    splits: frozenset[str] | None = None,
) -> TableView:
    """Plan a scan for a query and assign its files to the readers. Every needed row satisfies one of the conditions `texts`, if
    there are any; `outdated` finds the superseded rows of merged files. With `splits`, those alone are read that have these
    names: UnavailableError where the plan lacks one."""
    predicate = pruning_predicate(texts, scan.schema.fields)
    if predicate is not None:
        scan = replace(scan, where=predicate)
        if set(columns(predicate)) & set(scan.schema.trimmed_primary_keys):
            # With a predicate on the key, the merge reads only files that may match, which is cheaper than all keys.
            outdated = None
    plan = scan.plan()
    fields = tuple(scan.schema.field(name) for name in scan.columns)
    assigner = FileAssigner(scan.home, fields, schema_versions(scan), location, outdated)
    chosen = scan.chosen_splits(plan) if splits is None else _named_splits(scan, plan, splits)
    return TableView(scan, plan, assigner.assign(chosen), location or "")


def _named_splits(scan: TableScan, plan: Plan, names: frozenset[str]) -> Sequence[Split]:
    found = [split for split in plan.splits if split_name(split) in names]
    if len(found) != len(names):
        raise UnavailableError(
            f"{scan.home.where(scan.home.paths.branch_root)}: expected {len(names)} splits of a plan, found {len(found)}"
        )
    return found


def scanned_sql(scan: TableScan, space: Space) -> str:
    """The query that returns the rows of a scan with a condition or a limit of its own, which only our reader applies."""

    def read(wanted: Sequence[str] | None, condition: pc.Expression | None) -> Iterator[pa.RecordBatch]:
        names = scan.columns if wanted is None else tuple(name for name in scan.columns if name in wanted)
        return replace(scan, columns=names).to_batches()

    return f"SELECT {cast_columns(scan)} FROM {space.add_rows(Rows(scan.arrow_schema, read))}"


def split_name(split: Split) -> str:
    """A name of a split among those of a version: its first file, and how many there are."""
    return f"{split.paths[0]}+{len(split.paths)}"


def outdated_rows(scan: TableScan) -> Outdated:
    """A function that finds the superseded rows of merged files from their keys."""
    schema = scan.schema

    @cache
    def reader() -> MergeReader:
        return MergeReader(scan.home, schema, (), row_filter(None, schema.fields), schema_versions(scan))

    # Made at the first split that needs a merge: a table without a key has none.
    return lambda split: reader().outdated(split)


def schema_versions(scan: TableScan) -> SchemaVersions:
    """The schemas that files were written under."""
    return SchemaVersions(scan.home, {scan.schema.id: scan.schema})


def cast_columns(scan: TableScan, part: Field | None = None) -> str:
    """The columns of a scan as items of a SELECT over rows that our reader reads; `part` as for `TableView.sql`."""
    fields = [scan.schema.field(name) for name in scan.columns]
    return ", ".join(f"{_cast(one, part)} AS {quoted(one.name)}" for one in fields)


def _cast(field: Field, part: Field | None) -> str:
    if part is not None and part.id == field.id:
        return row_parts(quoted(field.name), field.type, part.type)
    return f"CAST({quoted(field.name)} AS {duck_type(field.type)})"
