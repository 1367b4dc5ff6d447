"""`lakelet COMMAND …`: the command-line application and its entry point (`failures` has the exit codes)."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.main import get_command

from lakelet.cli.commands import backup, cache, cdc, cluster, data, demo, look, pipeline, query, remote, service, upkeep
from lakelet.cli.failures import BROKEN_PIPE, SENSELESS, silence

app = typer.Typer(
    name="lakelet",
    help="A lakehouse in Python on Apache Paimon's table format.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)

_PANELS = {
    "Ask and change": {"sql": query.sql, "shell": query.shell, "import": data.import_, "export": data.export},
    "Look": {
        "tables": look.tables,
        "describe": look.describe,
        "inspect": look.inspect,
        "history": look.history,
        "files": look.files,
    },
    "Keep in shape": {
        "compact": upkeep.compact,
        "expire": upkeep.expire,
        "orphans": upkeep.orphans,
        "check": upkeep.check,
        "recover": upkeep.recover,
    },
    "Serve": {"serve": service.serve},
    "Try": {"demo": demo.demo},
}
for _panel, _listed in _PANELS.items():
    for _name, _function in _listed.items():
        app.command(_name, rich_help_panel=_panel)(_function)
app.add_typer(pipeline.app, name="pipeline", rich_help_panel="Ask and change")
app.add_typer(cdc.app, name="cdc", rich_help_panel="Ask and change")
app.add_typer(backup.app, name="backup", rich_help_panel="Serve")
app.add_typer(cluster.app, name="cluster", rich_help_panel="Serve")
app.add_typer(service.keys, name="keys", rich_help_panel="Serve")
app.add_typer(remote.app, name="remote", rich_help_panel="Serve")
app.add_typer(cache.app, name="cache", rich_help_panel="Look")


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # noqa: PLC0415 - only this option needs it.

        print(f"lakelet {version('lakelet')}")
        raise typer.Exit


@app.callback()
def lakelet(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """A lakehouse in Python on Apache Paimon's table format."""


def commands() -> dict[str, list[str]]:
    """The names of all commands, each with its option names."""
    group: Any = get_command(app)
    return {name: _options(found) for name, found in group.commands.items()}


def _options(found: Any) -> list[str]:
    """The options of a command; of one that has commands of its own, theirs."""
    own = [
        option
        for parameter in found.params
        for option in (*parameter.opts, *parameter.secondary_opts)
        if option.startswith("--")
    ]
    inner = [option for one in getattr(found, "commands", {}).values() for option in _options(one)]
    return list(dict.fromkeys([*own, *inner]))


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Characters outside the terminal's encoding are shown as escapes.
            stream.reconfigure(errors="backslashreplace")
    code = _run(sys.argv[1:] if argv is None else list(argv))
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        silence()
        return BROKEN_PIPE
    return code


def _run(arguments: list[str]) -> int:
    group: Any = get_command(app)
    try:
        code = group.main(args=arguments or ["--help"], prog_name="lakelet", standalone_mode=False)
    except typer.TyperException as error:
        show: Any = getattr(error, "show", None)
        if show is not None:
            show()
        return error.exit_code
    if not arguments:
        # Called without a command: the help was printed, but the command line is invalid.
        return SENSELESS
    return code if isinstance(code, int) else 0
