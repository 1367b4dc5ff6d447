"""Arguments shared by several commands, and their shell completion."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

import typer

from lakelet.errors import LakeletError


def table_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """The tables of the warehouse named on the command line, for shell completion."""
    from lakelet.catalog import connect  # noqa: PLC0415 - only a completion of tables needs it.

    found: list[str] = []
    # Completion gives names or nothing, never errors.
    with suppress(LakeletError, OSError):
        pairs = [pair.split("=", 1) for pair in ctx.params.get("option") or () if "=" in pair]
        lake = connect(ctx.params.get("warehouse") or "./warehouse", dict(pairs))
        database, dot, _ = incomplete.rpartition(".")
        for name in [database] if dot else lake.databases():
            found += [f"{name}.{table}" for table in lake.tables(name)]
    return [name for name in found if name.startswith(incomplete)]


TableArgument = Annotated[
    str, typer.Argument(metavar="DATABASE.TABLE", help="The table.", autocompletion=table_names, show_default=False)
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")]
