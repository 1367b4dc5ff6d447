"""What became of a flow, and the reports of a run while it goes on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from lakelet.errors import LakeletError


class Outcome(StrEnum):
    """How a flow ended."""

    COMPLETED = "completed"
    UP_TO_DATE = "up to date"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class FlowResult:
    """One flow of a run. `rows` are those written, None where they were not counted; `unmet` rows by expectation."""

    flow: str
    target: str
    outcome: Outcome
    seconds: float = 0.0
    rows: int | None = None
    unmet: Mapping[str, int] = field(default_factory=dict)
    attempts: int = 1
    error: LakeletError | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class RunResult:
    """A whole run, flow by flow in their order."""

    run_id: str
    flows: tuple[FlowResult, ...]

    @property
    def error(self) -> LakeletError | None:
        """The first failure."""
        return next((one.error for one in self.flows if one.error is not None), None)


@dataclass(frozen=True, slots=True)
class FlowReport:
    """News of a flow: `event` is started, progress, retried, or the outcome."""

    flow: str
    target: str
    event: str
    rows: int | None = None
    message: str | None = None
    result: FlowResult | None = None


Listener = Callable[[FlowReport], None]
