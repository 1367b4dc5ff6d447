"""The watermark of a batch's snapshot: the greatest event time of its rows minus a delay, or the one of its query."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakelet.errors import InvalidError
from lakelet.spark.column_names import column_named
from lakelet.spark.session import is_connect
from lakelet.table.time_arguments import length

_OBSERVED = "latest"
_MICROS = 1_000
_PAIR = 2
_MILLI = dt.timedelta(milliseconds=1)
_EPOCH = dt.datetime(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class WatermarkRule:
    """The column of event times, and how long after them rows may still come."""

    column: str
    delay_ms: int

    @staticmethod
    def of(given: object) -> WatermarkRule | None:
        """The rule of `watermark=(column, delay)`; the delay is text such as "10 min" or a timedelta."""
        if given is None or isinstance(given, WatermarkRule):
            return given
        if not isinstance(given, (tuple, list)) or len(given) != _PAIR or not isinstance(given[0], str):
            raise InvalidError(f"watermark: expected a column and a delay, ('ts', '10 min'), found {given!r}")
        return WatermarkRule(given[0], length(given[1], "watermark: delay") // _MILLI)

    def check(self, df: DataFrame) -> None:
        """InvalidError where the batch has no such column of timestamps."""
        self._type(df)

    def observed(self, df: DataFrame) -> tuple[DataFrame, ObservedTime]:
        """The frame, which reports the greatest event time when a job runs over it."""
        zoned = isinstance(self._type(df), T.TimestampType)
        column = column_named(df.columns[_place(self.column, df.columns)])
        epoch = F.lit("1970-01-01 00:00:00").cast("timestamp_ntz")
        micros = F.unix_micros(column) if zoned else F.timestamp_diff("MICROSECOND", epoch, column)
        observation = Observation()
        return df.observe(observation, F.max(micros).alias(_OBSERVED)), ObservedTime(observation, self.delay_ms)

    def of_rows(self, rows: pa.Table, names: list[str]) -> int | None:
        """The watermark after rows that Spark sent, whose columns were called `names`."""
        micros = pc.max(rows.column(_place(self.column, names)).cast(pa.int64())).as_py()
        return None if micros is None else micros // _MICROS - self.delay_ms

    def _type(self, df: DataFrame) -> T.DataType:
        found = df.schema.fields[_place(self.column, df.columns)].dataType
        if not isinstance(found, (T.TimestampType, T.TimestampNTZType)):
            raise InvalidError(
                f"watermark: column {self.column!r} is {found.simpleString().upper()}; expected a TIMESTAMP of events"
            )
        return found


@dataclass(frozen=True, slots=True)
class ObservedTime:
    """The greatest event time that a job over a frame has seen."""

    observation: Observation
    delay_ms: int

    def watermark(self) -> int | None:
        """The watermark after the job's rows, None where there were none."""
        found: Any = self.observation.get[_OBSERVED]
        return None if found is None else int(found) // _MICROS - self.delay_ms


def progress_watermark(spark: SparkSession, query_id: str | None) -> int | None:
    """The watermark that a query reached by its last progress, None where it has none or cannot be asked (Spark Connect). The
    session is the one in which the query was started."""
    if query_id is None or is_connect(spark):
        return None
    query = spark.streams.get(query_id)
    progress = None if query is None else query.lastProgress
    text = None if progress is None else progress.eventTime.get("watermark")
    if text is None:
        return None
    reached = dt.datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(dt.UTC).replace(tzinfo=None)
    # Before the first event Spark reports the beginning of time, which says nothing about the table.
    return (reached - _EPOCH) // _MILLI or None


def _place(name: str, names: list[str]) -> int:
    exact = [place for place, found in enumerate(names) if found == name]
    alike = exact or [place for place, found in enumerate(names) if found.casefold() == name.casefold()]
    if len(alike) != 1:
        raise InvalidError(f"watermark: expected one column {name!r} in the batch, found {len(alike)} among {names}")
    return alike[0]
