"""This process as a node of a cluster: from the moment its ports are known to its last commit.

gRPC listens ── ClusterMember ── Service.join ── Service.start ── register ── requests
draining ── all rows committed ── out of the registry ── ports closed
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

import grpc

from lakelet import __version__
from lakelet.cluster.cluster_keys import ClusterKeys
from lakelet.cluster.cluster_node import ClusterNode
from lakelet.cluster.membership import Membership
from lakelet.cluster.node_identity import NodeFolder
from lakelet.cluster.redis.connection import connect_redis
from lakelet.cluster.redis.index_feed import IndexFeed
from lakelet.cluster.redis.leases import RedisLeases
from lakelet.cluster.redis.membership import RedisMembership
from lakelet.cluster.redis.table_index import RedisTableIndex
from lakelet.errors import InvalidError
from lakelet.realtime.settings import wal_path
from lakelet.service.access.access import is_loopback
from lakelet.service.peers.peer_access import PeerAccess, read_secret
from lakelet.service.peers.peers import PEER_PROTOCOL, Peers
from lakelet.service.peers.shared_tables import SharedTables
from lakelet.service.server_tls import ServerTls
from lakelet.service.service import Service
from lakelet.service.settings import ServiceSettings

# How long nodes of a new cluster wait for one another, and how often they look.
_LOOK_SECONDS, _SETTLE_LOOKS = 0.5, 10
# Longer than two looks of other nodes at the registry are apart.
_REGISTRY_SECONDS = 5
_EVERY_ADDRESS = frozenset(("", "0.0.0.0", "::"))


class ClusterMember:
    """A node: `join` and `register` before the service starts, `leave` before ports are closed."""

    def __init__(self, service: Service, settings: ServiceSettings, tls: ServerTls | None) -> None:
        if settings.redis is None or settings.grpc_port is None:
            raise InvalidError("redis: nodes of a cluster reach one another by gRPC; expected a grpc_port")
        self._service = service
        self._settings = settings
        # How other nodes are known.
        self.access = PeerAccess(read_secret(settings.peer_secret_file, is_needed=not is_loopback(settings.host)))
        self._tls = tls
        # The folder that the logs of all tables are in.
        self._folder = NodeFolder(os.path.dirname(wal_path(settings.wal_folder, "any")))
        self._members: Membership | None = None
        self._peers: Peers | None = None
        self._client: Any = None
        self._feed: IndexFeed | None = None

    def join(self, grpc_port: int) -> None:
        """Make the service a node, which others reach at this port."""
        settings, identity = self._settings, self._folder.identity
        node = ClusterNode(
            identity.id,
            settings.node_address or _reachable(settings.host, grpc_port),
            version=str(__version__),
            protocol=PEER_PROTOCOL,
            rest_address=f"{settings.host}:{settings.port}",
        )
        assert settings.redis is not None
        self._members = RedisMembership(
            settings.redis,
            node,
            self._service.clock,
            token=identity.token,
            predecessors=identity.predecessors,
            load=self._service.load,
        )
        credentials = None if self._tls is None else _credentials(self._tls, settings.peer_ca)
        self._peers = Peers(self._members, self.access, self._service.order, credentials=credentials)
        self._service.join(SharedTables(self._service, self._members, self._peers))

    async def register(self) -> None:
        """Let other nodes know of this one, before it takes any record: whoever does not ask it would miss rows."""
        if self._members is None or self._peers is None:
            return
        await self._members.start()
        for _ in range(_SETTLE_LOOKS):
            if self._members.unsettled() is None:
                break
            await asyncio.sleep(_LOOK_SECONDS)
            await self._members.refresh()
        if not await self._peers.announce():
            # Those that did not answer look at the registry by themselves.
            await asyncio.sleep(_REGISTRY_SECONDS)

    async def keep_index(self) -> None:
        """Keep the keys of tables from now on."""
        if self._members is None or self._settings.redis is None:
            return
        keys, lake = ClusterKeys(), self._service.lake
        self._client = connect_redis(self._settings.redis)
        leases = RedisLeases(self._client, keys, self._members.node.id)
        self._feed = IndexFeed(RedisTableIndex(self._client, keys, leases), lake.table, lake.location)
        await self._feed.start(tuple(opened.table.name for opened in self._service.tables.all()))

    async def leave(self) -> None:
        """Commit all rows, then be no longer one of the nodes: whoever finds this one gone misses nothing."""
        if self._members is not None:
            await self._members.set_status("draining")
            await self._service.commit_all()
            if self._feed is not None:
                await self._feed.stop()
            await self._members.stop()

    async def close(self) -> None:
        """Close connections, and give the folder to another process."""
        if self._service.shared is not None:
            self._service.shared.close()
        if self._peers is not None:
            await self._peers.close()
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
