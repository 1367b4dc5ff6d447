"""A single row with its partition and bucket, for engines that shuffle row by row. Batches are `router.Routed`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakelet.errors import InternalError
from lakelet.model.row_kind import RowKind
from lakelet.sink.bucket.channels import partition_hashes, select_channels
from lakelet.sink.bucket.extractors import Extracted


@dataclass(frozen=True, slots=True)
class SinkRecord:
    """A row, what it does, and where: `partition` and `primary_key` are BinaryRow bytes."""

    partition: bytes
    bucket: int
    primary_key: bytes
    row: Mapping[str, object]
    kind: RowKind = RowKind.INSERT

    def channel(self, channels: int) -> int:
        """The channel, among `channels` writers, that takes the record."""
        hashes = partition_hashes([self.partition])
        return int(select_channels(hashes, np.array([self.bucket], np.int32), channels)[0])


def sink_records(
    batch: pa.RecordBatch, extracted: Extracted, kinds: NDArray[np.int8] | None = None
) -> Iterator[SinkRecord]:
    """The rows of a batch of a primary-key table as records, in their order."""
    if extracted.buckets is None:
        raise InternalError("rows were made records before they had buckets")
    places = zip(extracted.partition_codes.tolist(), extracted.buckets.tolist(), strict=True)
    keys, rows = extracted.primary_keys.to_pylist(), batch.to_pylist()
    numbers = [0] * len(rows) if kinds is None else kinds.tolist()
    for (code, bucket), key, row, kind in zip(places, keys, rows, numbers, strict=True):
        yield SinkRecord(extracted.partitions[code], bucket, key, row, RowKind(kind))
