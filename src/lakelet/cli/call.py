"""The invocation of a command: its warehouse and its output. The lake is opened lazily.

    @app.command("tables")
    @command
    def tables(call: Call, database: Annotated[str | None, Argument()] = None) -> None: …

`command` adds the options common to all commands to a function. Command modules hold signatures and help only; their
implementations are imported when they run, so that `lakelet --help` and the completion of the user's shell load nothing else.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, ParamSpec, cast

import typer

from lakelet.cli.failures import reported
from lakelet.cli.output.output import ConsoleOutput, JsonOutput, Output

if TYPE_CHECKING:
    from lakelet.catalog import Lake
    from lakelet.table import Table

P = ParamSpec("P")
DEFAULT_WAREHOUSE = "./warehouse"


@dataclass(frozen=True)
class Call:
    """The context of a command: what every one gets besides its own arguments."""

    warehouse: str
    options: Mapping[str, str]
    output: Output
    debug: bool = False

    @cached_property
    def lake(self) -> Lake:
        """The lake, opened on first use."""
        from lakelet.cli.deferred_pandas import defer_pandas  # noqa: PLC0415 - only commands that run need it.

        defer_pandas()
        from lakelet.catalog import connect  # noqa: PLC0415 - as above.

        return connect(self.warehouse, dict(self.options))

    @property
    def existing_lake(self) -> Lake:
        """The lake, for commands that create nothing: NotFoundError if the warehouse folder does not exist."""
        lake = self.lake
        if "://" not in lake.location and not os.path.isdir(lake.location):
            from lakelet.errors import NotFoundError  # noqa: PLC0415 - as above.

            raise NotFoundError(f"there is no warehouse at {lake.location}; expected a folder (see --warehouse)")
        return lake

    def table(self, name: str) -> Table:
        """A table by its name, `table` for one of the default database; NotFoundError names the nearest."""
        from lakelet.catalog.names import DEFAULT_DATABASE, LakeNames, split_name  # noqa: PLC0415
        from lakelet.errors import InvalidError  # noqa: PLC0415 - as above.

        asked = split_name(name.split("."), DEFAULT_DATABASE)
        if asked.system is not None:
            raise InvalidError(f"{name!r} is a system table: look at it with lakelet sql, expected a table")
        return LakeNames(self.existing_lake).open(asked)


_WAREHOUSE = Annotated[
    str,
    typer.Option(
        "--warehouse",
        "-w",
        envvar="LAKELET_WAREHOUSE",
        help="A folder or an s3:// address.",
        rich_help_panel="Every command",
    ),
]
_OPTION = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        "-o",
        metavar="KEY=VALUE",
        help="A connection option such as s3.endpoint; may be repeated.",
        rich_help_panel="Every command",
    ),
]
_JSON = Annotated[bool, typer.Option("--json", help="Print JSON, one object a line.", rich_help_panel="Every command")]
_DEBUG = Annotated[
    bool, typer.Option("--debug", help="Show the whole trace of an error.", rich_help_panel="Every command")
]


def command(run: Callable[Concatenate[Call, P], None]) -> Callable[..., None]:
    """Wrap a command function: its `Call` parameter is replaced by the options common to all commands."""
    signature = inspect.signature(run, eval_str=True)
    own = list(signature.parameters.values())[1:]

    @wraps(run)
    def called(**given: Any) -> None:
        warehouse, pairs = given.pop("warehouse"), given.pop("option")
        output = JsonOutput() if given.pop("json") else ConsoleOutput()
        options = pairs_of(pairs, "--option", "KEY=VALUE")
        debug = given.pop("debug")
        with reported(output, debug=debug):
            cast("Callable[..., None]", run)(Call(warehouse, options, output, debug), **given)

    shared = [
        _keyword("warehouse", _WAREHOUSE, DEFAULT_WAREHOUSE),
        _keyword("option", _OPTION, None),
        _keyword("json", _JSON, False),
        _keyword("debug", _DEBUG, False),
    ]
    every = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own] + shared
    called.__signature__ = inspect.Signature(every)  # type: ignore[attr-defined]
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in every}
    return called


def pairs_of(pairs: list[str] | None, name: str, form: str) -> dict[str, str]:
    """Parse a repeated option of the form KEY=VALUE."""
    wrong = [pair for pair in pairs or () if "=" not in pair]
    if wrong:
        raise typer.BadParameter(f"expected {form}, found {wrong[0]!r}", param_hint=f"'{name}'")
    return dict(pair.split("=", 1) for pair in pairs or ())


def _keyword(name: str, annotation: object, default: object) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
