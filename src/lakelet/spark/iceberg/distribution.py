"""Distribute rows over the tasks that write an Iceberg table, as `write.distribution-mode` says.

    none      no shuffle; every task may write a file for every partition
    hash      rows of a partition are shuffled to one task, or to several where they are many
    range     rows are range-partitioned by partition, then by sort order, so that files hold ranges of it; Spark samples first

By default partitioned tables are written by hash and all others without a shuffle. The distribution decides only
how many files there are: the writer computes every row's partition itself, so that a task that is retried
may get other rows than before without harm.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakelet.errors import InvalidError
from lakelet.iceberg.write.write_plan import WritePlan
from lakelet.spark.iceberg.fields import SortedField, partition_fields, sort_fields
from lakelet.spark.iceberg.transforms import Keyed

DISTRIBUTION = "write.distribution-mode"
MODES = ("none", "hash", "range")
_ADVISORY = "spark.sql.adaptive.advisoryPartitionSizeInBytes"
# The greatest size of a task's input before Spark splits it. Shuffled rows take about twice the bytes of a file.
_MOST_BYTES = 512 << 20


def distribution_mode(plan: WritePlan) -> str:
    """The distribution mode of the table; InvalidError for an unknown one."""
    told = plan.properties.get(DISTRIBUTION)
    if told is None:
        return "hash" if partition_fields(plan) else "none"
    if told.lower() not in MODES:
        raise InvalidError(f"table {plan.table}: '{DISTRIBUTION}' = {told!r}: expected one of {', '.join(MODES)}")
    return told.lower()


def routed(frame: DataFrame, plan: WritePlan, parallelism: int | None = None) -> DataFrame:
    """The rows repartitioned, so that one task writes each Spark partition. `parallelism` bounds the number of partitions."""
    mode, keyed = distribution_mode(plan), Keyed(frame)
    if mode == "none":
        return frame if parallelism is None else frame.coalesce(parallelism)
    keys = [key for key in map(keyed.key, partition_fields(plan)) if key is not None]
    if mode == "range":
        keys += [order for order in (_order(field, keyed) for field in sort_fields(plan)) if order is not None]
    if not keys:
        return frame if parallelism is None else frame.coalesce(parallelism)
    if mode == "range":
        spread = keyed.frame.repartitionByRange
        return keyed.without_keys(spread(*keys) if parallelism is None else spread(parallelism, *keys))
    if parallelism is not None:
        return keyed.without_keys(keyed.frame.repartition(parallelism, *keys))
    # A hint in place of a shuffle: Spark may split what is too large for a task, and coalesces what is small. It takes
    # a column and no expression; one hash replaces all keys, so that rows do not get wider than they must.
    key = keyed.let(F.xxhash64(*keys))
    return keyed.without_keys(keyed.frame.hint("rebalance", key))


def routing_settings(plan: WritePlan) -> Mapping[str, str]:
    """Session settings for the duration of the job: partitions are split only where they make several files."""
    if distribution_mode(plan) != "hash":
        return {}
    return {_ADVISORY: str(min(2 * plan.target_file_size, _MOST_BYTES))}


def _order(field: SortedField, keyed: Keyed) -> Column | None:
    key = keyed.key(field.field)
    if key is None:
        return None
    if field.descending:
        return F.desc_nulls_last(key) if field.nulls_last else F.desc_nulls_first(key)
    return F.asc_nulls_last(key) if field.nulls_last else F.asc_nulls_first(key)
