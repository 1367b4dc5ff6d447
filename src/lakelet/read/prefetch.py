"""Prefetch the batches of an iterator on another thread."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from concurrent.futures import Executor, Future

import pyarrow as pa


def prefetched(
    batches: Generator[pa.RecordBatch, None, None], workers: Executor
) -> Generator[pa.RecordBatch, None, None]:
    """The same batches. The first is made ahead of its request; closing waits for the one under way."""
    return _following(batches, workers, workers.submit(_next, batches))


def _following(
    batches: Generator[pa.RecordBatch, None, None], workers: Executor, first: Future[pa.RecordBatch | None]
) -> Generator[pa.RecordBatch, None, None]:
    under_way = first
    try:
        while (batch := under_way.result()) is not None:
            under_way = workers.submit(_next, batches)
            yield batch
    finally:
        if not under_way.cancel():
            under_way.exception()
        batches.close()


def _next(batches: Iterator[pa.RecordBatch]) -> pa.RecordBatch | None:
    return next(batches, None)
