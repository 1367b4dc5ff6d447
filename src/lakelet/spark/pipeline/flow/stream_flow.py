"""Flows over streams: what is new since the checkpoint goes into the table, each batch once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, Observation
from pyspark.sql.streaming.query import StreamingQuery

from lakelet.spark.pipeline.expectations import Expectations
from lakelet.spark.pipeline.flow.flow_write import FlowWrite, Written, observed
from lakelet.spark.session import is_connect
from lakelet.spark.stream.write.query import write_stream
from lakelet.spark.stream.write.sink_request import DRIVER_ROWS

# The name under which a stream counts what meets expectations, where nothing else counts its batches.
OBSERVED = "lakelet_expectations"
_LOOK_SECONDS = 1
_MOST_OPEN = 16


def append_stream(write: FlowWrite) -> Written:
    """Appends (with a primary key: upserts) what is new, and ends."""
    frame, counts = counted(write)
    tables: dict[str, Callable[[DataFrame], DataFrame] | None] = {write.target.name: None}
    if write.expectations.listed:
        tables[write.target.name] = counts.met
    if write.expectations.quarantines:
        tables[write.target.quarantine] = counts.expectations.set_aside
    return counts.written(finish(write, start(write, frame, tables, driver_rows=counts.driver_rows)))


def counted(write: FlowWrite) -> tuple[DataFrame, BatchCounts]:
    """The stream of a flow, and what counts its batches; over Spark Connect, where batches run elsewhere, nothing is counted."""
    expectations, frame = write.expectations, write.frame
    if expectations.quarantines:
        # Within the stream the current time is that of the batch, also when it is repeated.
        expectations, frame = expectations.flagged(frame)
    return frame, BatchCounts(expectations, counting=not is_connect(write.work.spark))


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
    return sum(finished(write, query).rows.values())


def finished(write: FlowWrite, query: StreamingQuery) -> BatchesSeen:
    """Waits for a query to end, reporting its progress; what its batches read, and counted in the stream itself."""
    seen = BatchesSeen()
    try:
        while not query.awaitTermination(_LOOK_SECONDS):
            seen.look(query)
            write.progress(sum(seen.rows.values()))
    except BaseException:
        query.stop()
        raise
    seen.look(query)
    return seen


@dataclass(slots=True)
class BatchesSeen:
    """Rows read and numbers observed by each batch of a query, from its last reports."""

    rows: dict[int, int] = field(default_factory=dict)
    numbers: dict[int, dict[str, int]] = field(default_factory=dict)

    def look(self, query: StreamingQuery) -> None:
        """Takes what is reported by now."""
        for progress in query.recentProgress:
            found: Any = progress
            batch = int(found["batchId"])
            # Over Spark Connect the sum of all sources is computed by the property alone.
            self.rows[batch] = int(found.numInputRows)
            metrics = found["observedMetrics"].get(OBSERVED)
            if metrics is not None:
                self.numbers[batch] = {name: int(number or 0) for name, number in metrics.asDict().items()}

    def total(self) -> dict[str, int]:
        """The numbers of all batches."""
        sums: Counter[str] = Counter()
        for one in self.numbers.values():
            sums.update(one)
        return dict(sums)


@dataclass(slots=True)
class BatchCounts:
    """The numbers of all batches of one run, summed up as batches end."""

    expectations: Expectations
    counting: bool
    open: list[Observation] = field(default_factory=list)
    sums: dict[str, int] = field(default_factory=dict)

    @property
    def driver_rows(self) -> int:
        """How many rows the driver may write: a batch that it collects in part first would be counted in part."""
        return 0 if self.counting and self.expectations.listed else DRIVER_ROWS

    def written(self, rows: int) -> Written:
        """What a query wrote, of which the number of rows read is given."""
        found = self.total()
        return Written(found.pop("rows", rows), self.expectations.counted(found) if found else {})

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
