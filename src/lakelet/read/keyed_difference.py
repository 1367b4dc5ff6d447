"""Two versions of rows that have a key, compared: what was inserted, updated and deleted.

DuckDB does it, on disk where memory does not suffice. Keys are compared as their BinaryRow bytes, so that they are equal
exactly where the table takes them for one key; rows are compared column by column, with NULL equal to NULL and NaN to NaN.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence

import pyarrow as pa

from lakelet.format.binary_row_columns import encode_rows
from lakelet.model.types import DataType

_KEY = "__lakelet_key"
_KIND = "__lakelet_kind"
_BATCH_ROWS = 65_536


def keyed_difference(
    before: pa.RecordBatchReader, after: pa.RecordBatchReader, key: Sequence[tuple[str, DataType]]
) -> Iterator[tuple[pa.Array, pa.RecordBatch]]:
    """Kinds ("-D", "-U", "+U", "+I") and rows; the two rows of an update follow one another."""
    import duckdb  # noqa: PLC0415 - few processes compare rows, and all would wait for it to load.

    schema = before.schema
    with tempfile.TemporaryDirectory(prefix="lakelet-") as folder:
        connection = duckdb.connect(f"{folder}/rows.duckdb")
        try:
            for name, rows in (("before_rows", before), ("after_rows", after)):
                connection.register("stream", _with_key(rows, key))
                connection.execute(f"CREATE TABLE {name} AS SELECT * FROM stream")
                connection.unregister("stream")
            connection.execute("CREATE TABLE gone AS FROM before_rows EXCEPT ALL FROM after_rows")
            connection.execute("CREATE TABLE come AS FROM after_rows EXCEPT ALL FROM before_rows")
            changed = connection.sql(
                f"""SELECT *, CASE WHEN {_KEY} IN (SELECT {_KEY} FROM come) THEN '-U' ELSE '-D' END AS {_KIND} FROM gone
                    UNION ALL
                    SELECT *, CASE WHEN {_KEY} IN (SELECT {_KEY} FROM gone) THEN '+U' ELSE '+I' END AS {_KIND} FROM come
                    ORDER BY {_KEY}, {_KIND} DESC"""
            )
            reader: pa.RecordBatchReader = changed.to_arrow_reader(_BATCH_ROWS)
            for batch in reader:
                columns = [_as(batch.column(i), field.type) for i, field in enumerate(schema)]
                yield batch.column(_KIND), pa.RecordBatch.from_arrays(columns, schema=schema)
        finally:
            connection.close()


def _with_key(rows: pa.RecordBatchReader, key: Sequence[tuple[str, DataType]]) -> pa.RecordBatchReader:
    types = [data_type for _, data_type in key]

    def keyed() -> Iterator[pa.RecordBatch]:
        for batch in rows:
            yield batch.append_column(_KEY, encode_rows([batch.column(name) for name, _ in key], types))

    return pa.RecordBatchReader.from_batches(rows.schema.append(pa.field(_KEY, pa.binary())), keyed())


def _as(column: pa.Array, target: pa.DataType) -> pa.Array:
    return column if column.type == target else column.cast(target)
