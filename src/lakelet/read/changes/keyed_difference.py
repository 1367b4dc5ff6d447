"""Diff two versions of a primary-key table: inserted, updated and deleted rows.

DuckDB does it, on disk unless the rows are few. Keys are compared as their BinaryRow bytes, so that they are equal
exactly where the table takes them for one key; rows are compared column by column, with NULL equal to NULL, NaN to NaN, zeros of
one sign, and maps by their entries in whatever order they are stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext

import pyarrow as pa

from lakelet.format.rows.binary_row_columns import encode_rows
from lakelet.model.types import DataType
from lakelet.predicate.instance import open_instance
from lakelet.read.changes.small_rows import with_size
from lakelet.read.changes.value_comparison import differs
from lakelet.read.stream_error import StreamError
from lakelet.storage.spill_folder import SpillFolder

_KEY = "__lakelet_key"
_KIND = "__lakelet_kind"
_BATCH_ROWS = 65_536


def keyed_difference(
    before: pa.RecordBatchReader, after: pa.RecordBatchReader, key: Sequence[tuple[str, DataType]]
) -> Iterator[tuple[pa.Array, pa.RecordBatch]]:
    """Kinds ("-D", "-U", "+U", "+I") and rows; the two rows of an update follow one another."""
    schema = before.schema
    failed = StreamError()
    (before, small), (after, small_too) = with_size(before), with_size(after)
    with SpillFolder("lakelet-") if not (small and small_too) else nullcontext() as folder:
        place = ":memory:" if folder is None else f"{folder}/rows.duckdb"
        connection = open_instance(place, {} if folder is None else {"temp_directory": f"{folder}/more"})
        try:
            for name, rows in (("before_rows", before), ("after_rows", after)):
                with failed.retold():
                    connection.register("stream", _with_key(failed.watch(rows), key))
                    connection.execute(f"CREATE TABLE {name} AS SELECT * FROM stream")
                connection.unregister("stream")
            reader: pa.RecordBatchReader = connection.sql(_changed_rows(schema)).to_arrow_reader(_BATCH_ROWS)
            for batch in reader:
                columns = [_as(batch.column(i), field.type) for i, field in enumerate(schema)]
                yield batch.column(_KIND), pa.RecordBatch.from_arrays(columns, schema=schema)
        finally:
            connection.close()


def _changed_rows(schema: pa.Schema) -> str:
    changed = " OR ".join(differs(field.type, f"b.c{number}", f"a.c{number}") for number, field in enumerate(schema))
    return f"""
        SELECT b.*, CASE WHEN a.{_KEY} IS NULL THEN '-D' ELSE '-U' END AS {_KIND}
        FROM before_rows b LEFT JOIN after_rows a ON a.{_KEY} = b.{_KEY} WHERE a.{_KEY} IS NULL OR {changed}
        UNION ALL
        SELECT a.*, CASE WHEN b.{_KEY} IS NULL THEN '+I' ELSE '+U' END AS {_KIND}
        FROM after_rows a LEFT JOIN before_rows b ON b.{_KEY} = a.{_KEY} WHERE b.{_KEY} IS NULL OR {changed}
        ORDER BY {_KEY}, {_KIND} DESC"""


def _with_key(rows: pa.RecordBatchReader, key: Sequence[tuple[str, DataType]]) -> pa.RecordBatchReader:
    """The rows with their encoded keys. Columns are named by number, for DuckDB's names are case-insensitive."""
    types = [data_type for _, data_type in key]
    columns = [pa.field(f"c{number}", field.type) for number, field in enumerate(rows.schema)]
    schema = pa.schema([*columns, pa.field(_KEY, pa.binary())])

    def keyed() -> Iterator[pa.RecordBatch]:
        for batch in rows:
            keys = encode_rows([batch.column(name) for name, _ in key], types)
            yield pa.RecordBatch.from_arrays([*batch.columns, keys], schema=schema)

    return pa.RecordBatchReader.from_batches(schema, keyed())


def _as(column: pa.Array, target: pa.DataType) -> pa.Array:
    return column if column.type == target else column.cast(target)
