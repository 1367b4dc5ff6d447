"""`ls.compact`: compaction with one task per bucket on executors, and one commit by the driver."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import SparkSession

from lakelet.compact.progress import Progress
from lakelet.compact.running import Compaction
from lakelet.ids import PrefixedIds
from lakelet.model.snapshot import Snapshot
from lakelet.spark.compact_tasks import CompactTasks
from lakelet.spark.opened import open_table
from lakelet.table.compacting import partition_scope
from lakelet.table.table import check_usable


def compact(
    spark: SparkSession,
    warehouse: str | os.PathLike[str],
    table: str,
    full: bool = False,
    *,
    partition: Mapping[str, object] | None = None,
    progress: Progress | None = None,
    branch: str | None = None,
    options: Mapping[str, str] | None = None,
) -> Snapshot | None:
    """Compacts what the table's options say is due, with `full` all there is; the snapshot made, None where there was
    nothing to do.

    `partition` narrows it to partitions with these values. `progress` is called with a `CompactionProgress` as tasks end, which a
    session over Spark Connect does not tell. Writers go on meanwhile; buckets that they or another compaction rewrite are
    left to them.
    """
    opened = open_table(warehouse, table, options, branch)
    schema = opened.schema()
    check_usable(schema)
    job = opened.home.ids.uuid().replace("-", "")
    home = replace(opened.home, ids=PrefixedIds(job))
    scope = partition_scope(partition, schema)
    tasks = CompactTasks(spark, home, job, progress)
    return Compaction(home, schema, full, scope, elsewhere=tasks, extra=opened.extra).run()
