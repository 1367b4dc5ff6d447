"""Rows that are gone by their values: a row is deleted where it equals a row of the delete file in the fields that this names.

NULL equals NULL, NaN equals NaN, and the two zeros differ, as Iceberg's Java library compares; a column that the data file does
not have counts as what reading it gives. Values are numbered, data and deletes alike, and the numbers are compared: no row is
looked at one by one.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Codes = NDArray[np.int64]


def not_deleted(rows: pa.RecordBatch, deleted: pa.Table) -> pa.Array:
    """Which rows equal no row of `deleted`; both have the same columns, by their places."""
    data = np.zeros(rows.num_rows, np.int64)
    gone = np.zeros(deleted.num_rows, np.int64)
    for place in range(deleted.num_columns):
        more, more_gone, count = _codes(rows.column(place), deleted.column(place))
        data, gone = _renumbered(data * count + more, gone * count + more_gone)
    return pa.array(~np.isin(data, gone))


def distinct(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """The rows of a delete file, each once where that can be told."""
    found = pa.Table.from_batches(batches, schema)
    if any(isinstance(field.type, pa.BaseExtensionType) or field.type.num_fields for field in schema):
        return found
    return found.group_by(schema.names, use_threads=False).aggregate([])


def _codes(data: pa.Array, gone: pa.ChunkedArray) -> tuple[Codes, Codes, int]:
    """A number for every value, the same for equal ones, and how many there are; NULL is a value too."""
    parts = [data, *gone.chunks]
    if isinstance(data, pa.ExtensionArray):
        parts = [part.storage for part in parts]
    encoded = pa.concat_arrays(parts).dictionary_encode(null_encoding="encode")
    numbers = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    return numbers[: len(data)], numbers[len(data) :], len(encoded.dictionary)


def _renumbered(data: Codes, gone: Codes) -> tuple[Codes, Codes]:
    """The same numbers, counted from 0, so that pairs of them never get too large."""
    _, numbers = np.unique(np.concatenate([data, gone]), return_inverse=True)
    flat: Codes = numbers.reshape(-1).astype(np.int64, copy=False)
    return flat[: len(data)], flat[len(data) :]
