"""Preserve errors of streams that DuckDB reads: raised as they were, not as DuckDB wraps them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from lakelet.errors import LakeletError


class StreamError:
    """Keeps the error of the streams that are watched."""

    def __init__(self) -> None:
        self._kept: LakeletError | None = None

    def watch(self, rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
        """The same rows."""
        return pa.RecordBatchReader.from_batches(rows.schema, self._watched(rows))

    def _watched(self, rows: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        try:
            yield from rows
        except LakeletError as error:
            self._kept = error
            raise

    @contextmanager
    def retold(self) -> Iterator[None]:
        """Raise the original error of a stream in place of the one that its reader wrapped it in."""
        try:
            yield
        except Exception as error:
            if self._kept is not None:
                raise self._kept from error
            raise
