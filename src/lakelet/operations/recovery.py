"""Recover rows that a writer left in its write-ahead logs: a crash, or a flush that failed until the end."""

from __future__ import annotations

from dataclasses import dataclass

from lakelet.realtime.open import recover_table
from lakelet.realtime.recovery import RecoveredLog
from lakelet.table import Table


@dataclass(frozen=True, slots=True)
class RecoverRows:
    """A request: where the logs are, and whether to only report them."""

    wal_folder: str | None = None
    dry_run: bool = False


def recover_rows(table: Table, request: RecoverRows) -> tuple[RecoveredLog, ...]:
    """Commit the rows of a table's logs, oldest first; what each held, and what was done."""
    return tuple(recover_table(table.home, request.wal_folder, dry_run=request.dry_run))
