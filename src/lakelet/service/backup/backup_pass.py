"""One pass: the newest snapshot of a table is mirrored in the backup store.

    pin the snapshot by a tag ─ identity, schemas ─ copy files that are missing, keep their SHA-256 ─ the source's manifests
      ─ users ─ commit in the mirror ─ let the tag go ─ expire what the mirror's retention no longer holds

The commit is the pass: whatever a pass that died has copied is found by the next one, or is an orphan of the mirror. A pass whose
snapshot is mirrored does nothing. Files that left the source's snapshot leave the mirror's with the same commit.
A scope limits a pass to some buckets: those are mirrored as a whole, all others stay as they are in the mirror.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass

from lakelet.commit.metadata.manifests import snapshot_manifests
from lakelet.commit.metadata.schemas import read_schema
from lakelet.commit.metadata.snapshots import latest_snapshot
from lakelet.commit.metadata.stored import Version
from lakelet.commit.metadata.version_ids import latest_id, schema_ids, tag_names
from lakelet.commit.retention.expiry import expire_snapshots
from lakelet.commit.retention.expiry_policy import Retention
from lakelet.commit.versions.tags import delete_tag, find_version, hold_by_tag
from lakelet.errors import ConflictError, LakeletError, NotFoundError
from lakelet.model.manifest import ManifestFile
from lakelet.model.snapshot import Snapshot
from lakelet.options import TableOptions
from lakelet.service.backup.checksums import Checksums
from lakelet.service.backup.file_copy import CopyJob, copy_files
from lakelet.service.backup.layout import (
    BACKUP_USER,
    COMPLETE,
    SOURCE_DELTA,
    SOURCE_SNAPSHOT,
    NamedFile,
    kept_folder,
    kept_path,
    own_path,
)
from lakelet.service.backup.mirror_commit import MirrorCommit, commit_mirror, prepare_lists
from lakelet.service.backup.pass_changes import changes_since
from lakelet.service.backup.snapshot_files import (
    Bucket,
    data_files,
    files_of,
    index_files,
    is_within,
    list_files,
    live_indexes,
    manifest_files,
    missing_entries,
    statistics_files,
)
from lakelet.service.backup.table_files import copy_identity, copy_schemas
from lakelet.service.backup.users import drop_other_users, read_users, users_at, write_users
from lakelet.storage.home import TableHome

_LOG = logging.getLogger(__name__)
PIN = "lakelet-backup-"
_MOST_TRIES = 5
_FEW_FILES = 1000


@dataclass(frozen=True, slots=True)
class PassResult:
    """What a pass has done: the source's snapshot (None for a table without any), and the files that were copied."""

    source_snapshot: int | None
    files: int
    bytes: int


def run_pass(source: TableHome, target: TableHome, buckets: Collection[Bucket] | None = None) -> PassResult:
    """Mirror the newest snapshot of a table, or some buckets of it."""
    source, target = source.uncached(), target.uncached()
    for attempt in range(_MOST_TRIES):
        try:
            return _run(source, target, buckets)
        except ConflictError:
            # Another process mirrors the same table.
            if attempt == _MOST_TRIES - 1:
                raise
    raise AssertionError("unreachable")


def _run(source: TableHome, target: TableHome, buckets: Collection[Bucket] | None) -> PassResult:
    _unpin(source)
    checksums = Checksums(target)
    if latest_id(source) is None:
        _copy_table_files(source, target, checksums)
        return PassResult(None, 0, 0)
    version = find_version(source)
    base = latest_snapshot(target)
    if buckets is None and _is_mirrored(version.snapshot, base):
        _copy_table_files(source, target, checksums)
        return PassResult(version.snapshot.id, 0, 0)
    pin = f"{PIN}{version.snapshot.id}"
    hold_by_tag(source, pin, version)
    try:
        return _mirror(source, target, version, base, buckets, checksums)
    finally:
        delete_tag(source, TableOptions({}), pin, if_exists=True)


def _mirror(
    source: TableHome,
    target: TableHome,
    version: Version,
    base: Snapshot | None,
    buckets: Collection[Bucket] | None,
    checksums: Checksums,
) -> PassResult:
    snapshot = version.snapshot
    _copy_table_files(source, target, checksums)
    schema = read_schema(source, snapshot.schema_id)
    manifests = snapshot_manifests(source, snapshot)
    changes = changes_since(source, snapshot, manifests, target, base) if buckets is None else None
    if changes is None:
        wanted, mirrored = files_of(source, snapshot).within(buckets), files_of(target, base).within(buckets)
        added, removed = (
            missing_entries(wanted.entries, mirrored.entries),
            missing_entries(mirrored.entries, wanted.entries),
        )
    else:
        added, removed = changes.added, changes.removed
    before = live_indexes(target, base)
    own = [one for one in live_indexes(source, snapshot) if is_within(one, buckets)]
    indexes = (*(one for one in before if buckets is not None and not is_within(one, buckets)), *own)
    if buckets is not None and not added.num_rows and not removed.num_rows and set(indexes) == set(before):
        return PassResult(snapshot.id, 0, 0)
    statistics = statistics_files(snapshot) if buckets is None else []
    known_indexes = {one.file.name for one in before}
    new_indexes = [one for one in own if one.file.name not in known_indexes]
    files = [*data_files(source, schema, added), *index_files(source, new_indexes), *statistics]
    jobs = _jobs(source, target, files, checksums)
    copy_files(source.store, target.store, jobs, checksums)
    if buckets is None:
        _copy_metadata(source, target, version, manifests if changes is None else changes.manifests, checksums)
    properties = {
        SOURCE_SNAPSHOT: str(snapshot.id),
        SOURCE_DELTA: snapshot.delta_manifest_list,
        COMPLETE: str(buckets is None).lower(),
    }
    commit = MirrorCommit(
        schema=schema,
        added=added,
        removed=removed,
        indexes=indexes,
        user=BACKUP_USER,
        identifier=snapshot.id,
        properties=properties,
        statistics=snapshot.statistics if buckets is None else None,
        watermark=snapshot.watermark,
        next_row_id=snapshot.next_row_id,
    )
    # Of a scope nothing is known about the commits that other buckets lack.
    users = users_at(source, snapshot, target, base) if buckets is None else read_users(target, base)
    lists = prepare_lists(target, base, commit)
    write_users(target, lists.delta[0], users)
    made = commit_mirror(target, base, commit, lists=lists)
    _clean(source, target, made, snapshot, manifests if buckets is None else None, checksums)
    return PassResult(snapshot.id, len(jobs), sum(job.size or 0 for job in jobs))


def _is_mirrored(snapshot: Snapshot, base: Snapshot | None) -> bool:
    """Whether the mirror's newest snapshot is the whole of this one. A rollback reuses ids: the manifest list tells."""
    told = {} if base is None else base.properties or {}
    return told.get(SOURCE_DELTA) == snapshot.delta_manifest_list and told.get(COMPLETE) == "true"


def _copy_table_files(source: TableHome, target: TableHome, checksums: Checksums) -> None:
    copy_identity(source, target)
    checksums.add(copy_schemas(source, target, checksums))


def _jobs(source: TableHome, target: TableHome, files: Collection[NamedFile], checksums: Checksums) -> list[CopyJob]:
    """What has to be copied. A file whose checksum is known was durable once; it may have been expired since."""
    found = []
    for file in files:
        known = checksums.get(file.path)
        kept = kept_path(target, file.path)
        if known is not None and known.size == (file.size if file.size is not None else known.size):
            there = target.store.head(kept)
            if there is not None and there.size == known.size:
                continue
        found.append(CopyJob(file.path, own_path(source, file.path), kept, file.size))
    return found


def _copy_metadata(
    source: TableHome, target: TableHome, version: Version, manifests: Collection[ManifestFile], checksums: Checksums
) -> None:
    """Keep the source's own snapshot with its lists, and the manifests that are not kept yet, by which it can be repaired."""
    named = [*list_files(version.snapshot), *manifest_files(manifests)]
    copy_files(source.store, target.store, _jobs(source, target, named, checksums), checksums)
    target.store.put(kept_path(target, f"snapshot/snapshot-{version.snapshot.id}"), version.data)


def _clean(
    source: TableHome,
    target: TableHome,
    made: Snapshot,
    snapshot: Snapshot,
    manifests: Collection[ManifestFile] | None,
    checksums: Checksums,
) -> None:
    """Remove what the new snapshot of the mirror has made superfluous; `manifests` are those of the source, None where not all of
    it was copied. The pass is committed: a failure is logged alone."""
    try:
        drop_other_users(target, made)
        if manifests is not None:
            named = [*list_files(snapshot), *manifest_files(manifests)]
            kept = {kept_path(target, one.path) for one in named}
            kept.add(kept_path(target, f"snapshot/snapshot-{snapshot.id}"))
            folder = kept_folder(target)
            listed = [
                info.path
                for part in ("manifest", "snapshot")
                for info in target.store.list_folder(f"{folder}/{part}").files
            ]
            target.store.delete([path for path in listed if path not in kept])
            if checksums.is_scattered:
                checksums.join(_live_paths(source, snapshot, named) if _is_outdated(checksums, manifests) else None)
        options = TableOptions(read_schema(target, made.schema_id).options)
        expire_snapshots(target, options, Retention.of(options, target.clock.now_ms()))
    except LakeletError as error:
        _LOG.warning("%s is backed up; cleaning up after it failed: %s", source.where(source.paths.root), error)


def _is_outdated(checksums: Checksums, manifests: Collection[ManifestFile]) -> bool:
    """Whether most known files are gone: only then all manifests are read, to find out which."""
    live = sum(one.added_files - one.deleted_files for one in manifests)
    return len(checksums) > 2 * live + _FEW_FILES


def _live_paths(source: TableHome, snapshot: Snapshot, named: Collection[NamedFile]) -> set[str]:
    files, schema = files_of(source, snapshot), read_schema(source, snapshot.schema_id)
    live = [*data_files(source, schema, files.entries), *index_files(source, files.indexes), *named]
    schemas = [f"schema/schema-{number}" for number in schema_ids(source)]
    return {*schemas, *(one.path for one in (*live, *statistics_files(snapshot)))}


def _unpin(source: TableHome) -> None:
    """Remove the pins of passes that died."""
    for name in tag_names(source):
        if name.startswith(PIN):
            try:
                delete_tag(source, TableOptions({}), name, if_exists=True)
            except NotFoundError:
                continue
