"""A scan as a DuckDB relation.

DuckDB asks an Arrow dataset for a scanner each time a query runs, with projection and filter pushed down; a
plain stream would be empty the second time. It trusts the dataset to apply the filter exactly, which Arrow's scanner does
on the batches it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from lakelet.predicate.arrow_expression import referenced
from lakelet.predicate.instance import open_instance

Rescan = Callable[[Sequence[str] | None, pc.Expression | None], Iterator[pa.RecordBatch]]


class _ScanDataset(ds.InMemoryDataset):  # type: ignore[misc]
    """A dataset whose rows are read again for every scanner."""

    def __init__(self, schema: pa.Schema, rescan: Rescan, failed: Callable[[BaseException], None]) -> None:
        super().__init__(pa.Table.from_batches([], schema))
        self._rescan = rescan
        self._rows_schema = schema
        self._failed = failed

    def scanner(
        self, columns: Sequence[str] | None = None, filter: pc.Expression | None = None, **options: Any
    ) -> ds.Scanner:
        """A scanner over a fresh reading."""
        schema = self._rows_schema
        needed = set(schema.names if columns is None else columns)
        if filter is not None:
            # The filter may need columns that the query does not.
            needed.update(referenced(filter, schema))
        # A count needs none at all, but rows have to come from somewhere.
        names = [name for name in schema.names if name in needed] or schema.names[:1]
        wanted = pa.schema([schema.field(name) for name in names])
        reader = pa.RecordBatchReader.from_batches(wanted, self._batches(names, filter))
        return ds.Scanner.from_batches(reader, columns=columns, filter=filter)

    def _batches(self, names: Sequence[str], condition: pc.Expression | None) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._rescan(names, condition)
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
