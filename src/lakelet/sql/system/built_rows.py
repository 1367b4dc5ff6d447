"""Rows computed lazily when a query reads them, for the projected columns only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.read.row_counts import only_rows
from lakelet.sql.query.relation import Rows

MILLIS = pa.timestamp("ms")


def required(name: str, data_type: pa.DataType) -> pa.Field:
    """A column that is never NULL."""
    return pa.field(name, data_type, nullable=False)


def built_rows(schema: pa.Schema, build: Callable[[Sequence[str]], pa.Table]) -> Rows:
    """Lazy rows of this schema; `build` gets the projected column names, at least one, and returns a table that has them."""

    def read(columns: Sequence[str] | None, condition: pc.Expression | None) -> Iterator[pa.RecordBatch]:
        names = [name for name in schema.names if columns is None or name in columns]
        table = build(names or schema.names[:1])
        if not names:
            return iter([only_rows(table.num_rows)])
        return iter(table.select(names).cast(chosen(schema, names)).to_batches())

    return Rows(schema, read)


def chosen(schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    """The schema of some columns."""
    return pa.schema([schema.field(name) for name in names])


def table_of(schema: pa.Schema, rows: Sequence[Sequence[object]]) -> pa.Table:
    """A table from a list of rows, for small tables."""
    columns = zip(*rows, strict=True) if rows else ([] for _ in schema)
    arrays = [pa.array(list(values), field.type) for field, values in zip(schema, columns, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def table_from(columns: Mapping[str, Callable[[], pa.Array]], names: Sequence[str]) -> pa.Table:
    """A table of the named columns, computing only these."""
    return pa.table({name: columns[name]() for name in names})
