"""`table.async_writer()`: a row writer for asyncio. What is awaited has happened: a row is durable when its `put` returns.

    task ── await put ─┐
    task ── await put ─┼─ threads of the writer ── log_writer: one sync for all that wait
    task ── await put ─┘

Calls run in threads of their own pool, so that neither syncs nor commits hold up the event loop, and tasks share syncs as
threads do. A call that is cancelled may still take place.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import pyarrow as pa

from lakelet.errors import InvalidError
from lakelet.realtime.read.writer_scan import WriterScan
from lakelet.realtime.row_writer import RowWriter
from lakelet.realtime.wal.recovery import RecoveredLog
from lakelet.realtime.writer_status import WriterStatus
from lakelet.table.read.condition import Condition

T = TypeVar("T")
# Most calls wait for a sync that they share: a group is at most as large as this.
_THREADS = 32


class AsyncRowWriter:
    """A `RowWriter` whose calls are awaited. Made by `table.async_writer()`, opened by `async with`."""

    def __init__(self, open_writer: Callable[[], RowWriter]) -> None:
        self._open_writer = open_writer
        self._pool: ThreadPoolExecutor | None = None
        self._writer: RowWriter | None = None
        self._closed = False

    async def __aenter__(self) -> Self:
        """Open the writer; rows that a crashed one left are committed first."""
        if self._pool is not None:
            raise InvalidError("the writer is open or was closed: make another one")
        self._pool = ThreadPoolExecutor(_THREADS, "lakelet-async-writer")
        opened = self._pool.submit(self._open_writer)
        try:
            self._writer = await asyncio.wrap_future(opened)
        except BaseException:
            # The opening goes on in its thread where it was cancelled: whatever it opens is closed.
            opened.add_done_callback(_close_opened)
            self._pool.shutdown(wait=False)
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def recovered(self) -> tuple[RecoveredLog, ...]:
        """What was found in logs of an earlier writer."""
        return self._opened.recovered

    async def put(self, row: Mapping[str, object]) -> None:
        """Insert a row, or replace the one with its key; durable when awaited."""
        await self._call(self._opened.put, row)

    async def put_many(self, data: Any) -> None:
        """Put rows: anything that `Table.write` takes; after an error some of them may be put."""
        await self._call(self._opened.put_many, data)

    async def put_if_absent(self, row: Mapping[str, object]) -> bool:
        """Insert a row unless there is one with its key; whether it was inserted."""
        return await self._call(self._opened.put_if_absent, row)

    async def delete(self, key: Mapping[str, object]) -> bool:
        """Delete the row with this primary key; False where there is none."""
        return await self._call(self._opened.delete, key)

    async def get(self, key: Mapping[str, object], columns: Sequence[str] | None = None) -> dict[str, Any] | None:
        """The newest row with this primary key as a dict, None where there is none."""
        return await self._call(self._opened.get, key, columns)

    async def get_many(self, keys: Any, columns: Sequence[str] | None = None) -> list[dict[str, Any] | None]:
        """The newest row of each key, in the order of the keys, None where there is none."""
        return await self._call(self._opened.get_many, keys, columns)

    async def scan(
        self,
        columns: Sequence[str] | None = None,
        where: Condition | None = None,
        limit: int | None = None,
        *,
        start: Mapping[str, object] | None = None,
        end: Mapping[str, object] | None = None,
        prefix: Mapping[str, object] | None = None,
    ) -> AsyncWriterScan:
        """The rows of the table at this moment, with those that were put here, as `RowWriter.scan` gives them."""
        made = await self._call(lambda: self._opened.scan(columns, where, limit, start=start, end=end, prefix=prefix))
        return AsyncWriterScan(made, self._threads)

    async def flush(self) -> None:
        """Commit all rows that were put so far."""
        await self._call(self._opened.flush)

    def status(self) -> WriterStatus:
        """What the writer holds and has done."""
        return self._opened.status()

    async def close(self) -> None:
        """Commit all rows and release the log; once is enough."""
        if self._writer is None or self._pool is None:
            return
        if self._closed:
            return
        self._closed = True
        try:
            await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._pool, self._writer.close))
        finally:
            self._pool.shutdown(wait=False)

    @property
    def _opened(self) -> RowWriter:
        if self._writer is None:
            raise InvalidError("the writer is not open: use it in an `async with`")
        return self._writer

    @property
    def _threads(self) -> ThreadPoolExecutor:
        assert self._pool is not None, "an open writer has threads"
        return self._pool

    async def _call(self, function: Callable[..., T], *arguments: object) -> T:
        if self._closed:
            raise InvalidError("the writer is closed")
        return await asyncio.get_running_loop().run_in_executor(self._threads, function, *arguments)


@dataclass(frozen=True, slots=True)
class AsyncWriterScan:
    """The rows that a writer saw at one moment; reading them is awaited."""

    scan: WriterScan
    threads: ThreadPoolExecutor

    async def to_arrow(self) -> pa.Table:
        """All rows as an Arrow table."""
        return await asyncio.get_running_loop().run_in_executor(self.threads, self.scan.to_arrow)

    async def count(self) -> int:
        """The number of rows."""
        return await asyncio.get_running_loop().run_in_executor(self.threads, self.scan.count)

    async def to_batches(self) -> AsyncIterator[pa.RecordBatch]:
        """The rows, batch by batch."""
        batches, loop = self.scan.to_batches(), asyncio.get_running_loop()
        while (batch := await loop.run_in_executor(self.threads, next, batches, None)) is not None:
            yield batch


def _close_opened(opened: Future[RowWriter]) -> None:
    if not opened.cancelled() and opened.exception() is None:
        opened.result().close()
