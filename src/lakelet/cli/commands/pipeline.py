"""`lakelet pipeline run|dry-run|graph|…`: their signatures and help."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from lakelet.cli.call import Call, command, pairs_of

app = typer.Typer(help="Run declarative pipelines on Spark.", no_args_is_help=True)

FileArgument = Annotated[str, typer.Argument(metavar="FILE", help="A pipeline in YAML or Python.", show_default=False)]
ParameterOption = Annotated[
    list[str] | None,
    typer.Option("--param", "-p", metavar="NAME=VALUE", help="The value of a parameter; may be repeated."),
]
EnvironmentOption = Annotated[
    str | None, typer.Option("--env", metavar="NAME", help="The environment whose settings hold.")
]
CodeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--code", metavar="FILE", help="A Python file with steps of a YAML pipeline, to load; may be repeated."
    ),
]
SelectOption = Annotated[
    list[str] | None,
    typer.Option(
        "--select", "-s", metavar="TABLE", help="Only this table or sink; orders+ takes what follows from it."
    ),
]
MasterOption = Annotated[
    str | None, typer.Option("--master", metavar="URL", help="Spark's master; this machine by default.")
]
RemoteOption = Annotated[
    str | None, typer.Option("--remote", metavar="URL", help="A Spark Connect server: sc://host:15002.")
]
ConfOption = Annotated[
    list[str] | None, typer.Option("--conf", metavar="KEY=VALUE", help="A setting of Spark; may be repeated.")
]


@app.command("run")
@command
def run(
    call: Call,
    file: FileArgument,
    param: ParameterOption = None,
    env: EnvironmentOption = None,
    select: SelectOption = None,
    full_refresh: Annotated[
        list[str] | None,
        typer.Option(
            "--full-refresh", metavar="TABLE", help="Empty this table and fill it from the beginning; * for all."
        ),
    ] = None,
    code: CodeOption = None,
    master: MasterOption = None,
    remote: RemoteOption = None,
    conf: ConfOption = None,
) -> None:
    """Run a pipeline once: streaming tables take what is new, materialized views are computed anew where their inputs changed."""
    from lakelet.cli.pipeline.run_command import PipelineCall, run_command  # noqa: PLC0415 - loaded when it runs, as in all commands.

    run_command(
        PipelineCall.of(call, file, _pairs(param), env, code, master, remote, _settings(conf)),
        select or [],
        full_refresh or [],
    )


@app.command("dry-run")
@command
def dry_run(
    call: Call,
    file: FileArgument,
    param: ParameterOption = None,
    env: EnvironmentOption = None,
    select: SelectOption = None,
    code: CodeOption = None,
    master: MasterOption = None,
    remote: RemoteOption = None,
    conf: ConfOption = None,
) -> None:
    """Check names, types, columns and options of a pipeline; nothing is written.

    Sources are asked for their columns: files without a schema are read for them, a database is connected to. Code that is
    named, a pipeline in Python or steps of --code, is run for the frames that it makes.
    """
    from lakelet.cli.pipeline.run_command import PipelineCall, dry_run_command  # noqa: PLC0415

    dry_run_command(
        PipelineCall.of(call, file, _pairs(param), env, code, master, remote, _settings(conf)), select or []
    )


@app.command("backfill")
@command
def backfill(
    call: Call,
    file: FileArgument,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="The table to compute again.", show_default=False)],
    column: Annotated[str, typer.Option("--column", metavar="NAME", help="The column of the range.")],
    start: Annotated[str | None, typer.Option("--from", metavar="VALUE", help="The first value of the range.")] = None,
    end: Annotated[
        str | None, typer.Option("--until", metavar="VALUE", help="The first value behind the range.")
    ] = None,
    param: ParameterOption = None,
    env: EnvironmentOption = None,
    code: CodeOption = None,
    master: MasterOption = None,
    remote: RemoteOption = None,
    conf: ConfOption = None,
) -> None:
    """Compute a range of a table again, from all that its sources hold now."""
    from lakelet.cli.pipeline.run_command import PipelineCall, backfill_command  # noqa: PLC0415

    asked = PipelineCall.of(call, file, _pairs(param), env, code, master, remote, _settings(conf))
    backfill_command(asked, table, column, start, end)


class Form(StrEnum):
    """How the graph is drawn."""

    text = "text"
    mermaid = "mermaid"
    svg = "svg"


@app.command("graph")
@command
def graph(
    call: Call,
    file: FileArgument,
    param: ParameterOption = None,
    env: EnvironmentOption = None,
    form: Annotated[Form, typer.Option("--form", "-t", help="Text for the terminal, Mermaid, or SVG.")] = Form.text,
    to: Annotated[str | None, typer.Option("--to", metavar="FILE", help="Write the picture to a file.")] = None,
) -> None:
    """Draw what is made of what; nothing runs."""
    from lakelet.cli.pipeline.graph_command import graph_command  # noqa: PLC0415

    graph_command(call, file, _pairs(param), env, form.value, to)


@app.command("status")
@command
def status(
    call: Call,
    file: FileArgument,
    param: ParameterOption = None,
    env: EnvironmentOption = None,
) -> None:
    """Show what became of each flow of the last run, from the event log."""
    from lakelet.cli.pipeline.status_command import status_command  # noqa: PLC0415

    status_command(call, file, _pairs(param), env)


@app.command("init")
@command
def init(
    call: Call,
    file: Annotated[str, typer.Argument(metavar="FILE", help="The YAML file to write.")] = "pipeline.yaml",
) -> None:
    """Write a small pipeline with raw files that runs as it is."""
    from lakelet.cli.pipeline.init_command import init_command  # noqa: PLC0415

    init_command(call, file)


def _pairs(given: list[str] | None) -> dict[str, str]:
    return pairs_of(given, "--param", "NAME=VALUE")


def _settings(given: list[str] | None) -> dict[str, str]:
    return pairs_of(given, "--conf", "KEY=VALUE")
