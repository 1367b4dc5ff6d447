"""Expectations of a table as part of the write's own plan: rows are counted, dropped, refused or set aside on their way.

count ─ fail: raise_error in the plan, so that nothing is committed ─ drop, quarantine: filtered ─ the table
the same rows ─ quarantine: those filtered, with the names of what they do not meet ─ <table>_quarantine
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from lakelet.errors import InvalidError
from lakelet.pipeline.definition import Action, Expectation, Flow
from lakelet.spark.column_names import column_named
from lakelet.spark.pipeline.spark_errors import at_place
from lakelet.spark.pipeline.workspace import Workspace

QUARANTINE_COLUMNS = [
    ("flow", "STRING"),
    ("reason", "STRING"),
    ("row", "STRING"),
    ("quarantined_at", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
]
_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Expectations:
    """The expectations of one table, for the frames that flows write into it. Rows that meet the condition `exempt` meet all of
    them: deletions of an auto CDC flow, which often have nothing but their key."""

    listed: tuple[Expectation, ...]
    flow: str
    exempt: str | None = None
    has_flags: bool = False

    @staticmethod
    def of(work: Workspace, flow: Flow) -> Expectations:
        """Those of the table or sink that a flow fills."""
        target = work.graph.table(flow.target) or work.graph.sink(flow.target)
        deletes = None if flow.cdc is None else flow.cdc.apply_as_deletes
        return Expectations(() if target is None else target.expectations, flow.name, deletes)

    @property
    def quarantines(self) -> bool:
        """Whether rows may be set aside."""
        return any(one.action is Action.QUARANTINE for one in self.listed)

    def check(self, frame: DataFrame) -> None:
        """InvalidError, with its line, for a condition that is none over the columns of the frame."""
        for one in self.listed:
            with at_place(one.place, f"expectation {one.name!r}"):
                found = frame.select(F.expr(one.condition)).schema.fields[0].dataType.simpleString()
                if found != "boolean":
                    raise InvalidError(f"{one.condition} is {found}, expected a condition")

    def flagged(self, frame: DataFrame) -> tuple[Expectations, DataFrame]:
        """The frame with a column for each condition, and the expectations that read these: whatever is made of the frame, a
        row meets a condition once and for all, also one about the current time."""
        flags = {_flag(place): self._holds(place) for place in range(len(self.listed))}
        return replace(self, has_flags=True), frame.withColumns(flags)

    def met(self, frame: DataFrame, observation: Observation | str | None) -> DataFrame:
        """The rows to write; with an observation, or its name in a stream's progress, numbers of rows written and of those that
        do not meet a condition are counted on the way."""
        if not self.listed:
            return frame
        checked = frame.where(self._raises(frame)) if self._of(Action.FAIL) else frame
        keeps = self._all(Action.DROP, Action.QUARANTINE)
        if observation is not None:
            counts = [F.count_if(~self._holds(place)).alias(f"unmet_{place}") for place in range(len(self.listed))]
            checked = checked.observe(observation, F.count_if(keeps).alias("rows"), *counts)
        return self._bare(checked.where(keeps))

    def set_aside(self, frame: DataFrame) -> DataFrame:
        """The rows of the quarantine table."""
        reasons = [F.when(~self._holds(place), F.lit(one.name)) for place, one in self._of(Action.QUARANTINE)]
        reason = F.concat_ws(", ", *reasons)
        return frame.where(self._all(Action.DROP) & ~self._all(Action.QUARANTINE)).select(
            F.lit(self.flow).alias("flow"),
            reason.alias("reason"),
            _json(self._bare(frame)).alias("row"),
            F.current_timestamp().alias("quarantined_at"),
        )

    def counted(self, metrics: dict[str, int]) -> dict[str, int]:
        """Rows that do not meet each expectation, from what was observed."""
        return {one.name: int(metrics.get(f"unmet_{place}") or 0) for place, one in enumerate(self.listed)}

    def _of(self, *actions: Action) -> list[tuple[int, Expectation]]:
        return [(place, one) for place, one in enumerate(self.listed) if one.action in actions]

    def _bare(self, frame: DataFrame) -> DataFrame:
        return frame.drop(*map(_flag, range(len(self.listed)))) if self.has_flags else frame

    def _raises(self, frame: DataFrame) -> Column:
        """True for rows that meet all that must be met; an error with the row otherwise."""
        found = F.lit(True)
        for place, one in self._of(Action.FAIL):
            text = f"expectation '{one.name}' ({one.condition}) is not met by "
            error = F.raise_error(F.concat(F.lit(text), F.substring(_json(self._bare(frame)), 1, _SHOWN)))
            found = F.when(~self._holds(place), error.cast("boolean")).otherwise(found)
        return found

    def _holds(self, place: int) -> Column:
        if self.has_flags:
            return column_named(_flag(place))
        found = F.coalesce(F.expr(self.listed[place].condition).cast("boolean"), F.lit(False))
        return found if self.exempt is None else found | F.coalesce(F.expr(self.exempt), F.lit(False))

    def _all(self, *actions: Action) -> Column:
        found = F.lit(True)
        for place, _ in self._of(*actions):
            found = found & self._holds(place)
        return found


def _flag(place: int) -> str:
    return f"__expectation_{place}"


def _json(frame: DataFrame) -> Column:
    return F.to_json(F.struct(*(column_named(name) for name in frame.columns)))
