"""This process as a node of a cluster: from the moment its ports are known to its last commit.

gRPC listens ── ClusterMember ── Service.join ── Service.start ── register ── requests
draining ── all rows committed ── out of the registry ── ports closed
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, cast

import grpc

from lakelet import __version__
from lakelet.cluster.cluster_keys import ClusterKeys
from lakelet.cluster.cluster_node import ClusterNode, Role
from lakelet.cluster.left_keys import LeftKeys
from lakelet.cluster.membership import Membership
from lakelet.cluster.node_identity import NodeFolder, NodeIdentity
from lakelet.cluster.node_markers import NodeMarkers
from lakelet.cluster.redis.connection import connect_redis
from lakelet.cluster.redis.index_feed import IndexFeed
from lakelet.cluster.redis.leases import RedisLeases
from lakelet.cluster.redis.membership import RedisMembership
from lakelet.cluster.redis.shared_usage import RedisUsage
from lakelet.cluster.redis.table_index import RedisTableIndex
from lakelet.cluster.redis.task_queue import RedisTaskQueue
from lakelet.cluster.redis.turns import RedisTurns
from lakelet.cluster.turn import BlockingTurns
from lakelet.errors import InvalidError, LakeletError
from lakelet.realtime.wal.leftover_logs import leftover_logs, logs_root
from lakelet.service.access.access import is_loopback
from lakelet.service.access.rate_limits import RateLimits
from lakelet.service.peers.absent_nodes import AbsentNodes
from lakelet.service.peers.peer_access import PeerAccess, read_secret
from lakelet.service.peers.peers import PEER_PROTOCOL, Peers
from lakelet.service.peers.shared_limits import SharedLimits
from lakelet.service.peers.shared_tables import SharedTables
from lakelet.service.replicas.replica_calls import ReplicaCalls
from lakelet.service.replicas.replicas import Replicas
from lakelet.service.server_tls import ServerTls
from lakelet.service.service import Service
from lakelet.service.settings import ServiceSettings
from lakelet.service.tables.compaction_worker import CompactionWorker

# How long nodes of a new cluster wait for one another, and how often they look.
_LOOK_SECONDS, _SETTLE_LOOKS = 0.5, 10
# Longer than two looks of other nodes at the registry are apart.
_REGISTRY_SECONDS = 5
_LOG = logging.getLogger(__name__)
_EVERY_ADDRESS = frozenset(("", "0.0.0.0", "::"))


class ClusterMember:
    """A node: `join` and `register` before the service starts, `leave` before ports are closed."""

    def __init__(
        self, service: Service, settings: ServiceSettings, tls: ServerTls | None, limits: RateLimits | None = None
    ) -> None:
        if settings.redis is None or settings.grpc_port is None:
            raise InvalidError("redis: nodes of a cluster reach one another by gRPC; expected a grpc_port")
        self._service = service
        self._settings = settings
        # How other nodes are known.
        self.access = PeerAccess(read_secret(settings.peer_secret_file, is_needed=not is_loopback(settings.host)))
        self._tls = tls
        self._folder = NodeFolder(logs_root(settings.wal_folder))
        self._markers = NodeMarkers(service.lake.table_home("any.any").store)
        self._members: Membership | None = None
        self._peers: Peers | None = None
        self._client: Any = None
        self._feed: IndexFeed | None = None
        self._is_marked = False
        self._worker: CompactionWorker | None = None
        self._limits = limits
        self._shared_limits: SharedLimits | None = None
        self._absent: AbsentNodes | None = None
        # Logs with rows that an earlier process has left.
        self._leftovers: frozenset[str] = frozenset()

    def join(self, grpc_port: int) -> None:
        """Make the service a node, which others reach at this port."""
        settings, identity = self._settings, self._folder.identity
        address = settings.node_address or _reachable(settings.host, grpc_port)
        host = address.rpartition(":")[0] if settings.host in _EVERY_ADDRESS else settings.host
        node = ClusterNode(
            identity.id,
            address,
            role=cast("Role", settings.node_role),
            version=str(__version__),
            protocol=PEER_PROTOCOL,
            rest_address=f"{host}:{settings.port}",
        )
        assert settings.redis is not None
        self._members = self.membership(node, identity)
        credentials = None if self._tls is None else _credentials(self._tls, settings.peer_ca)
        self._peers = Peers(self._members, self.access, self._service.order, credentials=credentials)
        # It connects at its first command.
        self._client = connect_redis(settings.redis)
        turns = RedisTurns(self._client, ClusterKeys(), node.id, settings.redis)
        self._service.maintenance.turns = turns
        queue = RedisTaskQueue(self._client, ClusterKeys(), settings.redis)
        self._service.maintenance.queue = queue
        note = self._service.maintenance.note
        self._worker = CompactionWorker(self._service.lake, self._service.threads, queue, note)
        if self._service.backups is not None:
            self._service.backups.turns = BlockingTurns(turns, asyncio.get_running_loop())
        self._absent = AbsentNodes(self._markers, self._members, self._service.clock)
        calls = ReplicaCalls(self.access, credentials)
        self._service.join(SharedTables(self._service, self._members, self._peers, self._absent, calls))

    def membership(self, node: ClusterNode, identity: NodeIdentity) -> Membership:
        """How this node is known to the others."""
        assert self._settings.redis is not None
        return RedisMembership(
            self._settings.redis,
            node,
            self._service.clock,
            token=identity.token,
            predecessors=identity.predecessors,
            load=self._service.load,
        )

    async def register(self) -> None:
        """Let other nodes know of this one, before it takes any record: whoever does not ask it would miss rows."""
        if self._members is None or self._peers is None or self._absent is None:
            return
        await self._members.start()
        # From here on the others know that this node may have rows, however it ends. Not before: the id may be another's.
        await self._service.in_thread(self._mark)
        self._is_marked = True
        await self._service.in_thread(self._absent.look)
        for _ in range(_SETTLE_LOOKS):
            if self._members.unsettled() is None:
                break
            await asyncio.sleep(_LOOK_SECONDS)
            await self._members.refresh()
        if self._service.shared is not None:
            await self._service.in_thread(self._service.shared.replicas.adoption.resume)
        is_known, _ = await asyncio.gather(self._peers.announce(), self._peers.exchange_clocks())
        if not is_known:
            # Those that did not answer look at the registry by themselves.
            await asyncio.sleep(_REGISTRY_SECONDS)

    async def keep_index(self) -> None:
        """Keep the keys of tables and the limits of callers, and run compaction tasks, from now on."""
        if self._members is None:
            return
        await self._service.in_thread(self._mark_whole)
        keys, lake = ClusterKeys(), self._service.lake
        if self._worker is not None and self._members.node.role != "gateway":
            self._worker.start()
        if self._limits is not None:
            self._shared_limits = SharedLimits(self._limits, RedisUsage(self._client, keys).exchange)
            self._shared_limits.start()
        leases = RedisLeases(self._client, keys, self._members.node.id)
        self._feed = IndexFeed(RedisTableIndex(self._client, keys, leases), lake.table, lake.location)
        await self._feed.start(tuple(opened.table.name for opened in self._service.tables.all()))

    async def leave(self) -> None:
        """Commit all rows, then be no longer one of the nodes: whoever finds this one gone misses nothing."""
        if self._members is not None:
            await self._members.set_status("draining")
            if self._worker is not None:
                await self._worker.stop()
            replicas = None if self._service.shared is None else self._service.shared.replicas
            if replicas is not None:
                replicas.refuse("the node leaves")
            await self._service.commit_all()
            if replicas is not None:
                await self._others_moved(replicas)
            if self._is_marked:
                await self._service.in_thread(self._unmark, self._members.node.id)
            if self._feed is not None:
                await self._feed.stop()
            await self._members.stop()

    def _mark(self) -> None:
        """Let the others know that this node may have rows; logs of an earlier process may have some that nobody else has."""
        assert self._service.shared is not None
        replicas = self._service.shared.replicas
        if self._settings.wal_replicas:
            self._leftovers = frozenset(leftover_logs(self._settings.wal_folder))
            replicas.is_whole = not self._leftovers
        replicas.mark()

    def _mark_whole(self) -> None:
        """Say that all rows are on a second node, once those of an earlier process are committed."""
        assert self._service.shared is not None
        replicas = self._service.shared.replicas
        if self._settings.wal_replicas and not replicas.is_whole:
            replicas.is_whole = not self._leftovers.intersection(leftover_logs(self._settings.wal_folder))
            if replicas.is_whole:
                replicas.mark()

    async def _others_moved(self, replicas: Replicas) -> None:
        """Wait a while until other nodes need nothing any longer that this one holds for them."""
        assert self._members is not None
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._settings.drain_seconds
        while replicas.held.logs and len(self._members.nodes()) > 1 and loop.time() < deadline:
            await asyncio.sleep(_LOOK_SECONDS)
        if replicas.held.logs:
            _LOG.warning("node %s leaves with copies of logs that count, in its folder", self._members.node.id)

    def _unmark(self, id: str) -> None:
        """Let the others know that all rows of this node are committed, if they are."""
        left = leftover_logs(self._settings.wal_folder)
        if left:
            _LOG.error("node %s leaves with rows that are not committed, in %s", id, ", ".join(left))
            return
        try:
            LeftKeys(self._markers.store, self._service.clock).leave(id, self._settings.wal_folder)
            self._markers.remove(id)
        except LakeletError as error:
            _LOG.error("node %s has committed all rows, and its marker stays: %s", id, error)

    async def close(self) -> None:
        """Close connections, and give the folder to another process."""
        if self._service.shared is not None:
            self._service.shared.close()
        if self._peers is not None:
            await self._peers.close()
        if self._shared_limits is not None:
            self._shared_limits.stop()
        if self._client is not None:
            await self._client.aclose()
        self._folder.close()


def _reachable(host: str, port: int) -> str:
    if host in _EVERY_ADDRESS:
        raise InvalidError(
            f"node_address: expected host:port by which other nodes reach this one, for host is {host!r}"
        )
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _credentials(tls: ServerTls, ca: str | None) -> grpc.ChannelCredentials:
    """By which nodes know one another: each shows its certificate, of the CA that is given, or the same one everywhere."""
    files = tls.files
    root = files.certificate
    if ca is not None:
        try:
            with open(ca, "rb") as file:
                root = file.read()
        except OSError as error:
            raise InvalidError(f"peer_ca: {ca} cannot be read: {error.strerror}") from None
    return grpc.ssl_channel_credentials(root, files.key, files.certificate)
