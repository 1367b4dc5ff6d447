"""Recover rows that a writer left in its write-ahead logs: a crash, or a flush that failed until the end."""

from __future__ import annotations

from dataclasses import dataclass

from lakelet.commit.metadata.table_identity import table_identity
from lakelet.realtime.open import recover_table
from lakelet.realtime.settings import wal_path
from lakelet.realtime.wal.recovery import RecoveredLog
from lakelet.table import Table


@dataclass(frozen=True, slots=True)
class RecoverRows:
    """A request: where the logs are, whether to only report them, and whether to set damaged ones aside."""

    wal_folder: str | None = None
    dry_run: bool = False
    set_aside: bool = False


def log_folder(table: Table, wal_folder: str | None = None) -> str:
    """Where the logs of a table are looked for."""
    return wal_path(wal_folder, table_identity(table.home))


def recover_rows(table: Table, request: RecoverRows) -> tuple[RecoveredLog, ...]:
    """Commit the rows of a table's logs, oldest first; what each held, and what was done."""
    found = recover_table(table.home, request.wal_folder, dry_run=request.dry_run, set_aside=request.set_aside)
    return tuple(found)
