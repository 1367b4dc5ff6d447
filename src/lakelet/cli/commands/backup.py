"""Commands of backups: `backup trigger|list|verify|recover`."""

from __future__ import annotations

from typing import Annotated

import typer

from lakelet.cli.call import Call, command

app = typer.Typer(help="Copy tables to a second store, and recover them from there.", no_args_is_help=True)

BackupOption = Annotated[
    str, typer.Option("--backup", metavar="STORE", envvar="LAKELET_BACKUP", help="A folder or an s3:// address.")
]
BackupOptionsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--backup-option",
        metavar="KEY=VALUE",
        help="A connection option of the backup store such as s3.endpoint; may be repeated.",
    ),
]
TableArgument = Annotated[str, typer.Argument(help="A table, `table` or `database.table`.")]
IdOption = Annotated[str, typer.Option("--id", help="Only what may hold this id.")]
DayOption = Annotated[str, typer.Option("--day", metavar="YYYY-MM-DD", help="Only this day, in UTC.")]


@app.command("trigger")
@command
def trigger(
    call: Call,
    table: TableArgument,
    backup: BackupOption,
    id: IdOption = "",
    day: DayOption = "",
    backup_option: BackupOptionsOption = None,
) -> None:
    """Copy the newest snapshot of a table to the backup store."""
    from lakelet.cli.backup_command import trigger_backup  # noqa: PLC0415 - loaded when it runs, as in all commands.

    trigger_backup(call, table, backup, backup_option, id=id, day=day)


@app.command("list")
@command
def list_(call: Call, backup: BackupOption, backup_option: BackupOptionsOption = None) -> None:
    """List the tables in the backup store."""
    from lakelet.cli.backup_command import list_backups  # noqa: PLC0415

    list_backups(call, backup, backup_option)


@app.command("verify")
@command
def verify(call: Call, table: TableArgument, backup: BackupOption, backup_option: BackupOptionsOption = None) -> None:
    """Compare every file of a table's backup with its checksum; the exit code is 1 where one is missing or damaged."""
    from lakelet.cli.backup_command import verify_backup  # noqa: PLC0415

    verify_backup(call, table, backup, backup_option)


@app.command("recover")
@command
def recover(
    call: Call,
    table: TableArgument,
    backup: BackupOption,
    id: IdOption = "",
    day: DayOption = "",
    backup_option: BackupOptionsOption = None,
) -> None:
    """Restore missing and damaged files of a table, or a table that is gone; the exit code is 1 where a file is lost."""
    from lakelet.cli.backup_command import recover_table  # noqa: PLC0415

    recover_table(call, table, backup, backup_option, id=id, day=day)
