"""One flow at work: its frame, its target, and what writing it gave."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, Observation

from lakelet.pipeline.definition import Flow
from lakelet.pipeline.state import Generation, PipelineState
from lakelet.spark.pipeline.expectations import Expectations
from lakelet.spark.pipeline.target.table_target import TableTarget
from lakelet.spark.pipeline.workspace import Workspace

# How long the numbers of a finished job are waited for; they are there at once, unless Spark left the counting out of the plan.
_WAIT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class FlowWrite:
    """A flow with its rows as a frame, the generation of its target, and where its progress is reported."""

    work: Workspace
    flow: Flow
    frame: DataFrame
    state: PipelineState
    generation: Generation
    expectations: Expectations
    progress: Callable[[int], None]

    @property
    def checkpoint(self) -> str:
        """The folder of its checkpoint."""
        return self.state.checkpoint(self.flow.target, self.generation, self.flow.name)

    @property
    def user(self) -> str:
        """The user of its commits, another one in each generation."""
        return f"pipeline-{self.work.pipeline.name}-{self.flow.name}-{self.generation.id}"

    @property
    def is_done(self) -> bool:
        """Whether the flow, which runs once, has run in this generation of its target."""
        return self.state.is_done(self.flow.target, self.generation, self.flow.name)

    def set_done(self) -> None:
        """Notes that the flow has run."""
        self.state.set_done(self.flow.target, self.generation, self.flow.name)

    @property
    def target(self) -> TableTarget:
        """The table that it fills."""
        table = self.work.graph.table(self.flow.target)
        assert table is not None
        return TableTarget(self.work, table)


@dataclass(frozen=True, slots=True)
class Written:
    """What a flow wrote: rows, None where they were not counted, and rows that do not meet each expectation."""

    rows: int | None = None
    unmet: Mapping[str, int] = field(default_factory=dict)
    is_up_to_date: bool = False


def observed(observation: Observation) -> dict[str, int]:
    """The numbers of a finished job; none where there are none."""
    found: dict[str, Any] = {}

    def ask() -> None:
        found.update(observation.get)

    asking = threading.Thread(target=ask, name="lakelet-observation", daemon=True)
    asking.start()
    asking.join(_WAIT_SECONDS)
    return {} if asking.is_alive() else found
