"""`lakelet demo`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from lakelet.cli.call import Call, command


class Engine(StrEnum):
    """The engine that loads and upserts."""

    spark = "spark"
    local = "local"


@command
def demo(
    call: Call,
    rows: Annotated[int, typer.Option("--rows", min=1, help="How many orders to make up.")] = 200_000,
    engine: Annotated[Engine, typer.Option("--engine", help="Who loads and upserts.")] = Engine.spark,
) -> None:
    """Run the main job on made-up orders: ingest, query, change, travel back in time."""
    from lakelet.cli.demo.demo import run_demo  # noqa: PLC0415 - loaded when it runs.

    run_demo(call.warehouse, call.options, call.output, rows=rows, engine=engine.value)
