"""Primary-key tables in memory for tests of compaction: rows by key, rows by bucket, leftover files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from lakelet import Lake, Table
from lakelet.clock import Clock
from lakelet.commit.metadata.manifests import live_entries, snapshot_manifests
from lakelet.commit.metadata.snapshots import latest_snapshot
from lakelet.format.manifest.manifest_columns import columns_to_entries
from lakelet.model.manifest import ManifestEntry
from lakelet.storage.memory import MemoryStore
from lakelet.storage.store import ObjectStore
from tests.unit.moving_clock import MovingClock

COLUMNS = (("id", "BIGINT"), ("p", "STRING"), ("v", "STRING"))


def keyed_table(
    options: Mapping[str, str] | None = None,
    *,
    columns: Sequence[tuple[str, str]] = COLUMNS,
    key: Sequence[str] = ("id", "p"),
    partitions: Sequence[str] = ("p",),
    store: ObjectStore | None = None,
    clock: Clock | None = None,
) -> Table:
    """An empty table."""
    lake = Lake(store or MemoryStore(), clock=clock or MovingClock())
    lake.create_database("d")
    return lake.create_table(
        "d.t", list(columns), primary_key=list(key), partitioned_by=list(partitions), options=dict(options or {})
    )


def rows(ids: Sequence[int], v: str, p: str = "a") -> pa.Table:
    """Rows of one partition."""
    return pa.table({"id": list(ids), "p": [p] * len(ids), "v": [f"{v}{id_}" for id_ in ids]})


def values(table: Table) -> dict[Any, Any]:
    """The value of each key; AssertionError where a key stands twice."""
    found = table.scan().to_arrow().to_pylist()
    by_key = {(row["p"], row["id"]): row["v"] for row in found}
    assert len(by_key) == len(found)
    return by_key


def entries(table: Table) -> list[ManifestEntry]:
    """The live files."""
    snapshot = latest_snapshot(table.home)
    return (
        []
        if snapshot is None
        else columns_to_entries(live_entries(table.home, snapshot_manifests(table.home, snapshot)))
    )


def places(table: Table) -> set[tuple[int, int]]:
    """The buckets that files are in, and the number of buckets that they say there are."""
    return {(entry.bucket, entry.total_buckets) for entry in entries(table)}


def stored(table: Table) -> set[str]:
    """The names of data files in the store, live or not."""
    return {
        info.path.rsplit("/", 1)[1] for info in table.home.store.list(table.home.paths.root) if "/bucket-" in info.path
    }


def named(table: Table) -> set[str]:
    """The names of data files that some snapshot has."""
    found: set[str] = set()
    for snapshot in table.snapshots():
        live = live_entries(table.home, snapshot_manifests(table.home, snapshot), columns=())
        found.update(live.column("_FILE_NAME").to_pylist())
    return found
