"""Placers: assign a bucket to every row, and report to the commit what the assignment depends on.

A placer gets batch after batch and may keep state. Where the bucket is a function of the row, `ExtractedPlacer` is used; tables
with dynamic buckets have placers that look keys up in an index, and commit the changed index with the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakelet.errors import InternalError
from lakelet.model.bucket_mode import Place
from lakelet.model.commit_message import CommitMessage
from lakelet.model.row_arrays import Kinds
from lakelet.model.schema import TableSchema
from lakelet.sink.bucket.extractors import Extracted, extractor_for

# Numbers of two bytes are sorted by counting, several times faster than greater ones by comparing.
_COUNTED = 1 << 16


@dataclass(frozen=True, slots=True)
class Placed:
    """Rows with their row kinds (None: all are inserts), partitions and buckets."""

    rows: pa.RecordBatch
    kinds: Kinds | None
    extracted: Extracted


class RowPlacer(Protocol):
    """Assigns buckets to rows."""

    @property
    def total_buckets(self) -> int:
        """What manifests record as the number of buckets."""
        ...

    def place(self, batch: pa.RecordBatch, kinds: Kinds | None) -> Iterator[Placed]:
        """The rows of a batch with their places. Rows may be dropped, and retracts of older rows inserted before them."""
        ...

    def complete(self, messages: tuple[CommitMessage, ...]) -> tuple[CommitMessage, ...]:
        """The messages with what the assignment depends on, once all rows are written."""
        ...

    def abort(self) -> None:
        """Removes what was written for `complete`."""
        ...


class ExtractedPlacer:
    """The placer of the modes in which the bucket is a function of the row."""

    def __init__(self, schema: TableSchema) -> None:
        self._extractor = extractor_for(schema)

    @property
    def total_buckets(self) -> int:
        """What manifests record as the number of buckets."""
        return self._extractor.total_buckets

    def place(self, batch: pa.RecordBatch, kinds: Kinds | None) -> Iterator[Placed]:
        """All rows, as they are."""
        yield Placed(batch, kinds, self._extractor.extract(batch))

    def complete(self, messages: tuple[CommitMessage, ...]) -> tuple[CommitMessage, ...]:
        """The messages as they are."""
        return messages

    def abort(self) -> None:
        """Nothing was written."""


def rows_by_place(extracted: Extracted) -> Sequence[tuple[Place, NDArray[np.int64] | None]]:
    """The row numbers of every place, ascending; None means all rows."""
    if extracted.buckets is None:
        raise InternalError("rows were sorted into buckets before they had any")
    if not len(extracted):
        return []
    buckets = extracted.buckets.astype(np.int64)
    least = int(buckets.min())
    per_partition = int(buckets.max()) - least + 1
    codes = extracted.partition_codes * per_partition + (buckets - least)

    def place(code: int) -> Place:
        return extracted.partitions[code // per_partition], code % per_partition + least

    if (codes == codes[0]).all():
        return [(place(int(codes[0])), None)]
    few = len(extracted.partitions) * per_partition <= _COUNTED
    order = np.argsort(codes.astype(np.uint16) if few else codes, kind="stable")
    edges = np.flatnonzero(np.diff(codes[order])) + 1
    parts = pairwise([0, *edges.tolist(), len(codes)])
    return [(place(int(codes[order[start]])), order[start:end]) for start, end in parts]
