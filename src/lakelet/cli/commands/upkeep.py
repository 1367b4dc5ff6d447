"""Table maintenance commands: `compact`, `expire`, `orphans`, `check`, `recover`."""

from __future__ import annotations

from typing import Annotated

import typer

from lakelet.cli.call import Call, command, pairs_of
from lakelet.cli.parameters import DryRunOption, TableArgument


@command
def compact(
    call: Call,
    table: TableArgument,
    full: Annotated[bool, typer.Option("--full", help="Merge all there is.")] = False,
    partition: Annotated[
        list[str] | None,
        typer.Option("--partition", metavar="COLUMN=VALUE", help="Only partitions with this value; may be repeated."),
    ] = None,
) -> None:
    """Rewrite a table's files into fewer ones, as its options say is due."""
    chosen = pairs_of(partition, "--partition", "COLUMN=VALUE") or None
    from lakelet.cli.maintenance import compact_table  # noqa: PLC0415 - loaded when it runs, as in all commands.

    compact_table(call.table(table), call.output, full=full, partition=chosen)


@command
def expire(
    call: Call,
    table: TableArgument,
    retain_last: Annotated[
        int | None, typer.Option("--retain-last", metavar="N", min=1, help="Keep N snapshots, whatever their age.")
    ] = None,
    older_than: Annotated[
        str | None, typer.Option("--older-than", metavar="AGE", help="Let go only of what is older, such as 1d or 12h.")
    ] = None,
    dry_run: DryRunOption = False,
) -> None:
    """Expire old snapshots and delete the files that only they need."""
    from lakelet.cli.maintenance import expire_table  # noqa: PLC0415

    expire_table(call.table(table), call.output, retain_last=retain_last, older_than=older_than, dry_run=dry_run)


@command
def orphans(
    call: Call,
    table: TableArgument,
    older_than: Annotated[
        str,
        typer.Option(
            "--older-than", metavar="AGE", help="Spare younger files, which may be on their way into a commit."
        ),
    ] = "1d",
    dry_run: DryRunOption = False,
) -> None:
    """Remove orphan files, which no snapshot, tag or branch refers to."""
    from lakelet.cli.maintenance import remove_orphans  # noqa: PLC0415

    remove_orphans(call.table(table), call.output, older_than=older_than, dry_run=dry_run)


@command
def check(
    call: Call,
    table: TableArgument,
    version: Annotated[
        int | None, typer.Option("--version", metavar="ID", min=1, help="Only the files of this snapshot.")
    ] = None,
    tag: Annotated[str | None, typer.Option("--tag", metavar="NAME", help="Only the files of this tag.")] = None,
    branch: Annotated[
        str | None, typer.Option("--branch", metavar="NAME", help="Only versions of this branch.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Only look whether files are there in their sizes.")] = False,
) -> None:
    """Check that every file of a table exists, decodes and agrees with its metadata; report the rows lost otherwise."""
    from lakelet.cli.maintenance import check_table  # noqa: PLC0415

    check_table(call.table(table), call.output, version=version, tag=tag, branch=branch, quick=quick)


@command
def recover(
    call: Call,
    table: TableArgument,
    wal_folder: Annotated[
        str | None,
        typer.Option("--wal-folder", metavar="PATH", help="Where the writer had its logs, unless in the state folder."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be committed.")] = False,
    set_aside: Annotated[
        bool,
        typer.Option(
            "--set-aside",
            help="Commit the rows before the damage of a damaged log, and rename it: what follows is given up.",
        ),
    ] = False,
) -> None:
    """Commit the rows that a writer left in its write-ahead logs when it was killed."""
    from lakelet.cli.maintenance import recover_table_rows  # noqa: PLC0415

    recover_table_rows(call.table(table), call.output, wal_folder=wal_folder, dry_run=dry_run, set_aside=set_aside)
