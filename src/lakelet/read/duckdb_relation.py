"""A scan as a DuckDB relation.

DuckDB asks an Arrow dataset for a scanner each time a query runs, and hands over the columns and the filter it wants; a
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

Rescan = Callable[[Sequence[str] | None, pc.Expression | None], Iterator[pa.RecordBatch]]


class _ScanDataset(ds.InMemoryDataset):  # type: ignore[misc]
    """A dataset whose rows are read anew for every scanner."""

    def __init__(self, schema: pa.Schema, rescan: Rescan) -> None:
        super().__init__(schema.empty_table())
        self._rescan = rescan
        self._rows_schema = schema

    def scanner(
        self, columns: Sequence[str] | None = None, filter: pc.Expression | None = None, **options: Any
    ) -> ds.Scanner:
        """A scanner over a fresh reading."""
        # The filter may need columns that the query does not; a count needs none at all, but rows have to come from somewhere.
        names = (
            self._rows_schema.names if columns is None or filter is not None else columns or self._rows_schema.names[:1]
        )
        schema = pa.schema([field for field in self._rows_schema if field.name in names])
        reader = pa.RecordBatchReader.from_batches(schema, self._rescan(names, filter))
        return ds.Scanner.from_batches(reader, columns=columns, filter=filter)


def relation_of(
    schema: pa.Schema, rescan: Rescan, connection: duckdb.DuckDBPyConnection | None
) -> duckdb.DuckDBPyRelation:
    """A relation over the scan, on the caller's connection or one of its own."""
    chosen = duckdb.connect() if connection is None else connection
    return chosen.from_arrow(_ScanDataset(schema, rescan))
