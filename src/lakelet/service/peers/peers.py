"""The other nodes of the cluster, as this one asks them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import grpc

from lakelet.cluster.cluster_node import ClusterNode
from lakelet.cluster.hybrid_clock import HybridClock
from lakelet.cluster.membership import Membership
from lakelet.errors import UnavailableError
from lakelet.protos.message_types import PEER, message_class
from lakelet.realtime.read.pinned_memtables import PinnedMemtable
from lakelet.service.grpc.rpc_calls import NODE
from lakelet.service.peers.forward_lane import ForwardLane, NotSentError
from lakelet.service.peers.peer_access import PeerAccess
from lakelet.service.peers.pinned_rows import memtable_of
from lakelet.service.values import WriteRequest, WriteResult

T = TypeVar("T")
_LOG = logging.getLogger(__name__)
PEER_PROTOCOL = 2
# Rows of a memtable have no limit here. A node that comes back is found soon.
_OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.max_reconnect_backoff_ms", 2_000),
]
_SECONDS = 10.0
# A write waits for it.
_CLAIM_SECONDS = 5.0
# A flush of another node writes files to the store.
_FLUSH_SECONDS = 120.0
# How often nodes that have come meanwhile are asked, too.
MOST_ROUNDS = 4


@dataclass(frozen=True, slots=True)
class PinnedElsewhere:
    """What other nodes have buffered of a table, and which of them did not answer."""

    memtables: tuple[PinnedMemtable, ...] = ()
    missing: tuple[str, ...] = ()
    # Nodes that have answered, or are missing.
    asked: frozenset[str] = frozenset()


class Peers:
    """Asks other nodes, all at the same time; used on the event loop alone."""

    def __init__(
        self,
        members: Membership,
        access: PeerAccess,
        order: HybridClock,
        seconds: float = _SECONDS,
        credentials: grpc.ChannelCredentials | None = None,
    ) -> None:
        self._credentials = credentials
        self._members = members
        # By which writes of this node are ordered; other nodes tell theirs.
        self._order = order
        self._lanes: dict[tuple[str, str], ForwardLane] = {}
        self.access = access
        self._seconds = seconds
        self._channels: dict[str, grpc.aio.Channel] = {}

    @property
    def own(self) -> str:
        """The id of this node; for any thread."""
        return self._members.node.id

    @property
    def are_there(self) -> bool:
        """Whether there are other nodes; for any thread."""
        own = self._members.node.id
        return any(node.id != own for node in self._members.nodes())

    def unasked(self, asked: frozenset[str]) -> bool:
        """Whether there are other nodes than those that were asked; for any thread."""
        own = self._members.node.id
        return any(node.id != own and node.id not in asked for node in self._members.nodes())

    async def pinned(self, table: str, identity: str, besides: frozenset[str] = frozenset()) -> PinnedElsewhere:
        """The rows of a table that other nodes, `besides` some, have acknowledged and may not have committed."""

        async def ask(node: ClusterNode) -> list[PinnedMemtable]:
            request = message_class("lakelet.peer.v1.PinBuffersRequest")(table=table)
            call = self._stub(node, "PinBuffers", "PinnedRows", is_stream=True)(
                request, timeout=self._seconds, metadata=self._metadata(node)
            )
            # Rows of a table that was dropped and created again are not of this one.
            return [memtable_of(one) async for one in call if one.table_identity == identity]

        found = await self._ask_all(ask, besides)
        memtables = tuple(one for answer in found.answers for one in answer)
        return PinnedElsewhere(memtables, found.missing, found.asked)

    def unsettled(self) -> str | None:
        """Why nodes may be missing among those that are asked; for any thread."""
        return self._members.unsettled()

    async def announce(self) -> bool:
        """Have all other nodes know of this one before it takes records; whether all have answered."""

        async def ask(node: ClusterNode) -> None:
            request = message_class("lakelet.peer.v1.AnnounceRequest")(node=self._members.node.id)
            call = self._stub(node, "Announce", "TableResponse")
            await call(request, timeout=self._seconds, metadata=self._metadata(node))

        return not (await self._ask_all(ask)).missing

    def owns(self, request: WriteRequest) -> bool:
        """Whether this node is the one that orders the writes of a record's id."""
        return self._members.owner(request.table, request.record.id).id == self._members.node.id

    async def forward(self, request: WriteRequest, caller: str) -> WriteResult | None:
        """Have the node that owns a record write it; None where that is this one, or one that cannot be reached."""
        owner = self._members.owner(request.table, request.record.id)
        if owner.id == self._members.node.id or owner.protocol != PEER_PROTOCOL:
            return None
        place = (owner.id, owner.address)
        lane = self._lanes.get(place)
        if lane is None:
            channel, metadata = self._channel(owner), self._metadata(owner)
            lane = ForwardLane(owner, channel, metadata, self._order, lambda: self._members.epoch)
            self._lanes[place] = lane
        try:
            return await lane.write(request, caller)
        except NotSentError:
            return None

    async def claim_keys(self, request: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
        """What all other nodes know of requests with keys, by their ids, and why some did not answer."""

        async def ask(node: ClusterNode) -> tuple[str, Any]:
            call = self._stub(node, "ClaimKeys", "ClaimKeysResponse")
            seconds = min(self._seconds, _CLAIM_SECONDS)
            return node.id, await call(request, timeout=seconds, metadata=self._metadata(node))

        found = await self._ask_all(ask)
        return dict(found.answers), found.missing

    async def exchange_clocks(self, besides: frozenset[str] = frozenset()) -> None:
        """Learn the clocks of all other nodes, `besides` some, and tell them this one's. Before a write that is ordered here, so
        that it wins against all that were acknowledged anywhere; after it, so that those to come win against it."""

        async def ask(node: ClusterNode) -> None:
            request = message_class("lakelet.peer.v1.HybridClock")(clock=self._order.last)
            call = self._stub(node, "ExchangeClocks", "HybridClock")
            asked_ms = self._order.now_ms()
            found = await call(request, timeout=self._seconds, metadata=self._metadata(node))
            self._order.observe(found.clock)
            self._order.follow(found.now_ms, found.ahead_ms, asked_ms)

        await self._ask_all(ask, besides)

    def run_fragment(self, node: ClusterNode, request: Any, seconds: float) -> Any:
        """The call that has a node run a fragment of a query, whose rows come as a stream."""
        call = self._stub(node, "RunFragment", "FragmentRows", is_stream=True)
        return call(request, timeout=seconds, metadata=self._metadata(node))

    async def flush(self, table: str, besides: frozenset[str] = frozenset()) -> frozenset[str]:
        """Have all other nodes, `besides` some, commit what they have buffered of a table; which ones have. UnavailableError
        where one cannot."""
        request = message_class("lakelet.peer.v1.TableRequest")(table=table)
        return await self._demand("FlushTable", request, f"rows of table {table!r}", besides)

    async def leave(self, table: str, *, is_deleted: bool) -> None:
        """Have all other nodes commit what they have buffered of a table, and serve it no more."""
        request = message_class("lakelet.peer.v1.LeaveTableRequest")(table=table, is_deleted=is_deleted)
        await self._demand("LeaveTable", request, f"rows of table {table!r}")

    async def close(self) -> None:
        """Close all connections."""
        channels, self._channels = self._channels, {}
        self._lanes.clear()
        for one in channels.values():
            await one.close()

    async def _demand(
        self, method: str, request: Any, what: str, besides: frozenset[str] = frozenset()
    ) -> frozenset[str]:
        async def ask(node: ClusterNode) -> None:
            call = self._stub(node, method, "TableResponse")
            await call(request, timeout=_FLUSH_SECONDS, metadata=self._metadata(node))

        found = await self._ask_all(ask, besides)
        if found.missing:
            raise UnavailableError(f"{'; '.join(found.missing)}: it may have {what} that are not committed")
        return found.asked

    async def _ask_all(
        self, ask: Callable[[ClusterNode], Awaitable[T]], besides: frozenset[str] = frozenset()
    ) -> _Answers[T]:
        """The answers of all other nodes, and why others did not answer. Of those that are gone meanwhile nothing is said: they
        have left, or their markers tell of them."""
        own = self._members.node.id
        others = [node for node in self._members.nodes() if node.id != own and node.id not in besides]
        if not others:
            return _Answers([], (), frozenset())
        found = await asyncio.gather(*(self._ask_one(node, ask) for node in others))
        failed = [(node, one) for node, one in zip(others, found, strict=True) if isinstance(one, _NoAnswer)]
        if failed:
            await self._members.refresh()
            left = {node.id for node in self._members.nodes()}
            failed = [(node, one) for node, one in failed if node.id in left]
        answered = [(node.id, one) for node, one in zip(others, found, strict=True) if not isinstance(one, _NoAnswer)]
        return _Answers(
            [one for _, one in answered],
            tuple(f"node {node.id} at {node.address} {one.reason}" for node, one in failed),
            frozenset((*(id for id, _ in answered), *(node.id for node, _ in failed))),
        )

    async def _ask_one(self, node: ClusterNode, ask: Callable[[ClusterNode], Awaitable[T]]) -> T | _NoAnswer:
        if node.protocol != PEER_PROTOCOL:
            return _NoAnswer(f"speaks protocol {node.protocol} of nodes, expected {PEER_PROTOCOL}")
        try:
            return await ask(node)
        except grpc.aio.AioRpcError as error:
            _LOG.warning("node %s at %s: %s %s", node.id, node.address, error.code().name, error.details())
            return _NoAnswer(f"does not answer ({error.code().name})")

    def _stub(self, node: ClusterNode, method: str, answer: str, *, is_stream: bool = False) -> Any:
        channel = self._channel(node)
        made = channel.unary_stream if is_stream else channel.unary_unary
        return made(
            f"/{PEER}/{method}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=message_class(f"lakelet.peer.v1.{answer}").FromString,
        )

    def _channel(self, node: ClusterNode) -> grpc.aio.Channel:
        channel = self._channels.get(node.address)
        if channel is None:
            if self._credentials is None:
                channel = grpc.aio.insecure_channel(node.address, options=_OPTIONS)
            else:
                channel = grpc.aio.secure_channel(node.address, self._credentials, options=_OPTIONS)
            self._channels[node.address] = channel
        return channel

    def _metadata(self, node: ClusterNode) -> tuple[tuple[str, str], ...]:
        """Who calls, and whom: another node may have the address by now, and would answer twice."""
        text, called = self.access.authorization, (NODE, node.id)
        return (called,) if text is None else (called, ("authorization", text))


@dataclass(frozen=True, slots=True)
class _Answers(Generic[T]):
    """What nodes answered, why others did not, and the ids of both."""

    answers: list[T]
    missing: tuple[str, ...]
    asked: frozenset[str]


@dataclass(frozen=True, slots=True)
class _NoAnswer:
    """Why a node did not answer."""

    reason: str
