"""Replay of logs that a writer left behind: each becomes a memtable again and is committed, in the order of their numbers.

A log whose commit happened before its deletion is found in the table and only deleted. A damaged log stops the replay before
anything of it is committed; the logs before it are committed. Who asks for it gets the rows before the damage committed, and the
log renamed and kept.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np

from lakelet.commit.metadata.schemas import latest_schema, read_schema
from lakelet.commit.metadata.snapshots import try_snapshot
from lakelet.errors import CorruptionError, NotFoundError
from lakelet.format.wal.wal_group import WalKey
from lakelet.format.wal.wal_log import WalContents, WalHeader
from lakelet.format.wal.wal_record import DELETE, KEY, PUT, python_records
from lakelet.realtime.flush import flush_memtable
from lakelet.realtime.memtable import Memtable, MemtableState
from lakelet.realtime.schema_digest import schema_digest
from lakelet.realtime.wal.wal_folder import WalFolder
from lakelet.storage.home import TableHome
from lakelet.table.write.after_write import AfterWrite
from lakelet.table.write.table_commit import TableCommit


@dataclass(frozen=True, slots=True)
class RecoveredLog:
    """What was found in a log, and what was done: `outcome` is "empty", "committed", "committed before", "set aside" or, where
    nothing is changed, "to commit" and "to set aside". `damaged_bytes` may have had acknowledged rows."""

    path: str
    sequence_number: int
    records: int
    torn_bytes: int
    outcome: str
    snapshot_id: int | None
    damaged_bytes: int = 0


def recover_logs(
    home: TableHome, identity: str, folder: WalFolder, *, dry_run: bool = False, set_aside: bool = False
) -> list[RecoveredLog]:
    """Commit the rows of all logs of a folder. Logs whose rows are committed are deleted, except the newest, which says how
    numbers go on. With `set_aside` a damaged log gives the rows before the damage, and is renamed."""
    numbers = folder.numbers()
    found: list[RecoveredLog] = []
    for number in numbers:
        try:
            contents = folder.read(number)
            found.append(_recovered(home, identity, folder, number, contents, dry_run=dry_run))
        except CorruptionError as error:
            if not set_aside:
                raise CorruptionError(
                    f"{error}. `lakelet recover --set-aside` commits the rows before the damage, and keeps the log aside"
                ) from error
            found.append(_set_aside(home, identity, folder, number, dry_run=dry_run, is_newest=number == numbers[-1]))
            continue
        if not dry_run:
            folder.keys.keep(_committed_keys(home, contents, found[-1]), home.clock.now_ms())
        if not dry_run and number != numbers[-1]:
            folder.remove(number)
    return found


def _committed_keys(home: TableHome, contents: WalContents, log: RecoveredLog) -> tuple[WalKey, ...]:
    """The names of the writes of a log whose rows are committed. Of two copies of a log one may have a last group that was never
    acknowledged: where the other one was committed before, a write of that name is yet to come. Rows with a primary key are there
    once in any case."""
    done = try_snapshot(home, log.snapshot_id) if log.outcome == "committed before" and log.snapshot_id else None
    if done is None or (done.commit_user, done.commit_identifier) != (contents.header.commit_user, log.sequence_number):
        return contents.keys
    if read_schema(home, contents.header.schema_id).primary_keys or done.delta_record_count is None:
        return contents.keys
    kinds = contents.scanned[:, 0]
    rows_before = np.cumsum((kinds == PUT) | (kinds == DELETE))[kinds == KEY].tolist()
    return tuple(key for key, rows in zip(contents.keys, rows_before, strict=True) if rows < done.delta_record_count)


def replayed(home: TableHome, contents: WalContents, path: str) -> Memtable:
    """The memtable that a log was written for."""
    header = contents.header
    try:
        schema = read_schema(home, header.schema_id)
    except NotFoundError as error:
        raise CorruptionError(
            f"{path}: its rows are of schema {header.schema_id}, which the table does not have"
        ) from error
    if header.schema_digest and header.schema_digest != schema_digest(schema):
        raise CorruptionError(
            f"{path}: its rows are of a schema {header.schema_id} with other columns than that schema of the table "
            "has now: a branch was fast-forwarded over it"
        )
    memtable = Memtable(header.sequence_number, schema, home.clock.now_ms())
    keys, rows = python_records(contents.data, contents.records)
    types = contents.records[:, 0].astype("u1").tobytes()
    memtable.apply(keys, [types[place : place + 1] + row for place, row in enumerate(rows)])
    memtable.state = MemtableState.IMMUTABLE
    return memtable


def _set_aside(
    home: TableHome, identity: str, folder: WalFolder, number: int, *, dry_run: bool, is_newest: bool
) -> RecoveredLog:
    """Commit what is intact of a damaged log, and rename it."""
    path, contents = folder.log_path(number), folder.read_intact(number)
    readable = None if contents is None or not len(contents.records) else _readable(home, contents, path)
    count = 0 if contents is None or readable is None else len(contents.records)
    size = os.path.getsize(path)
    damaged = contents.damaged_bytes if contents is not None and contents.damaged_bytes else size
    if dry_run:
        return RecoveredLog(path, number, count, 0, "to set aside", None, damaged)
    user = f"writer-{home.ids.uuid()}" if contents is None else contents.header.commit_user
    made = None if readable is None else flush_memtable(home, identity, user, readable)
    if contents is not None and (readable is not None or not count):
        folder.keys.keep(contents.keys, home.clock.now_ms())
    if is_newest:
        # The next log says how numbers and user go on, before this one cannot any more.
        schema = latest_schema(home)
        folder.create(WalHeader(identity, schema.id, number + 1, user, schema_digest(schema))).close()
    aside = folder.set_aside(number)
    return RecoveredLog(aside, number, count, 0, "set aside", None if made is None else made.id, damaged)


def _readable(home: TableHome, contents: WalContents, path: str) -> Memtable | None:
    """The memtable of intact rows, None where their schema is gone."""
    try:
        return replayed(home, contents, path)
    except CorruptionError:
        return None


def _recovered(
    home: TableHome, identity: str, folder: WalFolder, number: int, contents: WalContents, *, dry_run: bool
) -> RecoveredLog:
    header, path = contents.header, folder.log_path(number)
    count = len(contents.records)
    if not count:
        return RecoveredLog(path, number, 0, contents.torn_bytes, "empty", None)
    schema = latest_schema(home)
    commit, done = TableCommit.of(home, header.commit_user, number, schema).look_back()
    if done is not None:
        if not dry_run:
            # Where level 0 is hidden, the crash may have come before the compaction that shows the rows.
            AfterWrite(home, schema, commit).repeated(done)
        return RecoveredLog(path, number, count, contents.torn_bytes, "committed before", done.id)
    if dry_run:
        return RecoveredLog(path, number, count, contents.torn_bytes, "to commit", None)
    made = flush_memtable(home, identity, header.commit_user, replayed(home, contents, path))
    return RecoveredLog(path, number, count, contents.torn_bytes, "committed", None if made is None else made.id)
