"""Extract the partition, the bucket and the primary key of every row of a batch, in each bucket mode.

    batch ──► KeyAndBucketExtractor.extract ──► Extracted
                partitions, partition_codes    the distinct BinaryRows, and which of them is each row's
                buckets                        one per row; None where an assigner decides
                primary_keys, key_hashes       of the trimmed primary key, computed lazily

Everything is computed for whole batches and once: the hashes of a batch are used by the bucket and by the assigner, but
hashed only the first time. Which file the rows are written to is decided by the writers; nothing here keeps state between
batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakelet.errors import InternalError
from lakelet.format.manifest.manifest_columns import EMPTY_ROW
from lakelet.format.rows.binary_row_columns import bucket_of, encode_rows, hash_rows
from lakelet.model.bucket_mode import POSTPONE_BUCKET, UNAWARE_BUCKET, BucketMode, bucket_mode
from lakelet.model.schema import TableSchema
from lakelet.model.types import DataType
from lakelet.options import BUCKET, TableOptions

Codes = NDArray[np.int64]
Hashes = NDArray[np.int32]
Buckets = NDArray[np.int32]


class Extracted:
    """The partitions, buckets and keys of the rows of one batch."""

    __slots__ = ("_hashes", "_key_columns", "_key_types", "_primary_keys", "buckets", "partition_codes", "partitions")

    def __init__(
        self,
        partitions: Sequence[bytes],
        partition_codes: Codes,
        buckets: Buckets | None,
        *,
        key_columns: Sequence[pa.Array] = (),
        key_types: Sequence[DataType] = (),
        hashes: Hashes | None = None,
    ) -> None:
        self.partitions = tuple(partitions)
        self.partition_codes = partition_codes
        self.buckets = buckets
        self._key_columns = tuple(key_columns)
        self._key_types = tuple(key_types)
        self._hashes = hashes
        self._primary_keys: pa.Array | None = None

    def __len__(self) -> int:
        return len(self.partition_codes)

    @property
    def primary_keys(self) -> pa.Array:
        """The primary key of each row as BinaryRow bytes: without the partition columns, except across partitions."""
        if self._primary_keys is None:
            self._check_keys()
            self._primary_keys = encode_rows(self._key_columns, self._key_types)
        return self._primary_keys

    @property
    def key_hashes(self) -> Hashes:
        """Paimon's hash of each row's primary key, as dynamic buckets index it."""
        if self._hashes is None:
            self._check_keys()
            self._hashes = hash_rows(self._key_columns, self._key_types)
        return self._hashes

    def assigned(self, buckets: Buckets) -> Extracted:
        """The same rows with the buckets that an assigner chose for them."""
        if len(buckets) != len(self):
            raise InternalError(f"{len(buckets)} buckets were assigned to {len(self)} rows")
        extracted = Extracted(
            self.partitions,
            self.partition_codes,
            buckets,
            key_columns=self._key_columns,
            key_types=self._key_types,
            hashes=self._hashes,
        )
        extracted._primary_keys = self._primary_keys
        return extracted

    def _check_keys(self) -> None:
        if not self._key_columns:
            raise InternalError("rows of a table without a primary key were asked for it")


class KeyAndBucketExtractor(Protocol):
    """Extracts partition, bucket and key of rows in one bucket mode."""

    @property
    def total_buckets(self) -> int:
        """What manifests record as the number of buckets: that of the option `bucket`, negative ones included."""
        ...

    def extract(self, batch: pa.RecordBatch) -> Extracted:
        """The places of the rows of a batch in the table's columns."""
        ...


def extractor_for(schema: TableSchema) -> KeyAndBucketExtractor:
    """The extractor of a table's bucket mode."""
    return _EXTRACTORS[bucket_mode(schema)](schema)


class RowPartitionKeyExtractor:
    """Partition and trimmed primary key: what all modes have in common."""

    def __init__(self, schema: TableSchema) -> None:
        self._partition_keys = schema.partition_keys
        self._partition_types = schema.partition_types
        self._keys = self._key_names(schema)
        self._key_types = tuple(schema.field(name).type for name in self._keys)
        self._total_buckets = TableOptions(schema.options).get(BUCKET)

    @property
    def total_buckets(self) -> int:
        """What manifests record as the number of buckets."""
        return self._total_buckets

    def extract(self, batch: pa.RecordBatch) -> Extracted:
        """The places of the rows."""
        partitions, codes = self._partitions(batch)
        columns = [batch.column(name) for name in self._keys]
        extracted = Extracted(partitions, codes, None, key_columns=columns, key_types=self._key_types)
        buckets = self._buckets(batch, extracted)
        return extracted if buckets is None else extracted.assigned(buckets)

    def _key_names(self, schema: TableSchema) -> tuple[str, ...]:
        return schema.trimmed_primary_keys

    def _buckets(self, batch: pa.RecordBatch, extracted: Extracted) -> Buckets | None:
        return None

    def _partitions(self, batch: pa.RecordBatch) -> tuple[list[bytes], Codes]:
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


class FixedBucketRowKeyExtractor(RowPartitionKeyExtractor):
    """HASH_FIXED: the hash of the bucket key, modulo the table's number of buckets."""

    def __init__(self, schema: TableSchema) -> None:
        super().__init__(schema)
        self._bucket_keys = schema.bucket_keys
        self._bucket_types = tuple(schema.field(name).type for name in self._bucket_keys)

    def _buckets(self, batch: pa.RecordBatch, extracted: Extracted) -> Buckets:
        if self._bucket_keys == self._keys:
            hashes = extracted.key_hashes
        else:
            hashes = hash_rows([batch.column(name) for name in self._bucket_keys], self._bucket_types)
        return bucket_of(hashes, self._total_buckets)


class DynamicBucketRowKeyExtractor(RowPartitionKeyExtractor):
    """HASH_DYNAMIC: `dynamic_buckets` assigns the bucket by the hash of the trimmed primary key."""


class RowPartitionAllPrimaryKeyExtractor(RowPartitionKeyExtractor):
    """KEY_DYNAMIC: `cross_partition` assigns partition and bucket by the whole primary key, partition columns included."""

    def _key_names(self, schema: TableSchema) -> tuple[str, ...]:
        return schema.primary_keys


class PostponeBucketRowKeyExtractor(RowPartitionKeyExtractor):
    """POSTPONE_MODE: rows wait in a bucket of their own until compaction gives them one."""

    def _buckets(self, batch: pa.RecordBatch, extracted: Extracted) -> Buckets:
        return np.full(batch.num_rows, POSTPONE_BUCKET, np.int32)


class AppendTableRowKeyExtractor(RowPartitionKeyExtractor):
    """BUCKET_UNAWARE: all rows of a partition are in one bucket."""

    def _buckets(self, batch: pa.RecordBatch, extracted: Extracted) -> Buckets:
        return np.full(batch.num_rows, UNAWARE_BUCKET, np.int32)


_EXTRACTORS: dict[BucketMode, type[RowPartitionKeyExtractor]] = {
    BucketMode.HASH_FIXED: FixedBucketRowKeyExtractor,
    BucketMode.HASH_DYNAMIC: DynamicBucketRowKeyExtractor,
    BucketMode.KEY_DYNAMIC: RowPartitionAllPrimaryKeyExtractor,
    BucketMode.POSTPONE_MODE: PostponeBucketRowKeyExtractor,
    BucketMode.BUCKET_UNAWARE: AppendTableRowKeyExtractor,
}
