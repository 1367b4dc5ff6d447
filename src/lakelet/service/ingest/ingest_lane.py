"""The requests of one table on their way to its log: while one group is written, the next one gathers.

    request ── submit ─┐                              ┌── answered
    request ── submit ─┼─ one group ── a thread: log ─┼── answered
    request ── submit ─┘   (the next gathers)         └── answered

There is no timer: an idle lane writes a request at once, a busy one takes all that have come meanwhile. The event loop never
waits for a disk. What waits is bounded in records; beyond it requests are refused, and nothing of them is done.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

import pyarrow as pa

from lakelet.errors import InvalidError, OverloadedError, TooLargeError
from lakelet.service.ingest.arrow_records import records_of_arrow
from lakelet.service.ingest.table_ingest import TableIngest
from lakelet.service.values import Record

# A group larger than this is written in turns, so that the first of its requests do not wait for the last.
_GROUP_RECORDS = 20_000


@dataclass(slots=True, eq=False)
class _Unit:
    """The records of one request, all of which are written or none; or its rows in Arrow."""

    records: Sequence[Record] | pa.Table
    answer: asyncio.Future[int]


class IngestLane:
    """Groups the writes of one table; used on the event loop alone."""

    def __init__(
        self, ingest: TableIngest, threads: Executor, most_waiting: int, written: Callable[[IngestLane], None]
    ) -> None:
        self.ingest = ingest
        self._threads = threads
        self._most_waiting = most_waiting
        self._written = written
        self._waiting: list[_Unit] = []
        self._records_waiting = 0
        self._busy = False
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def records_waiting(self) -> int:
        """Records that are neither written nor refused yet."""
        return self._records_waiting

    async def submit(self, records: Sequence[Record] | pa.Table) -> int:
        """Write records and return when they are durable; how many values went to `payload_rest`."""
        if self._records_waiting and self._records_waiting + len(records) > self._most_waiting:
            raise OverloadedError(
                f"table {self.ingest.opened.name!r}: {self._records_waiting} records wait to be written, at most "
                f"{self._most_waiting} may"
            )
        answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Unit(records, answer))
        self._records_waiting += len(records)
        self._start_soon()
        return await answer

    async def drained(self) -> None:
        """Return when nothing waits and nothing is being written."""
        await self._idle.wait()

    def _start_soon(self) -> None:
        """Start the next group after what the event loop has to do already: requests that are there by then join it. A group has
        costs of its own, which one of a single request would pay alone."""
        if not self._busy:
            self._busy = True
            self._idle.clear()
            asyncio.get_running_loop().call_soon(self._start)

    def _start(self) -> None:
        """Hand the next group to a thread."""
        count, taken = 0, 0
        for unit in self._waiting:
            if taken and count + len(unit.records) > _GROUP_RECORDS:
                break
            count += len(unit.records)
            taken += 1
        group, self._waiting = self._waiting[:taken], self._waiting[taken:]
        loop = asyncio.get_running_loop()
        self._threads.submit(self._run, group, loop)

    def _run(self, group: list[_Unit], loop: asyncio.AbstractEventLoop) -> None:
        """In a thread: write a group and have its requests answered."""
        outcomes = self._outcomes(group)
        loop.call_soon_threadsafe(self._finish, group, outcomes)

    def _outcomes(self, group: Sequence[_Unit]) -> list[int | BaseException]:
        """What became of each request. Those with Arrow rows are written one by one, all others together."""
        if not any(isinstance(unit.records, pa.Table) for unit in group):
            return self._record_outcomes(group)
        known = {id(unit): self._one_outcome(unit) for unit in group if isinstance(unit.records, pa.Table)}
        others = [unit for unit in group if id(unit) not in known]
        known.update(zip(map(id, others), self._record_outcomes(others), strict=True))
        return [known[id(unit)] for unit in group]

    def _one_outcome(self, unit: _Unit) -> int | BaseException:
        """Write Arrow rows as they are if they fit, else as records."""
        try:
            if self.ingest.write_fitting(unit.records):
                return 0
            (rest,) = self.ingest.write([list(records_of_arrow(unit.records))])
            return rest
        except Exception as error:
            return error

    def _record_outcomes(self, group: Sequence[_Unit]) -> list[int | BaseException]:
        if not group:
            return []
        try:
            return list(self.ingest.write([unit.records for unit in group]))
        except (InvalidError, TooLargeError) as error:
            if len(group) == 1:
                return [error]
            # One request must not fail for the fault of another, nor because together they are too large.
            return [outcome for unit in group for outcome in self._record_outcomes([unit])]
        except Exception as error:
            return [error] * len(group)

    def _finish(self, group: Sequence[_Unit], outcomes: Sequence[int | BaseException]) -> None:
        for unit, outcome in zip(group, outcomes, strict=True):
            self._records_waiting -= len(unit.records)
            # The request may have been given up meanwhile.
            if unit.answer.done():
                continue
            if isinstance(outcome, BaseException):
                unit.answer.set_exception(outcome)
            else:
                unit.answer.set_result(outcome)
        self._busy = False
        if self._waiting:
            self._start_soon()
        else:
            self._idle.set()
        self._written(self)
