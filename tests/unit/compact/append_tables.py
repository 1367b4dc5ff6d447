"""Append tables in memory, and their compaction by hand: plan, rewrite, commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from lakelet import Lake, Table
from lakelet.commit.committer import commit
from lakelet.commit.metadata.manifests import live_entries, snapshot_manifests
from lakelet.commit.metadata.schemas import SchemaVersions, latest_schema
from lakelet.commit.metadata.snapshots import latest_snapshot
from lakelet.commit.request import CommitRequest
from lakelet.compact.append.append_plan import append_tasks, inline_append_tasks
from lakelet.compact.append.append_rewrite import AppendRewriter
from lakelet.compact.progress import Watch
from lakelet.compact.task import CompactionTask
from lakelet.format.index import deletion_vectors
from lakelet.format.manifest.index_manifest import encode_index_manifest
from lakelet.format.manifest.manifest_columns import EMPTY_ROW, columns_to_entries
from lakelet.format.metadata.snapshot_json import encode_snapshot
from lakelet.model.commit_message import CommitMessage
from lakelet.model.data_file import DataFile, DeletionVectorRange, IndexFile
from lakelet.model.manifest import EntryKind, IndexManifestEntry
from lakelet.model.snapshot import Snapshot
from lakelet.options import TableOptions
from lakelet.scan.plan import Planner
from lakelet.storage.home import TableHome
from lakelet.storage.memory import MemoryStore


def append_table(
    columns: Sequence[tuple[str, str]] = (("id", "BIGINT"), ("s", "STRING")),
    partitions: Sequence[str] = (),
    options: Mapping[str, str] | None = None,
) -> Table:
    """An empty table that no write compacts by itself."""
    lake = Lake(MemoryStore())
    lake.create_database("d")
    chosen = {"write-only": "true", **(options or {})}
    return lake.create_table("d.t", list(columns), partitioned_by=list(partitions), options=chosen)


def home_of(table: Table) -> TableHome:
    return table.scan().home


def planned(table: Table, *, full: bool = False, inline: bool = False) -> list[CompactionTask]:
    """The tasks that are due in the newest snapshot."""
    home = home_of(table)
    snapshot, schema = latest_snapshot(home), latest_schema(home)
    assert snapshot is not None
    entries = columns_to_entries(live_entries(home, snapshot_manifests(home, snapshot)))
    planner = Planner(home, schema, SchemaVersions(home, {schema.id: schema}), TableOptions(schema.options))
    vectors = planner.deletion_vectors(snapshot)
    if inline:
        return inline_append_tasks(entries, schema, snapshot_id=snapshot.id, vectors=vectors)
    return append_tasks(entries, schema, snapshot_id=snapshot.id, vectors=vectors, full=full)


def rewritten(table: Table, tasks: Sequence[CompactionTask], watch: Watch | None = None) -> tuple[CommitMessage, ...]:
    home = home_of(table)
    schema = latest_schema(home)
    rewriter = AppendRewriter(home, schema, SchemaVersions(home, {schema.id: schema}))
    rows, size = sum(task.row_count for task in tasks), sum(task.size for task in tasks)
    return tuple(rewriter.rewrite(task, watch or Watch(len(tasks), rows, size)) for task in tasks)


def compact(table: Table, *, full: bool = False, inline: bool = False) -> Snapshot | None:
    """Compacts what is due; None where nothing is."""
    messages = rewritten(table, planned(table, full=full, inline=inline))
    return commit(home_of(table), CommitRequest("compactor", messages, compacts=True)) if messages else None


def files_of(table: Table) -> list[DataFile]:
    return [file for _, file in table.files()]


def delete_rows(table: Table, positions: Mapping[str, Sequence[int]], *, index: str = "index-x-0") -> None:
    """Puts deletion vectors beside the newest snapshot, as another writer would."""
    home, snapshot = home_of(table), table.latest_snapshot()
    assert snapshot is not None
    data, places = b"\x01", []
    for name, rows in positions.items():
        vector = deletion_vectors.encode(np.array(rows, np.int64))
        places.append(DeletionVectorRange(name, len(data), len(vector) - 8, len(rows)))
        data += vector
    home.store.put(home.paths.index(index), data)
    file = IndexFile("DELETION_VECTORS", index, len(data), len(places), tuple(places))
    manifest = encode_index_manifest([IndexManifestEntry(EntryKind.ADD, EMPTY_ROW, 0, file)], codec="null")
    home.store.put(home.paths.manifest(f"index-manifest-{index}"), manifest)
    changed = replace(snapshot, index_manifest=f"index-manifest-{index}")
    home.store.put(home.paths.snapshot(snapshot.id), encode_snapshot(changed))
