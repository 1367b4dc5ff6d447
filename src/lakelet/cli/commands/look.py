"""Commands that inspect tables: `tables`, `describe`, `inspect`, `history`, `files`."""

from __future__ import annotations

from typing import Annotated

import typer

from lakelet.cli.call import Call, command
from lakelet.cli.parameters import TableArgument, table_names

# The aspects that can be inspected, and whether each needs a name or a number, may have one, or has none.
ASPECTS = {
    "schema": "may",
    "schemas": "none",
    "snapshot": "may",
    "snapshots": "none",
    "manifest": "must",
    "manifests": "none",
    "file": "must",
    "files": "none",
    "options": "none",
    "tags": "none",
    "branches": "none",
}


# Write-ahead logs and SST files are found by their path, and belong to no warehouse.
WAL = "wal"
SST = "sst"


def _aspects(ctx: typer.Context, incomplete: str) -> list[str]:
    return [name for name in (*ASPECTS, WAL, SST) if name.startswith(incomplete)] or table_names(ctx, incomplete)


@command
def tables(
    call: Call, database: Annotated[str | None, typer.Argument(help="Only this database.", show_default=False)] = None
) -> None:
    """List the tables of a database, or of all."""
    from lakelet.cli.look.describe import list_tables  # noqa: PLC0415 - loaded when it runs, as in all commands.

    list_tables(call.existing_lake, call.output, database)


@command
def describe(call: Call, table: TableArgument) -> None:
    """Show a table's columns, keys, options and size."""
    from lakelet.cli.look.describe import describe_table  # noqa: PLC0415

    describe_table(call.table(table), call.output)


@command
def inspect(
    call: Call,
    what: Annotated[
        str,
        typer.Argument(
            metavar="WHAT",
            help=f"One of {', '.join(ASPECTS)}, {WAL}, {SST}.",
            autocompletion=_aspects,
            show_default=False,
        ),
    ],
    table: Annotated[
        str | None,
        typer.Argument(
            metavar="DATABASE.TABLE",
            help="The table; of a write-ahead log or an SST file, its path.",
            autocompletion=table_names,
            show_default=False,
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Argument(help="The id of a schema or snapshot, or the name of a manifest or file.", show_default=False),
    ] = None,
) -> None:
    """Show the contents of a table's metadata files and data files, or of a write-ahead log or an SST file."""
    if what in (WAL, SST):
        _inspect_path(call, what, table, name)
        return
    first = what
    if what not in ASPECTS:
        # The older form has the table first, then the aspect.
        what, table = table or "schema", what
    if what not in ASPECTS:
        wrong = first if "." in what else what
        raise typer.BadParameter(f"{wrong!r} is not one of {', '.join(ASPECTS)}", param_hint="'WHAT'")
    if table is None:
        raise typer.BadParameter("the table is missing", param_hint="'DATABASE.TABLE'")
    if name is None and ASPECTS[what] == "must":
        raise typer.BadParameter(f"the name of the {what} is missing", param_hint="'NAME'")
    if name is not None and ASPECTS[what] == "none":
        raise typer.BadParameter(f"inspect {what} takes no name, found {name!r}", param_hint="'NAME'")
    from lakelet.cli.look.inspect_table import inspect_table  # noqa: PLC0415
    from lakelet.errors import NotFoundError  # noqa: PLC0415

    try:
        opened = call.table(table)
    except NotFoundError as error:
        if first == table:
            raise NotFoundError(f"{first!r} is not one of {', '.join(ASPECTS)}; and as a table: {error}") from error
        raise
    inspect_table(opened, call.output, what, name)


def _inspect_path(call: Call, what: str, path: str | None, name: str | None) -> None:
    if path is None:
        missing = "a log, or of a folder of logs," if what == WAL else "an SST file"
        raise typer.BadParameter(f"the path of {missing} is missing", param_hint="'PATH'")
    if name is not None:
        raise typer.BadParameter(f"inspect {what} takes a path alone, found {name!r}", param_hint="'NAME'")
    if what == WAL:
        from lakelet.cli.look.inspect_wal import inspect_wal  # noqa: PLC0415

        inspect_wal(call.output, path)
    else:
        from lakelet.cli.look.inspect_sst import inspect_sst  # noqa: PLC0415

        inspect_sst(call.output, path)


@command
def history(
    call: Call,
    table: TableArgument,
    limit: Annotated[
        int, typer.Option("--limit", min=0, help="The most snapshots to show, newest first; 0 for all.")
    ] = 50,
) -> None:
    """Draw a table's snapshots as a timeline, with tags and branches."""
    from lakelet.cli.look.timeline import show_history  # noqa: PLC0415

    show_history(call.table(table), call.output, limit)


@command
def files(
    call: Call,
    table: TableArgument,
    tree: Annotated[bool, typer.Option("--tree", help="Draw partitions, buckets and levels as a tree.")] = False,
    version: Annotated[int | None, typer.Option("--version", help="The files of an older snapshot.")] = None,
) -> None:
    """List a table's live data files, or draw them as a tree of partitions, buckets and levels."""
    from lakelet.cli.look.file_tree import show_files  # noqa: PLC0415

    show_files(call.table(table), call.output, tree=tree, version=version)
