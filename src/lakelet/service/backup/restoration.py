"""Restores a table that is gone, from the newest snapshot of its mirror, as one new snapshot with the source's id.

    mark ─ data, index and statistics files ─ users ─ snapshot ─ identity, schemas: now it is a table ─ remove the mark

A table exists when it has schemas, and these come last, at once where the store moves folders atomically: nobody writes into a
table that is half there. The mark tells the next recovery to go on, whatever is there already. Files that are there and have
their checksum stay. The users of the mirrored snapshot are recorded before it can be read, so that rows of a log that are in it
are not written once more; and its id is that of the source, so that ids still rise for whoever follows the table.
"""

from __future__ import annotations

import json

from lakelet.catalog.lake import Lake
from lakelet.commit.commit_users import record_users
from lakelet.commit.metadata.schemas import latest_schema, read_schema
from lakelet.commit.metadata.snapshots import latest_snapshot, write_hint, write_latest_hint
from lakelet.commit.metadata.stored import schema_bytes
from lakelet.commit.metadata.version_ids import latest_id, schema_ids
from lakelet.errors import AlreadyExistsError, CorruptionError, NotFoundError
from lakelet.events import TableReplaced, publish
from lakelet.model.snapshot import Snapshot
from lakelet.service.backup.checksums import Checksums
from lakelet.service.backup.file_copy import CopyJob, checksum_at, copy_files
from lakelet.service.backup.layout import (
    RECOVERY_USER,
    SOURCE_SNAPSHOT,
    NamedFile,
    kept_path,
    own_path,
    restoring_path,
)
from lakelet.service.backup.mirror_commit import MirrorCommit, commit_mirror, prepare_lists
from lakelet.service.backup.snapshot_files import NO_FILES, data_files, files_of, index_files, statistics_files
from lakelet.service.backup.table_files import copy_identity, copy_schemas, same_table
from lakelet.service.backup.users import read_users
from lakelet.storage.home import TableHome
from lakelet.storage.paths import MAIN_BRANCH, TablePaths, database_folder


def is_gone(home: TableHome) -> bool:
    """Whether a table is not there, has lost all its snapshots, or is being restored."""
    if home.store.head(restoring_path(home)) is not None:
        return True
    return not schema_ids(home) or latest_id(home) is None


def unfinished_restorations(lake: Lake) -> list[str]:
    """The tables whose restoration has begun and not ended, those without schemas included; only the lake itself is asked."""
    found = []
    for database in lake.databases():
        store = lake.table_home(f"{database}.any").store
        for folder in store.list_folder(database_folder(database)).folders:
            name = f"{database}.{folder.rsplit('/', 1)[-1]}"
            if store.head(restoring_path(TableHome(store, TablePaths(folder)))) is not None:
                found.append(name)
    return found


def restore_table(primary: TableHome, backup: TableHome) -> tuple[str, ...]:
    """Make the table that the newest snapshot of the backup is; the files that were restored."""
    primary, backup = primary.uncached(), backup.uncached()
    if not schema_ids(backup):
        raise NotFoundError(f"{backup.where(backup.paths.root)}: there is no backup of this table")
    if schema_ids(primary) and not same_table(primary, backup):
        raise AlreadyExistsError(
            f"{primary.where(primary.paths.root)} is another table than that of the backup {backup.where(backup.paths.root)}: "
            "drop it first"
        )
    snapshot = latest_snapshot(backup)
    mark = restoring_path(primary)
    primary.store.put(mark, json.dumps({"from": backup.where(backup.paths.root)}).encode())
    restored: tuple[str, ...] = ()
    if snapshot is not None:
        restored = _restore_files(primary, backup, snapshot)
        record_users(primary, read_users(backup, snapshot))
        if latest_id(primary) is None:
            _commit(primary, backup, snapshot)
        else:
            # A recovery that died came as far as this.
            _write_hints(primary, latest_id(primary))
    _make_table(primary, backup)
    primary.store.delete([mark])
    primary.store.remove_empty_folder(mark.rsplit("/", 1)[0])
    publish(TableReplaced(primary.table_name, MAIN_BRANCH))
    return restored


def _restore_files(primary: TableHome, backup: TableHome, snapshot: Snapshot) -> tuple[str, ...]:
    checksums, schema = Checksums(backup), read_schema(backup, snapshot.schema_id)
    files = files_of(backup, snapshot)
    named = [
        *data_files(backup, schema, files.entries),
        *index_files(backup, files.indexes),
        *statistics_files(snapshot),
    ]
    jobs = [job for file in named if (job := _job(primary, backup, file, checksums)) is not None]
    copy_files(backup.store, primary.store, jobs, None)
    return tuple(job.name for job in jobs)


def _job(primary: TableHome, backup: TableHome, file: NamedFile, checksums: Checksums) -> CopyJob | None:
    known, own = checksums.get(file.path), own_path(primary, file.path)
    if known is None:
        raise CorruptionError(f"{backup.where(kept_path(backup, file.path))}: the backup has no checksum of this file")
    info = primary.store.head(own)
    if info is not None and info.size == known.size and checksum_at(primary.store, own) == known:
        return None
    return CopyJob(file.path, kept_path(backup, file.path), own, file.size, known)


def _commit(primary: TableHome, backup: TableHome, snapshot: Snapshot) -> None:
    files = files_of(backup, snapshot)
    number = int((snapshot.properties or {}).get(SOURCE_SNAPSHOT, snapshot.id))
    wanted = MirrorCommit(
        schema=read_schema(backup, snapshot.schema_id),
        added=files.entries,
        removed=NO_FILES.entries,
        indexes=files.indexes,
        user=RECOVERY_USER,
        identifier=number,
        properties={"lakelet.restored-from": f"snapshot {snapshot.id} of {backup.where(backup.paths.root)}"},
        statistics=snapshot.statistics,
        watermark=snapshot.watermark,
        next_row_id=snapshot.next_row_id,
        number=number,
    )
    commit_mirror(primary, None, wanted, lists=prepare_lists(primary, None, wanted))
    _write_hints(primary, number)


def _write_hints(primary: TableHome, number: int | None) -> None:
    if number is not None:
        write_latest_hint(primary, number)
        write_hint(primary, primary.paths.earliest_hint, number)


def _make_table(primary: TableHome, backup: TableHome) -> None:
    """Give the table its identity and its schemas, all of them at once where that is possible."""
    copy_identity(backup, primary)
    store, folder = primary.store, primary.paths.schema_folder
    if not schema_ids(primary) and store.moves_atomically:
        staged = f"{primary.paths.root}/restoring/schema"
        for number in schema_ids(backup):
            store.put(f"{staged}/schema-{number}", schema_bytes(backup, number))
        # What is left of a folder without schemas would be in the way.
        store.delete_folder(folder)
        store.move_folder(staged, folder)
    else:
        copy_schemas(backup, primary)
    latest_schema(primary)
