"""Which task writes which rows of an Iceberg table: what `write.distribution-mode` says.

    none      rows are written where they stand; every task may write a file for every partition
    hash      rows of a partition meet in one task, in several where they are many
    range     rows are spread by partition, then by sort order, so that files hold ranges of it; Spark looks at a sample first

Without a word about it partitioned tables are written by hash and all others as their rows stand. Where rows go decides
how many files there are and nothing else: the writer works out every row's partition itself, so that a task that is run again
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
# A task that is sent more than this shares its partitions with others. Shuffled rows take about twice the room of a file.
_MOST_BYTES = 512 << 20


def distribution_mode(plan: WritePlan) -> str:
    """How rows are spread; InvalidError for a mode that nobody knows."""
    told = plan.properties.get(DISTRIBUTION)
    if told is None:
        return "hash" if partition_fields(plan) else "none"
    if told.lower() not in MODES:
        raise InvalidError(f"table {plan.table}: '{DISTRIBUTION}' = {told!r}: expected one of {', '.join(MODES)}")
    return told.lower()


def routed(frame: DataFrame, plan: WritePlan, parallelism: int | None = None) -> DataFrame:
    """The rows of a frame, each partition of which one task writes. `parallelism` bounds how many there are."""
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
    # A hint in place of a shuffle: Spark may split what is too large for a task, and puts together what is small. It takes
    # a column and no expression; one number stands for all keys, so that rows do not get wider than they must.
    key = keyed.let(F.xxhash64(*keys))
    return keyed.without_keys(keyed.frame.hint("rebalance", key))


def routing_settings(plan: WritePlan) -> Mapping[str, str]:
    """Settings of the session for the time of the job: partitions are split only where they make several files."""
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
