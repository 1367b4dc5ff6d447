"""Implementations of `backup trigger|list|verify|recover`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from lakelet.cli.call import Call, pairs_of
from lakelet.clock import shown_time

if TYPE_CHECKING:
    from lakelet.service.backup.backups import Backups

_COLUMNS = ("table", "source snapshot", "backed up", "records", "complete")
_PROBLEMS = ("file", "problem")


def trigger_backup(call: Call, table: str, store: str, options: Sequence[str] | None, *, id: str, day: str) -> None:
    """Copy a table, or a part of it."""
    from lakelet.service.backup.backups import Scope  # noqa: PLC0415 - only commands that run need it.

    done = _backups(call, store, options).trigger(call.table(table).name, Scope(id, day))
    values = {"source snapshot": done.source_snapshot, "files": done.files, "bytes": done.bytes}
    call.output.values(f"backed up {table}", values)


def list_backups(call: Call, store: str, options: Sequence[str] | None) -> None:
    """Print what is in the backup store."""
    rows = [
        (one.table, one.source_snapshot, shown_time(one.time_ms) if one.time_ms else "", one.records, one.is_complete)
        for one in _backups(call, store, options).list()
    ]
    call.output.rows("backups", _COLUMNS, rows)


def verify_backup(call: Call, table: str, store: str, options: Sequence[str] | None) -> None:
    """Compare files with their checksums."""
    found = _backups(call, store, options).verify(_full_name(table))
    call.output.values(
        f"backup of {table}", {"files": found.files, "bytes": found.bytes, "problems": len(found.problems)}
    )
    if found.problems:
        call.output.rows("problems", _PROBLEMS, list(found.problems))
        raise typer.Exit(1)


def recover_table(call: Call, table: str, store: str, options: Sequence[str] | None, *, id: str, day: str) -> None:
    """Restore a table, or a part of it."""
    from lakelet.service.backup.backups import Scope  # noqa: PLC0415 - as above.

    done = _backups(call, store, options).recover(_full_name(table), Scope(id, day))
    call.output.values(f"recovered {table}", {"restored files": len(done.restored), "lost files": len(done.lost)})
    if done.lost:
        call.output.rows("lost", _PROBLEMS, list(done.lost))
        raise typer.Exit(1)


def _backups(call: Call, store: str, options: Sequence[str] | None) -> Backups:
    from lakelet.catalog import connect  # noqa: PLC0415 - as above.
    from lakelet.service.backup.backups import Backups  # noqa: PLC0415

    return Backups(call.lake, connect(store, pairs_of(list(options or ()), "--backup-option", "KEY=VALUE")))


def _full_name(table: str) -> str:
    """A name of a table that may be gone, so that it is not looked for."""
    return table if "." in table else f"default.{table}"
