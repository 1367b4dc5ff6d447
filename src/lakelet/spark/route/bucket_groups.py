"""Assign the dynamic buckets of a partition to tasks.

    group      bucket % groups, and for a new key the assigner of its hash (sink/bucket/channels.select_assigners)
    channel    (start of the partition + group) % channels

A new key goes into a bucket of its own group, so that one task has all rows of a bucket and alone opens the buckets of its
group. The number of groups is a power of two unless the table's options say another: keys that one write put into the buckets
of their group are then in that of every later write with fewer groups, too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakelet.model.bucket_mode import Place
from lakelet.model.schema import TableSchema
from lakelet.options import DYNAMIC_BUCKET_ASSIGNER_PARALLELISM, DYNAMIC_BUCKET_INITIAL_BUCKETS, TableOptions
from lakelet.sink.bucket.dynamic_buckets import AssignerSettings
from lakelet.sink.bucket.placers import RowPlacer
from lakelet.spark.route.hash_expression import channel_of
from lakelet.spark.session import default_parallelism, is_connect

# Estimated bytes that are worth a bucket of their own from the start; partitions divide the data already.
_GROUP_BYTES = 8 << 20
_GROUP_BYTES_IN_PARTITIONS = 64 << 20
_MOST_TRIED = 64
_GROUPS_PER_CORE = 2
_CHANNELS_PER_CORE = 4


@dataclass(frozen=True, slots=True)
class Routed:
    """Rows shuffled to their writers, and the factory of a writer's placer. `carried` names a column beside the table's."""

    frame: DataFrame
    placer_of: Callable[[], RowPlacer]
    carried: str | None = None


@dataclass(frozen=True, slots=True)
class BucketGroups:
    """The number of bucket groups in each partition, and of the channels they are assigned to."""

    groups: int
    channels: int

    @staticmethod
    def of(frame: DataFrame, schema: TableSchema, buckets: Collection[Place], parallelism: int | None) -> BucketGroups:
        """As many groups as the data and the table's buckets can keep busy, and not more than tasks are worthwhile."""
        cores = default_parallelism(frame.sparkSession)
        options = TableOptions(schema.options)
        asked = options.get(DYNAMIC_BUCKET_INITIAL_BUCKETS) or options.get(DYNAMIC_BUCKET_ASSIGNER_PARALLELISM)
        most = parallelism or _GROUPS_PER_CORE * cores
        there = max(Counter(partition for partition, _ in buckets).values(), default=1)
        groups = max(asked or _power_of_two(min(most, _worth(frame, schema))), _power_of_two(min(most, there)))
        groups = AssignerSettings.of(schema, groups).assigners
        return BucketGroups(groups, parallelism or _CHANNELS_PER_CORE * cores).without_idle(schema)

    def without_idle(self, schema: TableSchema) -> BucketGroups:
        """The same without channels that no group is assigned to, where there is but one partition."""
        return self if schema.partition_keys else replace(self, channels=min(self.groups, self.channels))

    def alternatives(self, schema: TableSchema, least: int) -> list[int]:
        """Other numbers of groups that the table allows, the preferred ones first."""
        halves = [self.groups >> shift for shift in range(self.groups.bit_length()) if self.groups >> shift >= least]
        others = range(min(2 * self.groups, _MOST_TRIED), least - 1, -1)
        tried = dict.fromkeys([*halves, *others])
        return [groups for groups in tried if AssignerSettings.of(schema, groups).assigners == groups]

    def channel(self, schema: TableSchema, bucket: Column, partition_hash: Column, key_hash: Column) -> Column:
        """The channel of rows whose bucket is known, and where it is negative that of new keys."""
        groups = F.lit(self.groups)
        own = (F.abs(partition_hash % groups) + F.abs(key_hash % groups)) % groups
        return channel_of(schema, self.channels, F.when(bucket >= 0, bucket % groups).otherwise(own))


def free_name(name: str, frame: DataFrame) -> str:
    """A name for a column that a frame does not have."""
    taken = {column.lower() for column in frame.columns}
    while name in taken:
        name += "_"
    return name


def _worth(frame: DataFrame, schema: TableSchema) -> int:
    size = _estimated_bytes(frame)
    return -(-size // (_GROUP_BYTES_IN_PARTITIONS if schema.partition_keys else _GROUP_BYTES))


def _estimated_bytes(frame: DataFrame) -> int:
    """Spark's estimate of the rows' size in bytes; more than any data where it has none."""
    if is_connect(frame.sparkSession):
        return 1 << 62
    found = str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes())
    return int(found) if re.fullmatch(r"\d+", found) else 1 << 62


def _power_of_two(number: int) -> int:
    """The greatest one up to a number."""
    return 1 << (max(1, number).bit_length() - 1)
