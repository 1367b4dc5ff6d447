"""Expectations of a table as part of the write's own plan: rows are counted, dropped, refused or set aside on their way.

count ─ fail: raise_error in the plan, so that nothing is committed ─ drop, quarantine: filtered ─ the table
the same rows ─ quarantine: those filtered, with the names of what they do not meet ─ <table>_quarantine
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from lakelet.errors import InvalidError
from lakelet.pipeline.definition import Action, Expectation
from lakelet.spark.column_names import column_named
from lakelet.spark.pipeline.spark_errors import at_place

QUARANTINE_COLUMNS = [
    ("flow", "STRING"),
    ("reason", "STRING"),
    ("row", "STRING"),
    ("quarantined_at", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
]
_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Expectations:
    """The expectations of one table, for the frames that flows write into it."""

    listed: tuple[Expectation, ...]
    flow: str

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

    def met(self, frame: DataFrame, observation: Observation | None) -> DataFrame:
        """The rows to write; with an observation, numbers of rows seen, written and failed are counted on the way."""
        if not self.listed:
            return frame
        checked = frame.where(self._raises(frame)) if self._of(Action.FAIL) else frame
        keeps = _all(self._of(Action.DROP, Action.QUARANTINE))
        if observation is not None:
            counts = [F.count_if(~_holds(one)).alias(f"unmet_{place}") for place, one in enumerate(self.listed)]
            checked = checked.observe(observation, F.count_if(keeps).alias("rows"), *counts)
        return checked.where(keeps)

    def set_aside(self, frame: DataFrame) -> DataFrame:
        """The rows of the quarantine table."""
        reasons = [F.when(~_holds(one), F.lit(one.name)) for one in self._of(Action.QUARANTINE)]
        reason = F.concat_ws(", ", *reasons)
        dropped = _all(self._of(Action.DROP))
        return frame.where(dropped & ~_all(self._of(Action.QUARANTINE))).select(
            F.lit(self.flow).alias("flow"),
            reason.alias("reason"),
            _json(frame).alias("row"),
            F.current_timestamp().alias("quarantined_at"),
        )

    def counted(self, metrics: dict[str, int]) -> dict[str, int]:
        """Rows that do not meet each expectation, from what was observed."""
        return {one.name: int(metrics.get(f"unmet_{place}") or 0) for place, one in enumerate(self.listed)}

    def _of(self, *actions: Action) -> list[Expectation]:
        return [one for one in self.listed if one.action in actions]

    def _raises(self, frame: DataFrame) -> Column:
        """True for rows that meet all that must be met; an error with the row otherwise."""
        found = F.lit(True)
        for one in self._of(Action.FAIL):
            text = f"expectation '{one.name}' ({one.condition}) is not met by "
            error = F.raise_error(F.concat(F.lit(text), F.substring(_json(frame), 1, _SHOWN)))
            found = F.when(~_holds(one), error.cast("boolean")).otherwise(found)
        return found


def _holds(one: Expectation) -> Column:
    return F.coalesce(F.expr(one.condition).cast("boolean"), F.lit(False))


def _all(listed: Sequence[Expectation]) -> Column:
    found = F.lit(True)
    for one in listed:
        found = found & _holds(one)
    return found


def _json(frame: DataFrame) -> Column:
    return F.to_json(F.struct(*(column_named(name) for name in frame.columns)))
