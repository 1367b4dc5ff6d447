"""`lakelet.peer.v1.PeerService`: what this node answers to other nodes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from functools import partial
from typing import Any

import msgspec

from lakelet.error_codes import codes_of
from lakelet.errors import InternalError, LakeletError, OverloadedError, UnavailableError
from lakelet.format.wal.wal_group import WalKey
from lakelet.protos.message_types import message_class
from lakelet.service.grpc.rpc_calls import Call
from lakelet.service.peers.forward_lane import NOT_TAKEN
from lakelet.service.peers.pinned_rows import messages_of
from lakelet.service.peers.shared_tables import SharedTables
from lakelet.service.service import Service
from lakelet.service.values import Record, RequestKey, WriteRequest, WriteResult

_LOG = logging.getLogger(__name__)


class _NotTakenError(Exception):
    """This node takes no records: it starts or stops."""


class PeerEdge:
    """The methods of the service, by the names of their RPCs."""

    open_methods: frozenset[str] = frozenset()

    def __init__(self, service: Service) -> None:
        self._service = service

    def _shared(self, call: Call) -> SharedTables:
        """What this node shares, if it is the one that is called: an address may have been another node's before."""
        shared = self._service.shared
        if shared is None:
            raise UnavailableError("the node is starting")
        if call.node not in (None, shared.members.node.id):
            raise UnavailableError(f"node {shared.members.node.id} has the address that node {call.node} had")
        return shared

    async def pin_buffers(self, message: Any, call: Call) -> AsyncIterator[Any]:
        """The rows of a table that are not known to be committed."""
        identity, pinned = await self._shared(call).pin_buffers(message.table)
        for one in messages_of(identity, pinned):
            yield one

    async def forward_writes(self, message: Any, call: Call) -> Any:
        """Write records that this node owns, each for itself."""
        order = self._service.order
        order.observe(message.clock)
        try:
            self._shared(call).note_epoch(message.epoch)
        except UnavailableError:
            # Nothing is written: the sender writes them itself.
            results = [_result(_NotTakenError()) for _ in message.writes]
            return message_class("lakelet.peer.v1.ForwardWritesResponse")(results=results, clock=order.last)
        writes = [self._written(one) for one in message.writes]
        found = await asyncio.gather(*writes, return_exceptions=True)
        return message_class("lakelet.peer.v1.ForwardWritesResponse")(
            results=[_result(one) for one in found], clock=order.last
        )

    async def _written(self, message: Any) -> WriteResult:
        if not self._service.is_running:
            raise _NotTakenError
        payload = msgspec.json.decode(message.payload)
        record = Record(message.id, message.timestamp_us, payload)
        key: RequestKey | None = None
        if message.idempotency_key:
            key = RequestKey(message.idempotency_key, message.fingerprint, message.is_first)
        request = WriteRequest(message.table, record, key)
        return await self._service.write_owned(request, message.caller)

    async def run_fragment(self, message: Any, call: Call) -> AsyncIterator[Any]:
        """The rows of a fragment of a query that another node was asked."""
        async with aclosing(self._shared(call).fragments.run(message)) as rows:
            async for one in rows:
                yield one

    async def announce(self, message: Any, call: Call) -> Any:
        """Look at the registry, in which a node is new."""
        await self._shared(call).look_at_nodes(message.node)
        return message_class("lakelet.peer.v1.TableResponse")()

    async def claim_keys(self, message: Any, call: Call) -> Any:
        """What this node knows of requests that another one is about to write."""
        return await self._shared(call).claimed_keys(message)

    async def exchange_clocks(self, message: Any, call: Call) -> Any:
        """Learn the clock of another node, and tell one's own."""
        self._shared(call)
        order = self._service.order
        order.observe(message.clock)
        made = message_class("lakelet.peer.v1.HybridClock")
        return made(clock=order.last, now_ms=order.now_ms(), ahead_ms=order.ahead_ms)

    async def flush_table(self, message: Any, call: Call) -> Any:
        """Commit what is buffered of a table."""
        await self._shared(call).flush_table(message.table)
        return message_class("lakelet.peer.v1.TableResponse")()

    async def leave_table(self, message: Any, call: Call) -> Any:
        """Commit what is buffered of a table, and serve it no more."""
        await self._shared(call).leave_table(message.table, is_deleted=message.is_deleted)
        return message_class("lakelet.peer.v1.TableResponse")()

    async def open_copy(self, message: Any, call: Call) -> Any:
        """Begin a copy of another node's logs."""
        copy, held = message.copy, self._shared(call).replicas.held
        await self._replicas(call, held.open, copy.origin, copy.token, message.table_identity, message.table)
        return message_class("lakelet.peer.v1.CopyResponse")()

    async def append_copy(self, message: Any, call: Call) -> Any:
        """Write bytes of another node's log."""
        copy, held = message.copy, self._shared(call).replicas.held
        append = partial(held.append, durable=message.is_durable)
        await self._replicas(call, append, copy.origin, copy.token, message.log, message.offset, message.data)
        return message_class("lakelet.peer.v1.CopyResponse")()

    async def drop_logs(self, message: Any, call: Call) -> Any:
        """Delete logs of another node whose rows are committed."""
        copy, held = message.copy, self._shared(call).replicas.held
        keys = [WalKey(one.name, one.time_ms, one.note) for one in message.keys]
        await self._replicas(call, held.drop_logs, copy.origin, copy.token, message.through, keys)
        return message_class("lakelet.peer.v1.CopyResponse")()

    async def drop_copy(self, message: Any, call: Call) -> Any:
        """Delete a copy of another node's logs."""
        await self._replicas(call, self._shared(call).replicas.held.drop, message.origin, message.token)
        return message_class("lakelet.peer.v1.CopyResponse")()

    async def _replicas(self, call: Call, work: Callable[..., None], *arguments: object) -> None:
        """Work of disks, in threads of its own: writes of other nodes wait for it."""
        threads = self._shared(call).replicas.threads
        await asyncio.get_running_loop().run_in_executor(threads, work, *arguments)


def _result(outcome: WriteResult | BaseException) -> Any:
    """What became of a record, for the node that was sent it."""
    made = message_class("lakelet.peer.v1.ForwardedResult")
    if isinstance(outcome, WriteResult):
        return made(rest_values=outcome.rest_values, repeated_request=outcome.repeated)
    if isinstance(outcome, _NotTakenError):
        return made(code=NOT_TAKEN)
    if not isinstance(outcome, LakeletError):
        _LOG.error("a forwarded record was not written: %s", outcome, exc_info=outcome)
        outcome = InternalError("the node that owns the record failed; its log says why")
    seconds = outcome.retry_after_seconds if isinstance(outcome, OverloadedError) else 0.0
    return made(code=codes_of(outcome).code, message=str(outcome), retry_after_seconds=seconds)
