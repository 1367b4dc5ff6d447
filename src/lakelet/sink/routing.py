"""Rows to partitions and buckets: one pass over a batch, no row looked at on its own.

Each distinct partition of a batch is encoded once; the bucket is Paimon's hash of the bucket key. The rows of every
(partition, bucket) are then gathered, in their order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelet.format.binary_row_columns import bucket_of, encode_rows, hash_rows
from lakelet.format.manifest_columns import EMPTY_ROW
from lakelet.model.schema import TableSchema
from lakelet.options import BUCKET, TableOptions

UNAWARE_BUCKET = 0


@dataclass(frozen=True, slots=True)
class Routed:
    """Rows of one bucket of one partition."""

    partition: bytes
    bucket: int
    rows: pa.RecordBatch


class Router:
    """Splits batches of a table's columns by partition and bucket."""

    def __init__(self, schema: TableSchema) -> None:
        self._partition_keys = schema.partition_keys
        self._partition_types = schema.partition_types
        self._buckets = TableOptions(schema.options).get(BUCKET)
        self._bucket_keys = schema.bucket_keys
        self._bucket_types = [schema.field(name).type for name in self._bucket_keys]

    @property
    def total_buckets(self) -> int:
        """What manifests record as the number of buckets: -1 where the table does not know buckets."""
        return self._buckets

    def route(self, batch: pa.RecordBatch) -> Iterator[Routed]:
        """The parts of a batch, each with its place."""
        if batch.num_rows == 0:
            return
        partitions, codes = self._partitions(batch)
        if self._buckets > 0:
            hashes = hash_rows([batch.column(name) for name in self._bucket_keys], self._bucket_types)
            codes = codes * self._buckets + bucket_of(hashes, self._buckets)
        per_partition = max(self._buckets, 1)
        first = codes[0]
        if (codes == first).all():
            yield Routed(partitions[first // per_partition], int(first % per_partition), batch)
            return
        order = np.argsort(codes, kind="stable")
        edges = np.flatnonzero(np.diff(codes[order])) + 1
        starts = [0, *edges.tolist(), batch.num_rows]
        for start, end in pairwise(starts):
            code = int(codes[order[start]])
            # Rows of their own, not a slice: a few rows that wait in a buffer must not keep the whole batch in memory.
            rows = batch.take(pa.array(order[start:end]))
            yield Routed(partitions[code // per_partition], code % per_partition, rows)

    def _partitions(self, batch: pa.RecordBatch) -> tuple[list[bytes], npt.NDArray[np.int64]]:
        """The distinct partitions of a batch, and each row's place among them."""
        if not self._partition_keys:
            return [EMPTY_ROW], np.zeros(batch.num_rows, np.int64)
        codes = np.zeros(batch.num_rows, np.int64)
        columns: list[pa.Array] = []
        for name in self._partition_keys:
            encoded = batch.column(name).dictionary_encode(null_encoding="encode")
            size = len(encoded.dictionary)
            # Codes are made dense again after every key, so that they never grow past the number of rows.
            combined = pa.array(codes * size + encoded.indices.to_numpy()).dictionary_encode()
            before, own = np.divmod(combined.dictionary.to_numpy(), size)
            columns = [*(column.take(pa.array(before)) for column in columns), encoded.dictionary.take(pa.array(own))]
            codes = combined.indices.to_numpy().astype(np.int64)
        return encode_rows(columns, self._partition_types).to_pylist(), codes
