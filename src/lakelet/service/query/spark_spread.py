"""One query spread over the tasks of a Spark job: the plan that workers of a cluster would run, each split read by DuckDB there.

    splits ── groups of about a task's bytes ── spark/jobs/spread: SparkFragment ── gathered
    rows in memory ── a fragment of this node

Nothing is translated: tasks run the same text in the same sandbox over the same pinned version as a worker, and the node that was
asked combines their rows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import pyarrow as pa

from lakelet.errors import InternalError, InvalidError, LakeletError, UnavailableError
from lakelet.ids import RandomIds
from lakelet.service.query.gathered_fragments import FragmentStream
from lakelet.service.query.gathered_rows import GatheredFolder, GatheredPart, GatheredRows
from lakelet.service.query.query_limits import QueryLimits
from lakelet.service.query.query_run import Interruptible
from lakelet.service.query.query_spread import MOST_SENT_BYTES, QuerySpread
from lakelet.service.query.spark_fragment import SparkFragment
from lakelet.service.service_spark import ServiceSpark
from lakelet.sql.sandbox.spread import Fragment, PlannedSplit, SpreadFailedError, Told, WholeWork, Work

_IDS = RandomIds()
_TASK_BYTES = 128 << 20


class SparkSpread:
    """The work of one query on Spark. With `required` the query runs nowhere else."""

    def __init__(
        self,
        spark: ServiceSpark,
        run_here: Callable[[Fragment, float], FragmentStream],
        location: str,
        limits: QueryLimits,
        *,
        most_gathered_bytes: int,
        seconds_left: Callable[[], float],
        required: bool,
    ) -> None:
        self._spark = spark
        self._run_here = run_here
        self._location = location
        self._limits = limits
        self._most_gathered = most_gathered_bytes
        self._seconds_left = seconds_left
        self._required = required
        self._tag = f"lakelet-query-{_IDS.uuid()}"
        self._lock = threading.Lock()
        self._running: Any = None
        self._here: FragmentStream | None = None
        self._stopped = False
        self._beside: Interruptible | None = None

    # ------------------------------------------------------------------ whether

    def is_worthwhile(self, sizes: Sequence[int]) -> bool:
        """Whether a table with splits of these bytes is read by Spark."""
        return self._required or (bool(sizes) and sum(sizes) >= self._limits.spark_bytes)

    def can_take(self, work: Work) -> bool:
        """Whether what memory has of the tables is little enough to be sent along."""
        return work.sent_bytes <= MOST_SENT_BYTES

    def is_for_another(self, sizes: Sequence[int], *, is_split: bool) -> bool:
        """Whether another node combines what tasks give: they send it to this one."""
        return False

    def can_take_whole(self, work: WholeWork) -> bool:
        """Whether another node could."""
        return False

    def told_whole(self) -> str:
        """Which node would."""
        raise InternalError("what tasks give is combined by this node")

    def run_whole(self, work: WholeWork) -> GatheredRows:
        """Have another node do it."""
        raise InternalError("what tasks give is combined by this node")

    def told(self, work: Work) -> Sequence[Told]:
        """Who would do what."""
        return [Told(f"Spark at {self._spark.address}", len(work.splits), sum(one.bytes for one in work.splits))]

    def decline(self) -> None:
        """Told that the query cannot be split: InvalidError where it has to be."""
        if self._required:
            raise InvalidError(
                "engine: expected a query that can be split over tasks of Spark, found one that cannot: leave `engine` out to "
                "run it on a node of the service"
            )

    # ------------------------------------------------------------------ work

    def run(self, work: Work) -> GatheredRows:
        """Have it done. SpreadFailedError where Spark cannot; UnavailableError where nobody else may."""
        folder = GatheredFolder()
        try:
            parts = [self._memory(work, folder), *self._tasks(work, folder)]
        except BaseException as error:
            folder.cleanup()
            if not isinstance(error, LakeletError):
                raise
            self._check()
            if self._required:
                raise error if isinstance(error, InvalidError) else UnavailableError(f"Spark: {error}") from error
            raise SpreadFailedError(f"Spark: {error}") from error
        return GatheredRows(parts, folder)

    def beside(self, engine: Interruptible) -> SparkSpread:
        """This, with what else is to be interrupted."""
        self._beside = engine
        return self

    def interrupt(self) -> None:
        """End the work; any thread may call this."""
        with self._lock:
            self._stopped = True
            spark, here = self._running, self._here
        if here is not None:
            here.cancel()
        if spark is not None:
            from lakelet.spark.jobs.tagged_jobs import end_jobs  # noqa: PLC0415 - PySpark is an extra.

            end_jobs(spark, self._tag)
        if self._beside is not None:
            self._beside.interrupt()

    def _memory(self, work: Work, folder: GatheredFolder) -> GatheredPart:
        """What memory has of the table, read on this node."""
        part = GatheredPart(work.schema, folder)
        if work.has_memory_rows:
            stream = self._run_here(work.fragment([], has_memory=True), max(self._seconds_left(), 0.001))
            with self._lock:
                self._here = stream
            self._check()
            with closing(stream.batches()) as batches:
                for batch in batches:
                    part.add(batch)
        part.finish()
        return part

    def _tasks(self, work: Work, folder: GatheredFolder) -> list[GatheredPart]:
        """The rows of the tasks."""
        from lakelet.spark.jobs.spread import spread  # noqa: PLC0415 - PySpark is an extra.
        from lakelet.spark.jobs.tagged_jobs import tagged_jobs  # noqa: PLC0415

        pieces = split_groups(work.splits)
        if not pieces:
            return []
        spark = self._spark.session()
        bare = work.bare()
        seconds = max(self._seconds_left(), 0.001)
        task = SparkFragment(bare, self._location, replace(self._limits, threads=1), seconds, self._most_gathered)
        with self._lock:
            self._running = spark
        self._check()
        with tagged_jobs(spark, self._tag):
            found = spread(spark, pieces, task, "a query")
        self._check()
        if sum(len(data) for _, data in found) > self._most_gathered:
            raise InvalidError(f"the tasks give more than {self._most_gathered} bytes")
        return [_part(data, work.schema, folder) for _, data in found]

    def _check(self) -> None:
        if self._stopped:
            raise InvalidError("the query was interrupted")


def split_groups(splits: Sequence[PlannedSplit]) -> list[tuple[str, ...]]:
    """Splits in groups of about the bytes of a task, in their order."""
    groups: list[list[str]] = []
    size = 0
    for one in splits:
        if not groups or size + one.bytes > _TASK_BYTES:
            groups.append([])
            size = 0
        groups[-1].append(one.name)
        size += one.bytes
    return [tuple(group) for group in groups]


def _part(data: bytes, schema: pa.Schema, folder: GatheredFolder) -> GatheredPart:
    part = GatheredPart(schema, folder)
    with pa.ipc.open_stream(data) as reader:
        for batch in reader:
            part.add(batch)
    part.finish()
    return part


class SizedSpread:
    """Where a query runs by what it reads: on Spark where that is much, else on the workers of the cluster, if there are any."""

    def __init__(self, small: QuerySpread | None, large: SparkSpread) -> None:
        self._small = small
        self._large = large
        self._spreads: list[QuerySpread | SparkSpread] = [large] if small is None else [large, small]

    def is_worthwhile(self, sizes: Sequence[int]) -> bool:
        """Whether a table with splits of these bytes is read by others."""
        return any(one.is_worthwhile(sizes) for one in self._spreads)

    def can_take(self, work: Work) -> bool:
        """Whether what memory has of the tables is little enough to be sent along."""
        return self._of(work).can_take(work)

    def is_for_another(self, sizes: Sequence[int], *, is_split: bool) -> bool:
        """Whether another node combines what nodes give, or runs what is not split; not where Spark has its part."""
        if self._small is None or (is_split and self._large.is_worthwhile(sizes)):
            return False
        return self._small.is_for_another(sizes, is_split=is_split)

    def can_take_whole(self, work: WholeWork) -> bool:
        """Whether what memory has of the tables is little enough to be sent to that node."""
        return self._small is not None and self._small.can_take_whole(work)

    def told_whole(self) -> str:
        """Which node that is."""
        assert self._small is not None
        return self._small.told_whole()

    def run_whole(self, work: WholeWork) -> GatheredRows:
        """Have one other node do it."""
        assert self._small is not None
        return self._small.run_whole(work)

    def told(self, work: Work) -> Sequence[Told]:
        """Who would do what."""
        return self._of(work).told(work)

    def decline(self) -> None:
        """Told that the query cannot be split."""

    def run(self, work: Work) -> GatheredRows:
        """Have it done."""
        return self._of(work).run(work)

    def beside(self, engine: Interruptible) -> SizedSpread:
        """This, with what else is to be interrupted."""
        for one in self._spreads:
            one.beside(engine)
        return self

    def interrupt(self) -> None:
        """End the work; any thread may call this."""
        for one in self._spreads:
            one.interrupt()

    def _of(self, work: Work) -> QuerySpread | SparkSpread:
        """Who does some work."""
        sizes = [split.bytes for split in work.splits]
        return next((one for one in self._spreads if one.is_worthwhile(sizes)), self._spreads[-1])
