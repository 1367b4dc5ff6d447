"""Which bucket every row goes to, and what a commit must know of that choice.

A placer is asked batch by batch and may remember what it chose. Where rows alone decide, `ExtractedPlacer` does; tables with
dynamic buckets have placers that look keys up in an index, and hand the changed index over with the commit.
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
    """Rows, what they do (None: all are inserts), and where they go."""

    rows: pa.RecordBatch
    kinds: Kinds | None
    extracted: Extracted


class RowPlacer(Protocol):
    """Gives rows their buckets."""

    @property
    def total_buckets(self) -> int:
        """What manifests record as the number of buckets."""
        ...

    def place(self, batch: pa.RecordBatch, kinds: Kinds | None) -> Iterator[Placed]:
        """The rows of a batch with their places. Rows may be left out, and retracts of older rows may come before them."""
        ...

    def complete(self, messages: tuple[CommitMessage, ...]) -> tuple[CommitMessage, ...]:
        """The messages with what the choice of buckets rests on, once all rows are written."""
        ...

    def abort(self) -> None:
        """Removes what was written for `complete`."""
        ...


class ExtractedPlacer:
    """The placer of the modes in which the rows alone decide."""

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
    """The numbers of the rows of every place, ascending; None stands for all rows."""
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
