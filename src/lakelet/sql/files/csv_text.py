"""Encode rows as CSV: by Arrow's writer for types it supports, else as texts. NULL is nothing, an empty text is ""."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.csv as pa_csv

from lakelet.sql.files.cell_values import PLAIN_SCALE, text_array


def csv_lines(
    schema: pa.Schema, batches: Iterable[pa.RecordBatch], *, header: bool = True, delimiter: str = ",", null: str = ""
) -> Iterator[str]:
    """The CSV text, batch by batch."""
    texts = pa.schema([(field.name, _kind(field.type)) for field in schema])
    buffer = pa.BufferOutputStream()
    options = pa_csv.WriteOptions(include_header=header, quoting_style="needed", delimiter=delimiter)
    with pa_csv.CSVWriter(buffer, texts, write_options=options):
        pass
    yield buffer.getvalue().to_pybytes().decode()
    rest = pa_csv.WriteOptions(include_header=False, quoting_style="needed", delimiter=delimiter, null_string=null)
    for batch in batches:
        columns = [
            column if column.type == kind else text_array(column)
            for column, kind in zip(batch.columns, texts.types, strict=True)
        ]
        piece = pa.BufferOutputStream()
        with pa_csv.CSVWriter(piece, texts, write_options=rest) as writer:
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=texts))
        yield piece.getvalue().to_pybytes().decode()


def _kind(kind: pa.DataType) -> pa.DataType:
    """The type in which a column is passed to Arrow's writer."""
    types = pa.types
    if types.is_decimal(kind) and kind.scale > PLAIN_SCALE:
        return pa.string()
    numbers = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean)
    known = (*numbers, types.is_date, types.is_time, types.is_timestamp)
    return kind if any(is_kind(kind) for is_kind in known) else pa.string()
