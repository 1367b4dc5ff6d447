"""Open a writer: lock the folder of its logs, commit what an earlier one left there, and begin a new log."""

from __future__ import annotations

from collections.abc import Mapping

from lakelet.commit.metadata.schemas import latest_schema
from lakelet.commit.metadata.snapshots import latest_snapshot
from lakelet.commit.metadata.table_identity import table_identity
from lakelet.format.wal.wal_log import WalHeader
from lakelet.model.schema import TableSchema
from lakelet.realtime.async_writer import AsyncRowWriter
from lakelet.realtime.memtable import Memtable
from lakelet.realtime.memtables import Memtables
from lakelet.realtime.row_writer import RowWriter
from lakelet.realtime.schema_digest import schema_digest
from lakelet.realtime.settings import RowWriterSettings, wal_path
from lakelet.realtime.supported import check_supported
from lakelet.realtime.wal.log_copy import LogCopy
from lakelet.realtime.wal.log_owner import check_owner, set_owner
from lakelet.realtime.wal.recovery import RecoveredLog, recover_logs
from lakelet.realtime.wal.wal_file import WalFile
from lakelet.realtime.wal.wal_folder import WalFolder, log_numbers
from lakelet.storage.home import TableHome


def open_writer(
    home: TableHome, wal_folder: object, options: Mapping[str, str] | None, copy: LogCopy | None = None
) -> RowWriter:
    """A writer of a table. Rows of logs that are left over are committed before it takes others. With a `copy` rows are
    acknowledged once they are durable there, too."""
    schema = latest_schema(home)
    check_supported(schema)
    settings = RowWriterSettings.of(schema, options)
    identity = table_identity(home)
    folder = WalFolder(wal_path(wal_folder, identity), identity)
    try:
        check_owner(home, folder)
        recovered = recover_logs(home, identity, folder)
        set_owner(home, folder)
        header, log = _next_log(home, identity, folder, schema)
    except BaseException:
        folder.close()
        raise
    newest = None if copy is None else latest_snapshot(home)
    active = Memtable(header.sequence_number, schema, home.clock.now_ms())
    memtables = Memtables(active, None if copy is None else 0 if newest is None else newest.id)
    return RowWriter(home, identity, header.commit_user, settings, folder, memtables, log, recovered, copy)


def open_async_writer(home: TableHome, wal_folder: object, options: Mapping[str, str] | None) -> AsyncRowWriter:
    """A writer for asyncio, which is opened by `async with`."""
    return AsyncRowWriter(lambda: open_writer(home, wal_folder, options))


def recover_table(
    home: TableHome, wal_folder: object = None, *, dry_run: bool = False, set_aside: bool = False
) -> list[RecoveredLog]:
    """Commit the rows that a writer of a table left in its logs, or only report them. With `set_aside` damaged logs are renamed,
    and their rows before the damage committed."""
    schema = latest_schema(home)
    identity = table_identity(home)
    path = wal_path(wal_folder, identity)
    if not log_numbers(path):
        return []
    folder = WalFolder(path, identity)
    try:
        check_owner(home, folder)
        found = recover_logs(home, identity, folder, dry_run=dry_run, set_aside=set_aside)
        if not dry_run:
            _, log = _next_log(home, identity, folder, schema)
            log.close()
        return found
    finally:
        folder.close()


def _next_log(home: TableHome, identity: str, folder: WalFolder, schema: TableSchema) -> tuple[WalHeader, WalFile]:
    """A new log that goes on with the numbers and the user of the newest one, which is committed and is deleted."""
    numbers = folder.numbers()
    if numbers:
        last = folder.header(numbers[-1])
        number, user = last.sequence_number + 1, last.commit_user
    else:
        number, user = 1, f"writer-{home.ids.uuid()}"
    header = WalHeader(identity, schema.id, number, user, schema_digest(schema))
    log = folder.create(header)
    for number in numbers:
        folder.remove(number)
    return header, log
