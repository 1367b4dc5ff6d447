"""Check that deletion vectors can be switched on for a table with data.

Readers of a primary-key table with deletion vectors merge nothing: they leave out level 0 and take the rows of all other files as
they are. That is right for buckets that compaction has kept so from the beginning. In others rows would vanish, old ones would
show, or keys would come twice, until everything is compacted; so it has to be compacted before.
"""

from __future__ import annotations

from lakelet.commit.metadata.manifests import live_entries, snapshot_manifests
from lakelet.commit.metadata.snapshots import latest_snapshot
from lakelet.errors import InvalidError
from lakelet.model.schema import TableSchema
from lakelet.options import DELETION_VECTORS_ENABLED, TableOptions
from lakelet.storage.home import TableHome


def check_switch(home: TableHome, before: TableSchema, after: TableSchema) -> None:
    """InvalidError where vectors are switched on and a bucket has files that a reader without a merge would read wrong."""
    if not before.primary_keys or not TableOptions(after.options).get(DELETION_VECTORS_ENABLED):
        return
    if TableOptions(before.options).get(DELETION_VECTORS_ENABLED):
        return
    snapshot = latest_snapshot(home)
    if snapshot is None:
        return
    entries = live_entries(home, snapshot_manifests(home, snapshot), columns=("_LEVEL",))
    levels: dict[tuple[bytes, int], int] = {}
    names = ("_PARTITION", "_BUCKET", "_LEVEL")
    for partition, bucket, level in zip(*(entries.column(name).to_pylist() for name in names), strict=True):
        if bucket >= 0 and (level == 0 or levels.setdefault((partition, bucket), level) != level):
            raise InvalidError(
                f"option '{DELETION_VECTORS_ENABLED.name}': {home.where(home.paths.branch_root)} has files in bucket {bucket} "
                "that readers would have to merge, and with deletion vectors they merge none; run a full compaction first "
                "(compact(full=True)), with no writer beside it"
            )
