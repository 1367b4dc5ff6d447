"""Where sequence numbers of a bucket go on.

In a table with fixed buckets the files of a bucket are ordered by sequence number, so a writer continues after what is
committed. Bucket-unaware tables have no such order; their files count from 0 each.
"""

from __future__ import annotations

from lakelet.commit.manifests import ManifestSettings, live_entries, snapshot_manifests
from lakelet.commit.snapshots import latest_snapshot
from lakelet.model.schema import TableSchema
from lakelet.options import BUCKET, TableOptions
from lakelet.storage.home import TableHome


def next_sequences(home: TableHome, schema: TableSchema) -> dict[tuple[bytes, int], int]:
    """The first free sequence number of each bucket that has files, by partition and bucket."""
    options = TableOptions(schema.options)
    snapshot = latest_snapshot(home) if options.get(BUCKET) > 0 else None
    if snapshot is None:
        return {}
    manifests = snapshot_manifests(home, snapshot)
    entries = live_entries(
        home, manifests, columns=["_MAX_SEQUENCE_NUMBER"], threads=ManifestSettings.of(options).threads
    )
    greatest = entries.group_by(["_PARTITION", "_BUCKET"]).aggregate([("_MAX_SEQUENCE_NUMBER", "max")])
    keys = zip(greatest.column("_PARTITION").to_pylist(), greatest.column("_BUCKET").to_pylist(), strict=True)
    numbers = greatest.column("_MAX_SEQUENCE_NUMBER_max").to_pylist()
    return {key: number + 1 for key, number in zip(keys, numbers, strict=True)}
