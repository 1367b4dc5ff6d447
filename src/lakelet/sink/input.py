"""Whatever people hand to `write`, as a stream of record batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from lakelet.errors import InvalidError
from lakelet.model.python_values import is_kept


def batches_of(data: Any, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The batches of an Arrow table, batch or reader, a pandas or polars frame, anything with an Arrow stream, a list of
    dicts (read as the table's types), or an iterable of any of these."""
    if isinstance(data, pa.RecordBatch):
        yield data
    elif isinstance(data, pa.Table):
        yield from data.to_batches()
    elif isinstance(data, pa.RecordBatchReader):
        yield from data
    elif _library(data) == "pandas":
        yield from pa.Table.from_pandas(data, preserve_index=False).to_batches()
    elif _library(data) == "polars" and hasattr(data, "collect"):
        yield from pa.table(data.collect()).to_batches()
    elif hasattr(data, "__arrow_c_stream__"):
        yield from pa.RecordBatchReader.from_stream(data)
    elif hasattr(data, "__arrow_c_array__"):
        yield pa.record_batch(data)
    elif isinstance(data, list) and data and isinstance(data[0], dict):
        yield from _from_rows(data, schema)
    elif isinstance(data, Iterable) and not isinstance(data, (str, bytes, dict)):
        for part in data:
            yield from batches_of(part, schema)
    else:
        raise InvalidError(
            f"cannot write a {type(data).__name__}: expected an Arrow table, batch or reader, a pandas or polars frame, "
            "a list of dicts, or an iterable of these"
        )


def _library(data: Any) -> str:
    """The package a value's type comes from; neither frame library is imported to tell."""
    return type(data).__module__.partition(".")[0]


def _from_rows(rows: list[dict[str, Any]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    names = {name for row in rows for name in row}
    unknown = sorted(names - set(schema.names))
    if unknown:
        raise InvalidError(
            f"the data has the column {unknown[0]!r}, which is not in the table; its columns are {', '.join(schema.names)}"
        )
    fields = [field.with_nullable(True) for field in schema if field.name in names]
    try:
        table = pa.Table.from_pylist(rows, schema=pa.schema(fields))
    except (pa.ArrowException, TypeError, OverflowError, ValueError) as error:
        raise InvalidError(f"the rows do not fit the table's types: {error}") from error
    for field in fields:
        for number, row in enumerate(rows):
            if not is_kept(row.get(field.name), field.type):
                raise InvalidError(
                    f"the rows do not fit the table's types: row {number} has {row[field.name]!r} for column {field.name!r}, "
                    f"which {field.type} cannot hold"
                )
    yield from table.to_batches()
