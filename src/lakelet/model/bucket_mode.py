"""The bucket mode of a table: how rows are assigned to buckets."""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

from lakelet.model.schema import TableSchema
from lakelet.options import BUCKET, TableOptions

POSTPONE_BUCKET = -2
UNAWARE_BUCKET = 0

Place: TypeAlias = tuple[bytes, int]
"""A partition, as the bytes of its BinaryRow, and a bucket of it."""


class BucketMode(Enum):
    """The five bucket modes, by Paimon's names."""

    HASH_FIXED = "the hash of the bucket key, over a fixed number of buckets"
    HASH_DYNAMIC = "an index of key hashes per partition remembers it"
    KEY_DYNAMIC = "the key alone decides, across partitions"
    POSTPONE_MODE = "none yet; compaction will choose"
    BUCKET_UNAWARE = "none at all; files of an append table are in bucket 0"


def bucket_mode(schema: TableSchema) -> BucketMode:
    """The mode that follows from a table's keys and its `bucket` option."""
    buckets = TableOptions(schema.options).get(BUCKET)
    if buckets == POSTPONE_BUCKET:
        return BucketMode.POSTPONE_MODE
    if buckets > 0:
        return BucketMode.HASH_FIXED
    if not schema.primary_keys:
        return BucketMode.BUCKET_UNAWARE
    return BucketMode.KEY_DYNAMIC if schema.crosses_partitions else BucketMode.HASH_DYNAMIC
