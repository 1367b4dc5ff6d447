"""A client that reads slowly holds up its query: what it has not taken is not piled up in memory."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from lakelet.protos.message_types import LAKELET, message_class
from lakelet.service.access.access import Access
from lakelet.service.query_answer import arrow_parts
from lakelet.service.rest.app import RestApp
from lakelet.service.server import _listener, _RestServer
from lakelet.service.service import Service
from tests.unit.service.grpc.running_service import running

ROWS_FOR_EVER = "SELECT a.range AS n FROM range(100000000000) a"
# The system's buffers of two sockets are part of it, and a part on its way.
MOST_BYTES = 48 << 20
NO_LIMITS = {"query_rows": 10**12, "query_bytes": 1 << 40, "query_seconds": 86_400}


@asynccontextmanager
async def _rest(service: Service, _: Any) -> AsyncIterator[Callable[[], Awaitable[int]]]:
    """How many bytes of an endless answer each call reads, by a socket."""
    server = _RestServer(RestApp(service, Access(None)), service.settings, None)
    listener = _listener("127.0.0.1", 0)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    port = listener.getsockname()[1]
    body = json.dumps({"sql": ROWS_FOR_EVER}).encode()
    head = (
        f"POST /v1/query HTTP/1.1\r\nhost: localhost:{port}\r\naccept: application/vnd.apache.arrow.stream\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(head.encode() + body)

    async def read() -> int:
        return len(await reader.readexactly(1 << 16))

    try:
        yield read
    finally:
        writer.close()
        server.end()
        await serving


@asynccontextmanager
async def _grpc(_: Service, channel: Any) -> AsyncIterator[Callable[[], Awaitable[int]]]:
    """How many bytes of an endless answer each call reads, by a channel."""
    call = channel.unary_stream(
        f"/{LAKELET}/QueryArrow",
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=message_class("lakelet.v1.QueryArrowResponse").FromString,
    )(message_class("lakelet.v1.QueryArrowRequest")(sql=ROWS_FOR_EVER))

    async def read() -> int:
        return len((await call.read()).arrow)

    try:
        yield read
    finally:
        call.cancel()


@pytest.mark.parametrize("edge", [_rest, _grpc], ids=["rest", "grpc"])
def test_a_slow_reader_gets_no_more_made_than_it_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, edge: Any
) -> None:
    given, is_asked = 0, False

    def counted(*arguments: Any) -> Iterator[bytes]:
        nonlocal given, is_asked
        with closing(arrow_parts(*arguments)) as parts:
            for part in parts:
                given, is_asked = given + len(part), False
                yield part
                is_asked = True

    async def run() -> None:
        monkeypatch.setattr("lakelet.service.service.arrow_parts", counted)
        async with running(tmp_path, **NO_LIMITS) as (service, channel), edge(service, channel) as read:
            taken = 0
            for _ in range(4):
                taken += await read()
                before = -1
                # Until nobody asks for more, however often all who could have their turns.
                while is_asked or before != given:
                    before = given
                    for _ in range(500):
                        await asyncio.sleep(0)
                    assert given - taken < MOST_BYTES
            # It goes on where it was held up.
            held = given
            while given == held:
                taken += await read()

    asyncio.run(run())
