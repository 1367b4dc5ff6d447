"""A scan: a projection and a predicate on one version, with results in several forms.

    orders.scan(columns=["amount"], where="dt = '2026-01-01'").to_arrow()

A scan pins its snapshot when it is made, so that reading it twice gives the same rows. It is picklable, as are the splits of
its plan: another process reads a part with `scan.read(split)`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.commit.metadata.schemas import SchemaVersions
from lakelet.errors import InvalidError
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.model.split import Split
from lakelet.options import TableOptions
from lakelet.predicate.row_filter import row_filter
from lakelet.read.table_reader import TableReader
from lakelet.scan.plan import EMPTY_PLAN, Plan, Planner, Where
from lakelet.storage.home import TableHome
from lakelet.table.read.data_frames import pandas_frame, polars_frame, require
from lakelet.table.read.fallback import Fallback, missing_splits

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl


@dataclass(frozen=True, repr=False)
class TableScan:
    """A scan of one version of a table: its columns and its predicate; with a `level`, of the files of that level only."""

    home: TableHome
    schema: TableSchema
    snapshot: Snapshot | None
    columns: tuple[str, ...]
    where: Where = None
    limit: int | None = None
    ordered: bool = False
    fallback: Fallback | None = None
    level: int | None = None

    def __repr__(self) -> str:
        snapshot = "no snapshot" if self.snapshot is None else f"snapshot {self.snapshot.id}"
        return f"TableScan({self.home.where(self.home.paths.branch_root)!r}, {snapshot}, {len(self.columns)} columns)"

    def plan(self) -> Plan:
        """The splits to read, and how much was pruned."""
        plan = EMPTY_PLAN if self.snapshot is None else self._planner().plan(self.snapshot, self.where)
        if self.fallback is None:
            return plan
        other = self._fallback_scan(self.fallback).plan()
        return replace(
            plan,
            splits=(*plan.splits, *missing_splits(self.home, self.snapshot, self.fallback, other)),
            manifests_total=plan.manifests_total + other.manifests_total,
            manifests_read=plan.manifests_read + other.manifests_read,
            files_total=plan.files_total + other.files_total,
        )

    def read(self, split: Split) -> Iterator[pa.RecordBatch]:
        """The matching rows of one split of this scan's plan; the caller applies the limit."""
        return self._batches([split])

    @property
    def arrow_schema(self) -> pa.Schema:
        """The schema of the results."""
        return self._reader().schema

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, batch by batch, in bounded memory."""
        left = self.limit
        for batch in self._batches(self._splits()):
            if left is None:
                yield batch
                continue
            if left > 0:
                yield batch.slice(0, left)
            left -= batch.num_rows
            if left <= 0:
                return

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as an Arrow stream."""
        return pa.RecordBatchReader.from_batches(self.arrow_schema, self.to_batches())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows for any library that takes Arrow streams."""
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> pa.Table:
        """All rows as an Arrow table."""
        if self.limit is not None or self.fallback is not None:
            return pa.Table.from_batches(self.to_batches(), self.arrow_schema)
        return self._reader().table(self._splits())

    def to_pandas(self, **options: Any) -> pd.DataFrame:
        """All rows as a pandas frame."""
        require("pandas", "to_pandas()")
        return pandas_frame(self.to_arrow(), **options)

    def to_polars(self) -> pl.DataFrame:
        """All rows as a polars frame."""
        require("polars", "to_polars()")
        return polars_frame(self.to_arrow())

    def to_duckdb(self, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyRelation:
        """A DuckDB relation that runs this scan at every use, with its own filters and columns pushed down."""
        first: dict[str, str] = {}
        for name in self.columns:
            if first.setdefault(name.lower(), name) != name:
                raise InvalidError(
                    f"columns {first[name.lower()]!r} and {name!r} differ in case alone, and DuckDB takes both for one: scan one "
                    "of them only"
                )
        from lakelet.read.duckdb_relation import relation_of  # noqa: PLC0415 - DuckDB loads only where it is asked for.

        return relation_of(self.arrow_schema, self._rescan, connection)

    def count(self) -> int:
        """The number of rows; files whose rows all match by partition or statistics are counted, not read."""
        rows = 0
        if self.snapshot is not None:
            rows, plan = self._planner().count(self.snapshot, self.where)
            rows += self._read_count(plan.splits)
        if self.fallback is not None:
            other = self._fallback_scan(self.fallback)
            missing = missing_splits(self.home, self.snapshot, self.fallback, other.plan())
            known = [split for split in missing if self.where is None and split.least_rows == split.row_count]
            rows += sum(split.row_count for split in known)
            rows += other._read_count([split for split in missing if split not in known])
        return self._limited(rows)

    def _read_count(self, splits: Sequence[Split]) -> int:
        """Count the matching rows of splits, reading as little as possible."""
        needed = row_filter(self.where, self.schema.fields).columns
        needed = needed or self.schema.trimmed_primary_keys or self.schema.names
        return sum(batch.num_rows for batch in self._reader(needed[:1]).batches(splits))

    def _limited(self, rows: int) -> int:
        return rows if self.limit is None else min(rows, self.limit)

    def _splits(self) -> Sequence[Split]:
        return self.chosen_splits(self.plan())

    def chosen_splits(self, plan: Plan) -> Sequence[Split]:
        """The splits of a plan that are needed: with a limit and no condition, the first that certainly have enough rows."""
        splits = plan.splits
        if self.limit is None or self.where is not None:
            return splits
        needed, rows = [], 0
        for split in splits:
            if rows >= self.limit:
                break
            needed.append(split)
            rows += split.least_rows
        return needed

    def _rescan(self, columns: Sequence[str] | None, condition: pc.Expression | None) -> Iterator[pa.RecordBatch]:
        """Scan again, only some columns; an extra condition prunes where this scan has none of its own."""
        names = self.columns if columns is None else tuple(name for name in self.columns if name in columns)
        where = condition if self.where is None and self.limit is None else self.where
        return replace(self, columns=names, where=where).to_batches()

    def batches_of(self, splits: Sequence[Split]) -> Iterator[pa.RecordBatch]:
        """The matching rows of some splits of this scan's plan, in their order; the caller applies the limit."""
        return self._batches(splits)

    def _batches(self, splits: Sequence[Split]) -> Iterator[pa.RecordBatch]:
        """The rows of splits in their order, each read with the schema of its branch."""
        for branch, group in groupby(splits, key=lambda split: split.branch):
            if branch is None or self.fallback is None:
                yield from self._reader().batches(list(group))
                continue
            columns = self.arrow_schema
            for batch in self._fallback_scan(self.fallback)._reader().batches(list(group)):
                yield pa.RecordBatch.from_arrays(batch.columns, schema=columns)

    def _fallback_scan(self, other: Fallback) -> TableScan:
        return replace(self, home=other.home, schema=other.schema, snapshot=other.snapshot, limit=None, fallback=None)

    def _planner(self) -> Planner:
        return Planner(
            self.home,
            self.schema,
            self._schema_versions(),
            TableOptions(self.schema.options),
            self.level,
        )

    def _reader(self, columns: Sequence[str] | None = None) -> TableReader:
        return TableReader(
            self.home,
            self.schema,
            self.columns if columns is None else columns,
            row_filter(self.where, self.schema.fields),
            self._schema_versions(),
            ordered=self.ordered,
        )

    def _schema_versions(self) -> SchemaVersions:
        return SchemaVersions(self.home, {self.schema.id: self.schema})
