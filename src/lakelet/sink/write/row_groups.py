"""Regroup batches into tables of one row group each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa


def row_groups(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.Table]:
    """The same rows in tables of one row group each; the last one may be smaller."""
    held: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        start = 0
        while count + batch.num_rows - start >= rows:
            end = start + rows - count
            yield pa.Table.from_batches([*held, batch.slice(start, end - start)])
            held, count, start = [], 0, end
        if start < batch.num_rows:
            held.append(batch.slice(start))
            count += batch.num_rows - start
    if held:
        yield pa.Table.from_batches(held)


def ahead(groups: Iterator[pa.Table], pool: ThreadPoolExecutor | None) -> Iterator[pa.Table]:
    """Prefetch: with a pool, the next table is made while the one before is used."""
    if pool is None:
        yield from groups
        return
    coming = pool.submit(next, groups, None)
    while (group := coming.result()) is not None:
        coming = pool.submit(next, groups, None)
        yield group
