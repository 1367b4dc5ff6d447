"""What the cluster's keys say of a table, from the table itself: its configuration, statistics and files.

The table is the truth. A record is made of its newest snapshot, a change of one commit's delta; both name files by the same index
keys, so that changes one after the other and a record of the last snapshot leave the same keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.cluster.cluster_keys import ClusterKeys
from lakelet.commit.callbacks.callback_files import delta_files
from lakelet.commit.metadata.manifests import live_entries, snapshot_manifests
from lakelet.format.partition_folders import PartitionFolders
from lakelet.format.rows.binary_row import decode_row
from lakelet.model.manifest import EntryKind
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.options import SERVICE_CREATED_AT, SERVICE_NAME, SERVICE_STATUS
from lakelet.storage.home import TableHome
from lakelet.table import Table

NO_DAY = "-"
INDEXED = "indexed_snapshot"
_ID, _DAY = "id", "dt"
_SERVICE = "service."
_COLUMNS = ["_KIND", "_PARTITION", "_BUCKET", "_FILE_NAME", "_FILE_SIZE"]

# An index key and the path of a file that is one of its members.
Member = tuple[str, str]


@dataclass(frozen=True, slots=True)
class TableRecord:
    """A served table at its newest snapshot."""

    name: str
    config: Mapping[str, str]
    stats: Mapping[str, str]
    created_at: str
    last_write: str
    files: frozenset[Member]


@dataclass(frozen=True, slots=True)
class IndexChange:
    """The files that one commit removed and added."""

    removed: frozenset[Member]
    added: frozenset[Member]


def served_name(table: Table) -> str | None:
    """The name by which the service knows a table; None for one that it does not serve."""
    options = table.options
    if options.get(SERVICE_STATUS.name) is None:
        return None
    return options.get(SERVICE_NAME.name) or table.name.split(".", 1)[1]


def table_record(
    table: Table,
    name: str,
    keys: ClusterKeys,
    *,
    with_files: bool = True,
    known_stats: Mapping[str, str] | None = None,
) -> TableRecord:
    """The record of a table, without its files where only the rest is wanted, and with these statistics of its newest snapshot
    where they are known."""
    snapshot = table.latest_snapshot()
    options = table.options
    entries: pa.Table | None = None
    if snapshot is not None and (with_files or not known_stats):
        entries = live_entries(table.home, snapshot_manifests(table.home, snapshot), columns=_COLUMNS)
    config = {
        option.removeprefix(_SERVICE).replace("-", "_"): text
        for option, text in options.items()
        if option.startswith(_SERVICE) and option != SERVICE_CREATED_AT.name
    }
    return TableRecord(
        name,
        config,
        dict(known_stats) if known_stats else _stats(snapshot, entries),
        options.get(SERVICE_CREATED_AT.name, ""),
        "" if snapshot is None else _shown_time(snapshot.time_ms),
        frozenset() if entries is None or not with_files else _members(table.home, table.schema, name, keys, entries),
    )


def _stats(snapshot: Snapshot | None, entries: pa.Table | None) -> dict[str, str]:
    size = None if entries is None else pc.sum(entries.column("_FILE_SIZE")).as_py()
    return {
        "record_count": str((snapshot.total_record_count or 0) if snapshot else 0),
        "file_count": str(0 if entries is None else entries.num_rows),
        "size_bytes": str(size or 0),
        INDEXED: snapshot_mark(snapshot),
    }


def index_change(table: Table, name: str, snapshot: Snapshot, keys: ClusterKeys) -> IndexChange:
    """The change of the index that a snapshot's delta makes."""
    entries = delta_files(table.home, snapshot).columns(_COLUMNS)
    is_added = pc.equal(entries.column("_KIND"), int(EntryKind.ADD))
    added = _members(table.home, table.schema, name, keys, entries.filter(is_added))
    removed = _members(table.home, table.schema, name, keys, entries.filter(pc.invert(is_added)))
    # A file that compaction moves to another level is removed and added.
    return IndexChange(removed - added, added)


def snapshot_mark(snapshot: Snapshot | None) -> str:
    """What distinguishes a snapshot from every other of its table: a rollback reuses ids."""
    return "" if snapshot is None else f"{snapshot.id} {snapshot.delta_manifest_list}"


def _members(
    home: TableHome, schema: TableSchema, name: str, keys: ClusterKeys, entries: pa.Table
) -> frozenset[Member]:
    folders = PartitionFolders(home.paths, schema)
    groups = entries.group_by(["_PARTITION", "_BUCKET"]).aggregate([("_FILE_NAME", "list")]).to_pylist()
    return frozenset(
        (key, f"{folder}/{file}")
        for group in groups
        for key in [_key(schema, group["_PARTITION"], group["_BUCKET"], name, keys)]
        for folder in [folders.bucket_folder(group["_PARTITION"], group["_BUCKET"])]
        for file in group["_FILE_NAME_list"]
    )


def _key(schema: TableSchema, partition: bytes, bucket: int, name: str, keys: ClusterKeys) -> str:
    values = dict(zip(schema.partition_keys, decode_row(partition, schema.partition_types), strict=True))
    day = values.get(_DAY)
    shown = day.isoformat() if isinstance(day, date) else NO_DAY
    id = values.get(_ID)
    return keys.id_files(name, id, shown) if isinstance(id, str) else keys.bucket_files(name, bucket, shown)


def chunks(members: Iterable[Member], size: int) -> Iterable[list[Member]]:
    """Pieces of at most this size, so that no request grows with the table."""
    listed = sorted(members)
    return (listed[start : start + size] for start in range(0, len(listed), size))


def _shown_time(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
