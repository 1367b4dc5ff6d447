"""Fragments that wait for their turns hold up none that has one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from lakelet.service.peers.fragment_server import FragmentServer

_ROWS = pa.record_batch({"n": [1]})
_BATCHES = 3


@dataclass
class OneAtATime:
    """Fragments of three batches, of which one runs at a time."""

    turn: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(1))
    waiting: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    is_over: bool = False

    def prepare(self, _: object, __: float) -> OneAtATime:
        return self

    def batches(self) -> Generator[pa.RecordBatch]:
        self.waiting.release()
        while not self.turn.acquire(timeout=0.05):
            if self.is_over:
                return
        try:
            for _ in range(_BATCHES):
                yield _ROWS
        finally:
            self.turn.release()

    def cancel(self) -> None: ...


def test_a_fragment_that_has_its_turn_ends_whoever_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    fragments = OneAtATime()

    async def started_engine() -> Any:
        return SimpleNamespace(fragments=fragments)

    async def run() -> None:
        service: Any = SimpleNamespace(
            settings=SimpleNamespace(query_running=1), tables=None, started_engine=started_engine
        )
        server = FragmentServer(service)
        message = SimpleNamespace(seconds=1.0, given=())

        async def rows() -> int:
            return len([one async for one in server.run(message) if one.batch])

        first = server.run(message)
        assert (await anext(first)).batch
        others = [asyncio.ensure_future(rows()) for _ in range(4)]
        # The first one, and as many as there are threads to wait in.
        for _ in range(3):
            await asyncio.to_thread(fragments.waiting.acquire)
        # Where nothing goes on, those that wait give up, and have no rows.
        giving_up = asyncio.get_running_loop().call_later(5, lambda: setattr(fragments, "is_over", True))
        assert len([one async for one in first if one.batch]) == _BATCHES - 1
        assert await asyncio.gather(*others) == [_BATCHES] * 4
        giving_up.cancel()
        server.close()

    monkeypatch.setattr("lakelet.service.peers.fragment_messages.fragment_of", lambda *_: None)
    asyncio.run(run())
