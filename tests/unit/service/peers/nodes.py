"""Nodes of one cluster in this process: services over one warehouse that ask one another by gRPC."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lakelet.catalog.connect import connect
from lakelet.clock import Clock, SystemClock
from lakelet.cluster.cluster_node import ClusterNode, Status
from lakelet.cluster.hash_ring import HashRing
from lakelet.cluster.left_keys import LeftKeys
from lakelet.cluster.node_markers import MarkedNode, NodeMarkers
from lakelet.service.access.access import Access
from lakelet.service.access.caller import ANYBODY
from lakelet.service.grpc.grpc_server import GrpcServer
from lakelet.service.ingest.record import record_of
from lakelet.service.ingest.request_keys import request_key
from lakelet.service.peers.absent_nodes import AbsentNodes
from lakelet.service.peers.peer_access import PeerAccess
from lakelet.service.peers.peers import PEER_PROTOCOL, Peers
from lakelet.service.peers.shared_tables import SharedTables
from lakelet.service.query.query_engine import QueryRequest
from lakelet.service.service import Service
from lakelet.service.settings import ServiceSettings
from lakelet.service.values import (
    BatchRequest,
    CreateTableRequest,
    Record,
    RequestKey,
    TableConfig,
    WriteRequest,
    WriteResult,
)
from lakelet.storage.store import ObjectStore


@dataclass
class Town:
    """All nodes, as every one of them knows them."""

    nodes: dict[str, ClusterNode] = field(default_factory=dict)
    # What a refresh finds gone.
    gone: set[str] = field(default_factory=set)
    unsettled: str | None = None
    refreshes: int = 0
    epoch: int = 0
    # What each node knows of dead ones.
    absent: list[AbsentNodes] = field(default_factory=list)


class StaticMembership:
    """A membership that a test decides."""

    def __init__(self, town: Town, id: str) -> None:
        self._town = town
        self._id = id

    @property
    def node(self) -> ClusterNode:
        return self._town.nodes.get(self._id) or ClusterNode(self._id, "127.0.0.1:1", protocol=PEER_PROTOCOL)

    @property
    def epoch(self) -> int:
        return self._town.epoch

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def set_status(self, status: Status) -> None: ...

    async def refresh(self) -> None:
        self._town.refreshes += 1
        for id in self._town.gone:
            self._town.nodes.pop(id, None)

    def nodes(self) -> tuple[ClusterNode, ...]:
        return tuple(self._town.nodes.values())

    def owner(self, table: str, id: str) -> ClusterNode:
        found = HashRing.of(self._town.nodes).owner(table, id)
        return self._town.nodes[found] if found else self.node

    def unsettled(self) -> str | None:
        return self._town.unsettled

    def problem(self) -> str | None:
        return None


@dataclass
class Node:
    """One node that runs."""

    name: str
    service: Service
    server: GrpcServer
    shared: SharedTables
    access: PeerAccess
    town: Town

    async def unplug(self) -> None:
        """Answer nobody any more, and keep what is in the log; other nodes take it for live."""
        await self.server.stop(0)

    async def die(self) -> None:
        """Answer nobody any more, and be found dead."""
        marked = MarkedNode(self.name, replicas=self.service.settings.wal_replicas)
        await self.service.in_thread(NodeMarkers(self._store).put, marked)
        for one in self.town.absent:
            await self.service.in_thread(one.look)
        await self.unplug()
        self.town.nodes.pop(self.name, None)
        self.town.epoch += 1

    async def come_back(self) -> None:
        """Answer again, at another port."""
        self.server = GrpcServer(self.service, Access(None), peer_access=self.access)
        port = await self.server.start("127.0.0.1", 0)
        self.town.nodes[self.name] = ClusterNode(self.name, f"127.0.0.1:{port}", protocol=PEER_PROTOCOL)
        self.town.epoch += 1

    async def leave(self) -> None:
        """End as a node does that is told to."""
        await self.service.commit_all()
        left = LeftKeys(self._store, self.service.clock)
        await self.service.in_thread(left.leave, self.name, self.service.settings.wal_folder)
        await self.service.in_thread(NodeMarkers(self._store).remove, self.name)
        self.town.nodes.pop(self.name, None)
        self.town.epoch += 1
        for one in self.town.absent:
            await self.service.in_thread(one.look)
        await self.server.stop(0)

    @property
    def _store(self) -> ObjectStore:
        return self.service.lake.table_home("any.any").store

    async def send(
        self, key: str, table: str, *given: tuple[str, dict[str, Any]], is_first: bool = False
    ) -> WriteResult:
        """Write records under an idempotency key, one of them as a record and more as a batch."""
        records = [_record(id, payload) for id, payload in given]
        made: RequestKey = request_key(key, repr(given).encode(), is_first=is_first)
        if len(records) == 1:
            return await self.service.write(WriteRequest(table, records[0], made), ANYBODY)
        return await self.service.write_batch(BatchRequest(table, records, False, made), ANYBODY)

    async def create(self, name: str, **properties: str) -> None:
        config = TableConfig(properties=properties)
        await self.service.create_table(CreateTableRequest(name, config), ANYBODY)

    async def write(self, table: str, id: str, **payload: Any) -> None:
        await self.service.write(WriteRequest(table, _record(id, payload)), ANYBODY)

    async def write_batch(self, table: str, *given: tuple[str, dict[str, Any]]) -> None:
        records = [_record(id, payload) for id, payload in given]
        await self.service.write_batch(BatchRequest(table, records, False), ANYBODY)

    async def rows(self, sql: str) -> str:
        return await self.service.query_json(QueryRequest(sql), ANYBODY)


def _record(id: str, payload: dict[str, Any]) -> Record:
    return record_of({"id": id, "timestamp": "2026-01-31T10:00:00Z", "payload": payload})


@asynccontextmanager
async def cluster(
    folder: Path,
    names: Sequence[str] = ("one", "two"),
    secrets: dict[str, str] | None = None,
    clocks: dict[str, Clock] | None = None,
    **settings: Any,
) -> AsyncIterator[tuple[Town, list[Node]]]:
    """Nodes that run over one warehouse, each with logs of its own."""
    town, nodes = Town(), []
    async with AsyncExitStack() as stack:
        for name in names:
            known = ServiceSettings(warehouse=str(folder / "lake"), wal_folder=str(folder / f"wal-{name}"), **settings)
            members = StaticMembership(town, name)
            access = PeerAccess((secrets or {}).get(name))
            clock = (clocks or {}).get(name) or SystemClock()
            service = Service(connect(known.warehouse), known, clock)
            peers = Peers(members, access, service.order, seconds=60)
            absent = AbsentNodes(NodeMarkers(service.lake.table_home("any.any").store), members, clock)
            town.absent.append(absent)
            shared = SharedTables(service, members, peers, absent)
            service.join(shared)
            server = GrpcServer(service, Access(None), peer_access=access)
            port = await server.start("127.0.0.1", 0)
            town.nodes[name] = ClusterNode(name, f"127.0.0.1:{port}", protocol=PEER_PROTOCOL)
            await service.start()
            node = Node(name, service, server, shared, access, town)
            stack.push_async_callback(peers.close)
            stack.push_async_callback(node.unplug)
            stack.push_async_callback(service.stop)
            stack.callback(shared.close)
            nodes.append(node)
        yield town, nodes
