"""Flows over streams: what is new since the checkpoint goes into the table, each batch once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, Observation
from pyspark.sql.streaming.query import StreamingQuery

from lakelet.spark.pipeline.expectations import Expectations
from lakelet.spark.pipeline.flow_write import FlowWrite, Written, observed
from lakelet.spark.session import is_connect
from lakelet.spark.stream.write.query import write_stream
from lakelet.spark.stream.write.sink_request import DRIVER_ROWS

_LOOK_SECONDS = 1
_MOST_OPEN = 16


def append_stream(write: FlowWrite) -> Written:
    """Appends (with a primary key: upserts) what is new, and ends."""
    counts = _Counts(write.expectations, counting=not is_connect(write.work.spark))
    tables: dict[str, Callable[[DataFrame], DataFrame] | None] = {write.target.name: None}
    if write.expectations.listed:
        tables[write.target.name] = counts.met
    if write.expectations.quarantines:
        tables[write.target.quarantine] = write.expectations.set_aside
    # A batch that the driver collects in part first would be counted in part.
    query = start(write, write.frame, tables, driver_rows=0 if counts.counts else DRIVER_ROWS)
    rows = finish(write, query)
    found = counts.total()
    return Written(found.pop("rows", rows), write.expectations.counted(found) if found else {})


def start(
    write: FlowWrite,
    frame: DataFrame,
    tables: dict[str, Callable[[DataFrame], DataFrame] | None],
    *,
    driver_rows: int = DRIVER_ROWS,
    on_duplicate: str = "raise",
) -> StreamingQuery:
    """Starts the query of a flow."""
    return write_stream(
        frame,
        write.work.warehouse,
        tables,
        checkpoint=write.checkpoint,
        mode="append",
        commit_user=write.user,
        query_name=write.user,
        driver_rows=driver_rows,
        on_duplicate=on_duplicate,
        options=write.work.options,
    )


def finish(write: FlowWrite, query: StreamingQuery) -> int:
    """Waits for a query to end, reporting its progress; the number of rows that it read."""
    seen: dict[int, int] = {}
    try:
        while not query.awaitTermination(_LOOK_SECONDS):
            _look(query, seen)
            write.progress(sum(seen.values()))
    except BaseException:
        query.stop()
        raise
    _look(query, seen)
    return sum(seen.values())


def _look(query: StreamingQuery, seen: dict[int, int]) -> None:
    for progress in query.recentProgress:
        found: Any = progress
        seen[int(found["batchId"])] = int(found["numInputRows"])


@dataclass(slots=True)
class _Counts:
    """The numbers of all batches of one run, summed up as batches end."""

    expectations: Expectations
    counting: bool
    open: list[Observation] = field(default_factory=list)
    sums: dict[str, int] = field(default_factory=dict)

    @property
    def counts(self) -> bool:
        return self.counting and bool(self.expectations.listed)

    def met(self, batch: DataFrame) -> DataFrame:
        """The rows of a batch to write."""
        if not self.counting:
            return self.expectations.met(batch, None)
        if len(self.open) >= _MOST_OPEN:
            self._close()
        observation = Observation()
        self.open.append(observation)
        return self.expectations.met(batch, observation)

    def total(self) -> dict[str, int]:
        """The sums."""
        self._close()
        return dict(self.sums)

    def _close(self) -> None:
        for one in self.open:
            for name, number in observed(one).items():
                self.sums[name] = self.sums.get(name, 0) + int(number or 0)
        self.open.clear()
