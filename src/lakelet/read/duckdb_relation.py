"""A scan as a DuckDB relation.

DuckDB asks an Arrow dataset for a scanner each time a query runs, with projection and filter pushed down; a
plain stream would be empty the second time. It trusts the dataset to apply the filter exactly.

    DuckDB's thread ── scanner(columns, filter).to_reader() ── next batch: rescan, filter ── Arrow's threads: parts of files

The scanner is none of Arrow's. That one would read the batches in Arrow's threads for input, of which a process has eight;
reading a batch needs such a thread for each file, so that eight scans at the same time would wait for each other for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from lakelet.predicate.arrow_expression import expression_mask, referenced
from lakelet.predicate.instance import open_instance

Rescan = Callable[[Sequence[str] | None, pc.Expression | None], Iterator[pa.RecordBatch]]


class _ThreadlessScanner:
    """What DuckDB asks of a scanner: a reader, whose batches are made in the thread that asks for them."""

    def __init__(self, schema: pa.Schema, batches: Callable[[], Iterator[pa.RecordBatch]]) -> None:
        self.projected_schema = schema
        self._batches = batches

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows, read as they are asked for."""
        return pa.RecordBatchReader.from_batches(self.projected_schema, self._batches())


class _ScanDataset(ds.InMemoryDataset):  # type: ignore[misc]
    """A dataset whose rows are read again for every scanner."""

    def __init__(self, schema: pa.Schema, rescan: Rescan, failed: Callable[[BaseException], None]) -> None:
        super().__init__(pa.Table.from_batches([], schema))
        self._rescan = rescan
        self._rows_schema = schema
        self._failed = failed

    def scanner(
        self, columns: Sequence[str] | None = None, filter: pc.Expression | None = None, **options: Any
    ) -> _ThreadlessScanner:
        """A scanner over a fresh reading."""
        schema = self._rows_schema
        needed = set(schema.names if columns is None else columns)
        if filter is not None:
            # The filter may need columns that the query does not.
            needed.update(referenced(filter, schema))
        # A count needs none at all, but rows have to come from somewhere.
        names = [name for name in schema.names if name in needed] or schema.names[:1]
        wanted = pa.schema([schema.field(name) for name in names])
        shown = wanted if columns is None else pa.schema([schema.field(name) for name in columns])
        return _ThreadlessScanner(shown, lambda: self._batches(names, filter, shown))

    def _batches(
        self, names: Sequence[str], condition: pc.Expression | None, shown: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        try:
            for batch in self._rescan(names, condition):
                rows = batch if condition is None else batch.filter(expression_mask(condition, batch))
                if rows.num_rows:
                    yield rows.select(shown.names)
        except Exception as error:
            self._failed(error)
            raise


def scan_dataset(
    schema: pa.Schema, rescan: Rescan, failed: Callable[[BaseException], None] = lambda error: None
) -> ds.Dataset:
    """A dataset over rows that `rescan` reads; `failed` gets the error, of which DuckDB passes on a text only."""
    return _ScanDataset(schema, rescan, failed)


def relation_of(
    schema: pa.Schema, rescan: Rescan, connection: duckdb.DuckDBPyConnection | None
) -> duckdb.DuckDBPyRelation:
    """A relation over the scan, on the caller's connection or one of its own."""
    chosen = open_instance() if connection is None else connection
    return chosen.from_arrow(scan_dataset(schema, rescan))
