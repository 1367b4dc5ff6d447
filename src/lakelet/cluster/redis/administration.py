"""What an administrator does to a cluster from outside of it: list nodes, decommission them, repair keys."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import redis.asyncio as redis_async

from lakelet.cluster.cluster_keys import ClusterKeys
from lakelet.cluster.cluster_node import ClusterNode, Status
from lakelet.cluster.redis.connection import REDIS_FAILURES, connect_redis, redis_error
from lakelet.cluster.redis.leases import RedisLeases
from lakelet.cluster.redis.node_registry import NodeRegistry
from lakelet.cluster.redis.repair import RepairReport, repair_keys
from lakelet.cluster.redis.table_index import RedisTableIndex
from lakelet.errors import ConflictError, NotFoundError
from lakelet.ids import Ids, RandomIds
from lakelet.table import Table

_ALIVE_SECONDS = 60.0
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class ListedNode:
    """A registered node; without a report where its liveness key has expired."""

    id: str
    address: str
    report: ClusterNode | None
    # What an administrator asked it to be, if it is not that yet.
    asked: str | None


class RedisAdministration:
    """Commands on a cluster, each over a connection of its own. What Redis does wrong is an error of our kinds."""

    def __init__(self, url: str, keys: ClusterKeys | None = None, ids: Ids | None = None) -> None:
        self._url = url
        self._keys = keys or ClusterKeys()
        self._ids = ids or RandomIds()

    def nodes(self) -> list[ListedNode]:
        """All registered nodes, ordered by id."""

        async def read(client: redis_async.Redis) -> list[ListedNode]:
            found = await NodeRegistry(client, self._keys, alive_seconds=_ALIVE_SECONDS).read()
            listed = []
            for id, address in sorted(found.services.items()):
                report = found.nodes.get(id)
                asked = found.requested.get(id)
                is_done = asked is None or (report is not None and report.status == asked)
                listed.append(ListedNode(id, address, report, None if is_done else asked))
            return listed

        return self._run(read)

    def ask(self, node: str, status: Status) -> None:
        """Ask a node to drain, or to be active again; NotFoundError for one that is not registered."""

        async def write(client: redis_async.Redis) -> None:
            registry = NodeRegistry(client, self._keys, alive_seconds=_ALIVE_SECONDS)
            known = (await registry.read()).services
            if node not in known:
                raise NotFoundError(f"node {node!r} is not registered; there are {', '.join(sorted(known)) or 'none'}")
            await registry.request_status(node, status)

        self._run(write)

    def forget(self, node: str, *, is_known: bool) -> None:
        """Remove what Redis has of a node that will not return; ConflictError for one that is live, NotFoundError for one that is
        neither registered nor known otherwise."""

        async def write(client: redis_async.Redis) -> None:
            found = await NodeRegistry(client, self._keys, alive_seconds=_ALIVE_SECONDS).read()
            if node in found.nodes:
                raise ConflictError(
                    f"node {node!r} is live, or was a minute ago, at {found.nodes[node].address}: stop it first"
                )
            if not is_known and node not in found.services and node not in found.requested:
                raise NotFoundError(f"node {node!r} is not known: neither registered nor marked in the warehouse")
            await client.hdel(self._keys.services, node)
            await client.hdel(self._keys.decommission, node)

        self._run(write)

    def repair(self, tables: Sequence[tuple[str, Table]], *, dry_run: bool = False) -> RepairReport:
        """Compare the keys of all served tables with the tables, and rebuild them."""

        async def run(client: redis_async.Redis) -> RepairReport:
            leases = RedisLeases(client, self._keys, f"repair-{self._ids.uuid()}")
            index = RedisTableIndex(client, self._keys, leases)
            return await repair_keys(client, self._keys, index, tables, dry_run=dry_run)

        return self._run(run)

    def _run(self, command: Callable[[redis_async.Redis], Awaitable[_Result]]) -> _Result:
        async def run() -> _Result:
            async with connect_redis(self._url) as client:
                return await command(client)

        try:
            return asyncio.run(run())
        except REDIS_FAILURES as error:
            raise redis_error(error, self._url) from error
