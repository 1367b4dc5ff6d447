"""Runs fragments of queries for other nodes, in threads of their own: a query waits for fragments of other nodes, and would hold
up theirs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from lakelet.errors import UnavailableError
from lakelet.protos.message_types import message_class

if TYPE_CHECKING:
    from lakelet.service.service import Service

T = TypeVar("T")
# How often a node says that it still works at a fragment.
_STILL_SECONDS = 1.0
_THREADS_PER_QUERY = 2


class FragmentServer:
    """The fragments that run on this node; used on its event loop."""

    def __init__(self, service: Service) -> None:
        self._service = service
        running = service.settings.query_running
        # Fragments wait for their turns in threads of the first kind. Those that have one read their further rows in the second,
        # where nobody waits: else all threads could wait for turns that end in none of them.
        self._starting = ThreadPoolExecutor(running * _THREADS_PER_QUERY, "lakelet-fragments")
        self._reading = ThreadPoolExecutor(running, "lakelet-fragment-rows")
        # Those that read rows of other fragments wait for these: in threads that none of these needs.
        self._combining = ThreadPoolExecutor(running, "lakelet-fragments-combined")

    async def run(self, message: Any) -> AsyncGenerator[Any]:
        """The rows of a fragment as messages. Whoever closes this ends it."""
        from lakelet.service.peers.fragment_messages import (  # noqa: PLC0415 - DuckDB is loaded by the first query.
            batch_messages,
            fragment_of,
        )

        engine = await self._service.started_engine()
        opening = self._in_thread(self._starting, fragment_of, message, self._service.tables)
        async for still in _until_done(opening):
            yield still
        running = engine.fragments.prepare(opening.result(), message.seconds)
        batches = running.batches()
        threads = self._combining if message.given else self._starting
        reading: asyncio.Future[pa.RecordBatch | None] | None = None
        try:
            while True:
                reading = self._in_thread(threads, next, batches, None)
                async for still in _until_done(reading):
                    yield still
                batch = reading.result()
                if batch is None:
                    return
                threads = self._reading
                for one in batch_messages(batch):
                    yield one
        finally:
            running.cancel()
            if reading is not None and not reading.done():
                await asyncio.wait({reading})
            await self._in_thread(self._reading, _close, batches)

    def close(self) -> None:
        """Run no more."""
        self._starting.shutdown(wait=False)
        self._reading.shutdown(wait=False)
        self._combining.shutdown(wait=False)

    def _in_thread(self, threads: ThreadPoolExecutor, function: Callable[..., T], *arguments: Any) -> asyncio.Future[T]:
        try:
            return asyncio.get_running_loop().run_in_executor(threads, function, *arguments)
        except RuntimeError as error:
            raise UnavailableError("the node is stopping") from error


async def _until_done(work: asyncio.Future[Any]) -> AsyncGenerator[Any]:
    """Empty messages while something is done, from which the node that asks knows that this one is there."""
    while not work.done():
        await asyncio.wait({work}, timeout=_STILL_SECONDS)
        if not work.done():
            yield message_class("lakelet.peer.v1.FragmentRows")()


def _close(batches: Generator[pa.RecordBatch]) -> None:
    batches.close()
