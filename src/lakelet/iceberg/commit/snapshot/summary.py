"""The summary of a snapshot: added and removed counts, totals, and the id by which a commit is found again.

lakelet.commit-id    the insert, as its caller named it
lakelet.job-id       the job whose files these are
"""

from __future__ import annotations

from collections.abc import Mapping

from pyiceberg.manifest import DataFile
from pyiceberg.table import TableProperties
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import (
    Operation,
    Snapshot,
    SnapshotSummaryCollector,
    Summary,
    UpdateMetrics,
    update_snapshot_summaries,
)

from lakelet.iceberg.commit.change import Change
from lakelet.iceberg.commit.partition_keys import partition_key
from lakelet.iceberg.commit.table_settings import number_property

COMMIT_ID = "lakelet.commit-id"
JOB_ID = "lakelet.job-id"
_PARTITION_COUNT = "changed-partition-count"


def summary_of(
    metadata: TableMetadata, parent: Snapshot | None, change: Change, properties: Mapping[str, str]
) -> Summary:
    """The summary of a change to a branch whose head was `parent`."""
    added = (*change.added, *change.added_deletes)
    removed = tuple(live.file for live in (*change.removed, *change.removed_deletes))
    limit = number_property(metadata.properties, TableProperties.WRITE_PARTITION_SUMMARY_LIMIT, 0, least=0)
    found = _by_partition(metadata, added, removed, limit) if limit else _counted(added, removed)
    # Totals of a replacement are computed as of an overwrite.
    working = Operation.OVERWRITE if change.operation == Operation.REPLACE else change.operation
    summary = update_snapshot_summaries(
        Summary(working, **found, **properties), parent.summary if parent is not None else None
    )
    return Summary(change.operation, **summary.additional_properties)


def _counted(added: tuple[DataFile, ...], removed: tuple[DataFile, ...]) -> dict[str, str]:
    metrics = UpdateMetrics()
    partitions = set()
    for file in added:
        metrics.add_file(file)
    for file in removed:
        metrics.remove_file(file)
    for file in (*added, *removed):
        if len(file.partition):
            partitions.add((file.spec_id, partition_key(file.partition)))
    found = metrics.to_dict()
    if partitions:
        found[_PARTITION_COUNT] = str(len(partitions))
    return found


def _by_partition(
    metadata: TableMetadata, added: tuple[DataFile, ...], removed: tuple[DataFile, ...], limit: int
) -> dict[str, str]:
    collector = SnapshotSummaryCollector(limit)
    schema, specs = metadata.schema(), metadata.specs()
    for file in added:
        collector.add_file(file, schema, specs[file.spec_id])
    for file in removed:
        collector.remove_file(file, schema, specs[file.spec_id])
    return collector.build()
