"""`lakelet sql` and `lakelet shell`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from lakelet.cli.call import Call, command, pairs_of


class Form(StrEnum):
    """The output format of results; those of `result_forms`."""

    table = "table"
    vertical = "vertical"
    csv = "csv"
    json = "json"
    ndjson = "ndjson"
    markdown = "markdown"


DatabaseOption = Annotated[
    str | None, typer.Option("--database", "-d", help="The database of tables that are named without one.")
]


@command
def sql(
    call: Call,
    statement: Annotated[
        str | None,
        typer.Argument(
            help="Statements, separated by semicolons; - reads them from standard input.", show_default=False
        ),
    ] = None,
    file: Annotated[
        list[str] | None, typer.Option("--file", "-f", help="A file of statements; may be repeated.", metavar="FILE")
    ] = None,
    param: Annotated[
        list[str] | None,
        typer.Option(
            "--param", "-p", metavar="NAME=VALUE", help="The value of $NAME in the statements; may be repeated."
        ),
    ] = None,
    output: Annotated[Form, typer.Option("--output", "-t", help="How rows are written.")] = Form.table,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            min=0,
            help="The most rows to write, 0 for all. Unless given, 100 for people and all for programs.",
        ),
    ] = None,
    database: DatabaseOption = None,
) -> None:
    """Run SQL: queries, changes, definitions, procedures."""
    values = pairs_of(param, "--param", "NAME=VALUE")
    from lakelet.cli.sql_command import given_text, run_sql  # noqa: PLC0415 - loaded when it runs, as in all commands.

    form = "object" if call.output.for_programs else output.value
    text = given_text(statement, file or ())
    run_sql(call.lake, text, form=form, limit=limit, database=database, params=values)


@command
def shell(call: Call, database: DatabaseOption = None) -> None:
    """Type SQL and see results, with history, completion and timing; \\? lists the shell's own commands."""
    from lakelet.cli.shell.open import open_shell  # noqa: PLC0415 - loaded when it runs.

    failed = open_shell(call.lake, call.output, database=database, debug=call.debug)
    if failed:
        raise typer.Exit(1)
