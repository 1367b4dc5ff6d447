"""`lakelet.peer.v1.PeerService`: what this node answers to other nodes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from lakelet.service.grpc.message_types import message_class
from lakelet.service.grpc.rpc_calls import Call
from lakelet.service.peers.pinned_rows import messages_of
from lakelet.service.service import Service


class PeerEdge:
    """The methods of the service, by the names of their RPCs."""

    open_methods: frozenset[str] = frozenset()

    def __init__(self, service: Service) -> None:
        self._service = service

    async def pin_buffers(self, message: Any, _: Call) -> AsyncIterator[Any]:
        """The rows of a table that are not known to be committed."""
        identity, pinned = await self._service.pin_buffers(message.table)
        for one in messages_of(identity, pinned):
            yield one

    async def flush_table(self, message: Any, _: Call) -> Any:
        """Commit what is buffered of a table."""
        await self._service.flush_table(message.table)
        return message_class("lakelet.peer.v1.TableResponse")()

    async def leave_table(self, message: Any, _: Call) -> Any:
        """Commit what is buffered of a table, and serve it no more."""
        await self._service.leave_table(message.table, is_deleted=message.is_deleted)
        return message_class("lakelet.peer.v1.TableResponse")()
