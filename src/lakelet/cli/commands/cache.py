"""`lakelet cache stats|warm|clear`: their signatures and help."""

from __future__ import annotations

from typing import Annotated

import typer

from lakelet.cli.call import Call, command

app = typer.Typer(help="Look at the metadata cache of a process.", no_args_is_help=True)

TablesArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="[DATABASE.TABLE]...", help="All tables of the warehouse by default.", show_default=False),
]


@app.command("stats")
@command
def stats(call: Call, tables: TablesArgument = None) -> None:
    """Load the metadata of tables twice, and show the hits, load times and bytes of each level of the cache."""
    from lakelet.cli.cache_command import show_stats  # noqa: PLC0415 - loaded when it runs, as in all commands.

    show_stats(call.existing_lake, call.output, tables or [])


@app.command("warm")
@command
def warm(
    call: Call,
    tables: TablesArgument = None,
    hottest: Annotated[
        int | None,
        typer.Option(min=1, help="The tables asked for most often in 24 hours, which `cache.persist-folder` keeps."),
    ] = None,
) -> None:
    """Load the metadata of tables, and say what it took and which could not be loaded."""
    from lakelet.cli.cache_command import warm_tables  # noqa: PLC0415

    warm_tables(call.existing_lake, call.output, tables or [], hottest)


@app.command("clear")
@command
def clear(call: Call, tables: TablesArgument = None) -> None:
    """Drop the metadata of tables from the cache of this process; others have caches of their own."""
    from lakelet.cli.cache_command import clear_tables  # noqa: PLC0415

    clear_tables(call.existing_lake, call.output, tables or [])
