"""The sockets of `lakelet serve`."""

import asyncio
import socket

from lakelet.service.server import _listener


def test_connections_send_small_packets_at_once() -> None:
    async def accepted_without_delay() -> bool:
        accepted: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        class Served(asyncio.Protocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                one = transport.get_extra_info("socket")
                accepted.set_result(bool(one.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)))

        with _listener("127.0.0.1", 0) as listener:
            server = await asyncio.get_running_loop().create_server(Served, sock=listener)
            _, writer = await asyncio.open_connection(*listener.getsockname())
            answer = await accepted
            writer.close()
            server.close()
        return answer

    assert asyncio.run(accepted_without_delay())
