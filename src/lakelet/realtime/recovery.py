"""Replay of logs that a writer left behind: each becomes a memtable again and is committed, in the order of their numbers.

A log whose commit happened before its deletion is found in the table and only deleted. A damaged log stops the replay before
anything of it is committed; the logs before it are committed.
"""

from __future__ import annotations

from dataclasses import dataclass

from lakelet.commit.metadata.schemas import latest_schema, read_schema
from lakelet.errors import CorruptionError, NotFoundError
from lakelet.format.wal.wal_log import WalContents
from lakelet.format.wal.wal_record import python_records
from lakelet.realtime.flush import flush_memtable
from lakelet.realtime.memtable import Memtable, MemtableState
from lakelet.realtime.wal_folder import WalFolder
from lakelet.storage.home import TableHome
from lakelet.table.write.after_write import AfterWrite
from lakelet.table.write.table_commit import TableCommit


@dataclass(frozen=True, slots=True)
class RecoveredLog:
    """What was found in a log, and what was done: `outcome` is "empty", "committed", "committed before" or, where nothing is
    changed, "to commit"."""

    path: str
    sequence_number: int
    records: int
    torn_bytes: int
    outcome: str
    snapshot_id: int | None


def recover_logs(home: TableHome, identity: str, folder: WalFolder, *, dry_run: bool = False) -> list[RecoveredLog]:
    """Commit the rows of all logs of a folder. Logs whose rows are committed are deleted, except the newest, which says how
    numbers go on."""
    numbers = folder.numbers()
    found: list[RecoveredLog] = []
    for number in numbers:
        found.append(_recovered(home, identity, folder, number, dry_run=dry_run))
        if not dry_run and number != numbers[-1]:
            folder.remove(number)
    return found


def replayed(home: TableHome, contents: WalContents, path: str) -> Memtable:
    """The memtable that a log was written for."""
    header = contents.header
    try:
        schema = read_schema(home, header.schema_id)
    except NotFoundError as error:
        raise CorruptionError(
            f"{path}: its rows are of schema {header.schema_id}, which the table does not have"
        ) from error
    memtable = Memtable(header.sequence_number, schema, home.clock.now_ms())
    keys, rows = python_records(contents.data, contents.records)
    types = contents.records[:, 0].astype("u1").tobytes()
    memtable.apply(keys, [types[place : place + 1] + row for place, row in enumerate(rows)])
    memtable.state = MemtableState.IMMUTABLE
    return memtable


def _recovered(home: TableHome, identity: str, folder: WalFolder, number: int, *, dry_run: bool) -> RecoveredLog:
    contents, path = folder.read(number), folder.log_path(number)
    header = contents.header
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
