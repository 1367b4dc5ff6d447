"""A proxy on a loopback port, in front of a server: a network that is cut, slow, or whole again."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_CHUNK = 1 << 16


class TcpProxy:
    """Carries connections to an address, from a thread of its own. `delay_seconds` is what each piece of an answer waits."""

    def __init__(self, port: int, target: tuple[str, int]) -> None:
        self.port = port
        self.delay_seconds = 0.0
        self._target = target
        self._is_cut = False
        self._loop = asyncio.new_event_loop()
        self._writers: set[asyncio.StreamWriter] = set()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tcp-proxy")

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"127.0.0.1:{self.port}"

    def cut(self) -> None:
        """Break all connections, and make no others."""
        asyncio.run_coroutine_threadsafe(self._cut(), self._loop).result()

    def heal(self) -> None:
        """Make connections again."""
        self._is_cut = False

    def start(self) -> None:
        """Listen."""
        self._thread.start()
        self._started.wait()

    def stop(self) -> None:
        """End."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._carry, "127.0.0.1", self.port))
        self._started.set()
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _cut(self) -> None:
        self._is_cut = True
        for writer in self._writers:
            writer.transport.abort()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_cut:
            writer.transport.abort()
            return
        try:
            there, back = await asyncio.open_connection(*self._target)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, back}
        try:
            await asyncio.gather(self._copy(reader, back, 0.0), self._copy(there, writer, None))
        finally:
            self._writers -= {writer, back}
            for one in (writer, back):
                one.transport.abort()

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay: float | None) -> None:
        with suppress(OSError):
            while data := await reader.read(_CHUNK):
                await asyncio.sleep(self.delay_seconds if delay is None else delay)
                writer.write(data)
                await writer.drain()
        with suppress(OSError, RuntimeError):
            writer.transport.abort()


@contextmanager
def tcp_proxy(port: int, target_port: int) -> Iterator[TcpProxy]:
    """A proxy for as long as a block runs."""
    made = TcpProxy(port, ("127.0.0.1", target_port))
    made.start()
    try:
        yield made
    finally:
        made.stop()
