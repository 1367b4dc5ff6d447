"""Split batches by partition and bucket, vectorised.

The place of each row comes from an extractor, or from an assigner where buckets are dynamic. The rows of every
(partition, bucket) are then gathered, in their order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from lakelet.model.row_arrays import Kinds
from lakelet.model.schema import TableSchema
from lakelet.sink.bucket.extractors import Extracted, extractor_for
from lakelet.sink.bucket.placers import rows_by_place


@dataclass(frozen=True, slots=True)
class Routed:
    """Rows of one bucket of one partition with their row kinds (None: all are inserts)."""

    partition: bytes
    bucket: int
    rows: pa.RecordBatch
    kinds: Kinds | None = None


class Router:
    """Splits batches of a table's columns by partition and bucket, where both are functions of the row."""

    def __init__(self, schema: TableSchema) -> None:
        self._extractor = extractor_for(schema)

    @property
    def total_buckets(self) -> int:
        """The bucket count that manifests record: -1 for a bucket-unaware table."""
        return self._extractor.total_buckets

    def route(self, batch: pa.RecordBatch, kinds: Kinds | None = None) -> Iterator[Routed]:
        """The parts of a batch, each with its place."""
        if batch.num_rows:
            yield from gather(batch, self._extractor.extract(batch), kinds)


def gather(batch: pa.RecordBatch, extracted: Extracted, kinds: Kinds | None = None) -> Iterator[Routed]:
    """The rows of a batch by partition and bucket; rows of one place keep their order."""
    for (partition, bucket), own in rows_by_place(extracted):
        if own is None:
            yield Routed(partition, bucket, batch, kinds)
            continue
        # Rows of their own, not a slice: a few rows that wait in a buffer must not keep the whole batch in memory.
        rows = batch.take(pa.array(own))
        yield Routed(partition, bucket, rows, None if kinds is None else kinds[own])
