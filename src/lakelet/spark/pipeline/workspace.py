"""What every part of a run works with: the session, the graph, the lake and where it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import SparkSession

from lakelet.catalog.lake import Lake
from lakelet.clock import Clock, SystemClock
from lakelet.ids import Ids, RandomIds
from lakelet.pipeline.definition import Pipeline
from lakelet.pipeline.graph import Graph


@dataclass(frozen=True, slots=True)
class Workspace:
    """The surroundings of one run. `functions` are those of Python files that the user named, by file and name."""

    spark: SparkSession
    graph: Graph
    lake: Lake
    options: Mapping[str, str]
    functions: Mapping[tuple[str, str], Callable[..., Any]] = field(default_factory=dict)
    clock: Clock = field(default_factory=SystemClock)
    ids: Ids = field(default_factory=RandomIds)

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline that is run."""
        return self.graph.pipeline

    @property
    def warehouse(self) -> str:
        """Where the lake is."""
        return self.lake.location
