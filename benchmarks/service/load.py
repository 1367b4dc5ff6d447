"""Send requests over kept connections and count the answers: as many as a server takes, or so many a second.

Answers are only framed, not parsed: the client shares the machine with the server, and every answer but 200 is an error.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator

_END_OF_HEAD = b"\r\n\r\n"
_LENGTH = b"content-length: "


class LoadError(RuntimeError):
    """A request was answered by something else than 200, or not at all."""


def post(path: str, body: bytes, content_type: str = "application/json") -> bytes:
    """The bytes of a request."""
    head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: {content_type}\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


def closed_loop(port: int, requests: list[bytes], connections: int, status: bytes = b"200") -> list[float]:
    """Send all requests, each connection the next one when its last is answered; the seconds that each took."""

    async def run() -> list[float]:
        left = iter(requests)
        clients = await _connected(port, connections, lambda: next(left, None), status)
        await asyncio.gather(*(client.finished for client in clients))
        return [seconds for client in clients for seconds in client.taken]

    return asyncio.run(run())


def open_loop(port: int, requests: list[bytes], connections: int, per_second: float) -> list[float]:
    """Send requests at a constant rate, whatever the answers do; the seconds from when each was due to its answer."""

    async def run() -> list[float]:
        clients = await _connected(port, connections, None, b"200")
        free = list(clients)
        begin = time.perf_counter()
        taken: list[float] = []
        sent: list[asyncio.Future[None]] = []

        for number, request in enumerate(requests):
            due = begin + number / per_second
            while (late := due - time.perf_counter()) > 0 or not free:
                await asyncio.sleep(max(late, 0))
            client = free.pop()
            client.due = due
            client.send(request)
            done = client.answered()
            done.add_done_callback(lambda _, one=client: free.append(one))
            sent.append(done)
        await asyncio.gather(*sent)
        for client in clients:
            taken += client.taken
        return taken

    return asyncio.run(run())


async def _connected(
    port: int, connections: int, source: Callable[[], bytes | None] | None, status: bytes
) -> list[_Client]:
    loop = asyncio.get_running_loop()
    return [
        (await loop.create_connection(lambda: _Client(source, status), "127.0.0.1", port))[1]
        for _ in range(connections)
    ]


class _Client(asyncio.Protocol):
    """One connection; with a source it sends the next request by itself."""

    def __init__(self, source: Callable[[], bytes | None] | None, status: bytes) -> None:
        loop = asyncio.get_running_loop()
        self._source = source
        self._status = status
        self._buffer = b""
        self._transport: asyncio.Transport | None = None
        self._waiting: asyncio.Future[None] | None = None
        self.finished: asyncio.Future[None] = loop.create_future()
        self.taken: list[float] = []
        self.due = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._next()

    def connection_lost(self, exc: Exception | None) -> None:
        for future in (self.finished, self._waiting):
            if future is not None and not future.done():
                future.set_exception(LoadError("the server closed the connection"))

    def send(self, request: bytes) -> None:
        assert self._transport is not None
        self._transport.write(request)

    def answered(self) -> asyncio.Future[None]:
        self._waiting = asyncio.get_running_loop().create_future()
        return self._waiting

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        for status in self._answers():
            self.taken.append(time.perf_counter() - self.due)
            failed = None if status == self._status else LoadError(f"answered {status!r}: {data[:500]!r}")
            waiting = self._waiting
            if waiting is not None and not waiting.done():
                waiting.set_exception(failed) if failed else waiting.set_result(None)
            if failed and not self.finished.done():
                self.finished.set_exception(failed)
                return
            self._next()

    def _answers(self) -> Iterator[bytes]:
        while (end := self._buffer.find(_END_OF_HEAD)) >= 0:
            at = self._buffer.index(_LENGTH) + len(_LENGTH)
            whole = end + len(_END_OF_HEAD) + int(self._buffer[at : self._buffer.index(b"\r", at)])
            if len(self._buffer) < whole:
                return
            status, self._buffer = self._buffer[9:12], self._buffer[whole:]
            yield status

    def _next(self) -> None:
        if self._source is None or self.finished.done():
            return
        request = self._source()
        if request is None:
            self.finished.set_result(None)
        else:
            self.due = time.perf_counter()
            self.send(request)
