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
from lakelet.service.ingest.table_ingest import TableIngest
from lakelet.service.ingest.write_unit import WriteUnit
from lakelet.service.values import Record, WriteResult

# A group larger than this is written in turns, so that the first of its requests do not wait for the last.
_GROUP_RECORDS = 20_000


_Outcome = WriteResult | BaseException


@dataclass(slots=True, eq=False)
class _Waiting:
    """A request that waits for its write."""

    unit: WriteUnit
    answer: asyncio.Future[WriteResult]


class IngestLane:
    """Groups the writes of one table; used on the event loop alone."""

    def __init__(
        self, ingest: TableIngest, threads: Executor, most_waiting: int, written: Callable[[IngestLane], None]
    ) -> None:
        self.ingest = ingest
        self._threads = threads
        self._most_waiting = most_waiting
        self._written = written
        self._waiting: list[_Waiting] = []
        # Done when the request of that name is written or refused.
        self._in_flight: dict[bytes, asyncio.Future[None]] = {}
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
        return (await self.submit_unit(WriteUnit(records))).rest_values

    async def submit_unit(self, unit: WriteUnit) -> WriteResult:
        """Write the records of a request and return when they are durable. A request under the key of one that is being written
        waits for that one: it is answered like it, or written if the other was not."""
        loop, records, key = asyncio.get_running_loop(), unit.records, unit.key
        while key is not None and key.name in self._in_flight:
            await asyncio.shield(self._in_flight[key.name])
        if self._records_waiting and self._records_waiting + len(records) > self._most_waiting:
            raise OverloadedError(
                f"table {self.ingest.opened.name!r}: {self._records_waiting} records wait to be written, at most "
                f"{self._most_waiting} may"
            )
        answer: asyncio.Future[WriteResult] = loop.create_future()
        if key is not None:
            self._in_flight[key.name] = loop.create_future()
        self._waiting.append(_Waiting(unit, answer))
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
        for one in self._waiting:
            if taken and count + len(one.unit.records) > _GROUP_RECORDS:
                break
            count += len(one.unit.records)
            taken += 1
        group, self._waiting = self._waiting[:taken], self._waiting[taken:]
        loop = asyncio.get_running_loop()
        self._threads.submit(self._run, group, loop)

    def _run(self, group: list[_Waiting], loop: asyncio.AbstractEventLoop) -> None:
        """In a thread: write a group and have its requests answered."""
        outcomes = self._outcomes([one.unit for one in group])
        loop.call_soon_threadsafe(self._finish, group, outcomes)

    def _outcomes(self, group: Sequence[WriteUnit]) -> list[_Outcome]:
        """What became of each request. Those with a known key are answered as before, those with Arrow rows are written one by
        one, all others together."""
        if not any(unit.key is not None or isinstance(unit.records, pa.Table) for unit in group):
            return self._record_outcomes(group)
        found = self._known(group)
        for unit in group:
            if id(unit) not in found and isinstance(unit.records, pa.Table):
                found[id(unit)] = self._arrow_outcome(unit)
        others = [unit for unit in group if id(unit) not in found]
        found.update(zip(map(id, others), self._record_outcomes(others), strict=True))
        return [found[id(unit)] for unit in group]

    def _known(self, group: Sequence[WriteUnit]) -> dict[int, _Outcome]:
        """The outcomes of requests whose keys are known, by the unit; an error for all with a key where nobody can tell."""
        keyed = [(unit, unit.key) for unit in group if unit.key is not None]
        if not keyed:
            return {}
        try:
            kept = self.ingest.kept_keys([key for _, key in keyed])
        except Exception as error:
            return {id(unit): error for unit, _ in keyed}
        found: dict[int, _Outcome] = {}
        for unit, key in keyed:
            if key.name in kept:
                try:
                    found[id(unit)] = key.first_answer(kept[key.name])
                except Exception as error:
                    found[id(unit)] = error
        return found

    def _arrow_outcome(self, unit: WriteUnit) -> _Outcome:
        """Write Arrow rows as they are if they fit, else as records."""
        try:
            if self.ingest.write_fitting(unit.records, unit):
                return unit.result(0)
        except Exception as error:
            return error
        return self._record_outcomes([unit])[0]

    def _record_outcomes(self, group: Sequence[WriteUnit]) -> list[_Outcome]:
        if not group:
            return []
        try:
            counts = self.ingest.write(group)
            return [unit.result(rest) for unit, rest in zip(group, counts, strict=True)]
        except (InvalidError, TooLargeError) as error:
            if len(group) == 1:
                return [self._partial_outcome(group[0], error) if group[0].partial else error]
            # One request must not fail for the fault of another, nor because together they are too large.
            return [outcome for unit in group for outcome in self._record_outcomes([unit])]
        except Exception as error:
            return [error] * len(group)

    def _partial_outcome(self, unit: WriteUnit, error: Exception) -> _Outcome:
        """Write the records of a partial batch that can be written, and report the others."""
        try:
            reasons = self.ingest.refusals(unit.given_records)
        except Exception as failed:
            return failed
        # Without a record that is to blame, it is the batch: it is too large.
        return self._record_outcomes([unit.without(reasons)])[0] if reasons else error

    def _finish(self, group: Sequence[_Waiting], outcomes: Sequence[_Outcome]) -> None:
        for one, outcome in zip(group, outcomes, strict=True):
            self._records_waiting -= len(one.unit.records)
            if one.unit.key is not None:
                self._in_flight.pop(one.unit.key.name).set_result(None)
            # The request may have been given up meanwhile.
            if one.answer.done():
                continue
            if isinstance(outcome, BaseException):
                one.answer.set_exception(outcome)
            else:
                one.answer.set_result(outcome)
        self._busy = False
        if self._waiting:
            self._start_soon()
        else:
            self._idle.set()
        self._written(self)
