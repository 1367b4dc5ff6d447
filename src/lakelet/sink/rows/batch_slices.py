"""Slice batches so that each slice stays within a memory limit."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa


def pieces(rows: pa.RecordBatch, limit: int, most_rows: int | None = None) -> Iterator[pa.RecordBatch]:
    """Slice the rows into batches of at most about `limit` bytes, and at most the given number of rows."""
    count = max(1, -(-rows.nbytes // max(limit, 1)))
    step = max(1, -(-rows.num_rows // count))
    step = step if most_rows is None else min(step, most_rows)
    for start in range(0, rows.num_rows, step):
        yield rows.slice(start, step)
