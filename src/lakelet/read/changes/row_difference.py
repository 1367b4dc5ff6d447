"""The multiset difference of two sets of rows.

DuckDB does it, on disk where memory does not suffice. Rows are compared column by column, with NULL equal to NULL, NaN to NaN and
zeros of one sign.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from lakelet.predicate.instance import open_instance
from lakelet.read.changes.value_comparison import comparable, has_float, is_negative
from lakelet.read.stream_error import StreamError
from lakelet.storage.spill_folder import SpillFolder


def row_difference(
    left: pa.RecordBatchReader, right: pa.RecordBatchReader
) -> tuple[Iterator[pa.RecordBatch], Iterator[pa.RecordBatch]]:
    """The rows that only the left has, and those that only the right has."""
    schema = left.schema
    folder = SpillFolder("lakelet-")
    connection = open_instance(f"{folder.name}/rows.duckdb", {"temp_directory": f"{folder.name}/more"})
    failed = StreamError()
    with failed.retold():
        connection.register("left_stream", _numbered(failed.watch(left)))
        connection.execute("CREATE TABLE left_rows AS SELECT * FROM left_stream")
        connection.register("right_stream", _numbered(failed.watch(right)))
        connection.execute("CREATE TABLE right_rows AS SELECT * FROM right_stream")

    def difference(first: str, second: str) -> Iterator[pa.RecordBatch]:
        columns = ", ".join(["*", *_signs(schema)])
        rows = connection.cursor().sql(f"SELECT {columns} FROM {first} EXCEPT ALL SELECT {columns} FROM {second}")
        reader: pa.RecordBatchReader = rows.to_arrow_reader(65_536)
        for batch in reader:
            yield pa.RecordBatch.from_arrays(
                [_as(batch.column(i), field.type) for i, field in enumerate(schema)], schema=schema
            )

    def last() -> Iterator[pa.RecordBatch]:
        try:
            yield from difference("right_rows", "left_rows")
        finally:
            connection.close()
            folder.cleanup()

    return difference("left_rows", "right_rows"), last()


def _signs(schema: pa.Schema) -> list[str]:
    """What distinguishes values that DuckDB takes for equal."""
    columns = [(field.type, f"c{number}") for number, field in enumerate(schema) if has_float(field.type)]
    return [is_negative(name) if pa.types.is_floating(arrow) else comparable(arrow, name) for arrow, name in columns]


def _numbered(rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """The rows with columns named by number, for DuckDB's names are case-insensitive."""
    schema = pa.schema([pa.field(f"c{number}", field.type) for number, field in enumerate(rows.schema)])
    return pa.RecordBatchReader.from_batches(
        schema, (pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in rows)
    )


def _as(column: pa.Array, target: pa.DataType) -> pa.Array:
    return column if column.type == target else column.cast(target)
