"""Nodes of a cluster in this process that join, leave, are killed and come back, each with its logs in a folder of its own."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import grpc

from lakelet.catalog.connect import connect
from lakelet.clock import SystemClock
from lakelet.cluster.cluster_node import ClusterNode
from lakelet.cluster.membership import Membership
from lakelet.cluster.node_identity import NodeIdentity
from lakelet.errors import InvalidError, LakeletError, UnavailableError
from lakelet.realtime.row_writer import RowWriter
from lakelet.service.access.access import Access
from lakelet.service.grpc.grpc_server import GrpcServer
from lakelet.service.peers.cluster_member import ClusterMember
from lakelet.service.service import Service
from lakelet.service.settings import ServiceSettings
from tests.property.service.churn.churning_registry import ChurningMembership, Registry
from tests.unit.realtime.written_table import kill

T = TypeVar("T")


class SkewedClock(SystemClock):
    """A clock that goes ahead, or behind."""

    def __init__(self, ahead_ms: int) -> None:
        self._ahead_ms = ahead_ms

    def now_ms(self) -> int:
        return super().now_ms() + self._ahead_ms


class _Member(ClusterMember):
    def __init__(self, service: Service, settings: ServiceSettings, registry: Registry) -> None:
        super().__init__(service, settings, None)
        self._registry = registry

    def membership(self, node: ClusterNode, identity: NodeIdentity) -> Membership:
        return ChurningMembership(self._registry, node)


class ChurningNode:
    """A node over all its lives."""

    def __init__(
        self, name: str, folder: Path, registry: Registry, *, ahead_ms: int = 0, strict: bool = False, replicas: int = 0
    ) -> None:
        self.name = name
        self.settings = ServiceSettings(
            warehouse=str(folder / "lake"),
            wal_folder=str(folder / f"wal-{name}"),
            host="127.0.0.1",
            grpc_port=0,
            redis="redis://127.0.0.1:1",
            query_spread_bytes=0,
            maintenance_seconds=86_400,
            query_running=4,
            query_strict=strict,
            wal_replicas=replicas,
            drain_seconds=2,
        )
        self._registry = registry
        self.clock = SkewedClock(ahead_ms)
        self.service: Service | None = None
        self._member: _Member | None = None
        self._server: GrpcServer | None = None
        self.is_up = False
        self.port = 0
        self._died = asyncio.Event()

    async def start(self, port: int = 0) -> None:
        """Join the cluster, as `lakelet serve` does."""
        service = Service(connect(self.settings.warehouse), self.settings, self.clock)
        member = _Member(service, replace(self.settings, port=1), self._registry)
        server = GrpcServer(service, Access(None), peer_access=member.access)
        self.service, self._member, self._server = service, member, server
        try:
            self.port = await server.start("127.0.0.1", port)
        except InvalidError:
            # Somebody else has the port by now.
            self.port = await server.start("127.0.0.1", 0)
        member.join(self.port)
        await member.register()
        await service.start()
        self._died = asyncio.Event()
        self.is_up = True

    async def call(self, work: Coroutine[Any, Any, T]) -> T:
        """What the node answers; ConnectionError where it dies before."""
        answer, died = asyncio.ensure_future(work), asyncio.ensure_future(self._died.wait())
        await asyncio.wait({answer, died}, return_when=asyncio.FIRST_COMPLETED)
        died.cancel()
        if not answer.done():
            # What a dead process does is of no account.
            answer.add_done_callback(lambda one: one.cancelled() or one.exception())
            raise ConnectionError(f"node {self.name} died")
        return answer.result()

    def has_moved_on(self, lost: str) -> bool:
        """Whether all rows of a lost node are committed, and it holds the only copy of no row of this one."""
        shared = None if self.service is None else self.service.shared
        if shared is None or shared.absent is None:
            return True
        usable, links = shared.replicas.nodes.usable(), shared.replicas._links
        return lost not in shared.absent.marked and all(
            link.holder is None or link.holder in usable or not opened.buffered_records
            for opened, link in list(links.values())
        )

    async def leave(self) -> None:
        """End as a node does that is sent SIGTERM."""
        self.is_up = False
        assert self.service is not None
        assert self._member is not None
        assert self._server is not None
        await self._member.leave()
        await self._server.stop(5)
        await self.service.stop()
        await self._member.close()
        self.service = None

    async def lose(self) -> str:
        """End as a machine whose disk is lost: a node that starts in its place has another id. The id of this one."""
        assert self.service is not None
        assert self.service.shared is not None
        id = self.service.shared.members.node.id
        await self.kill()
        shutil.rmtree(str(self.settings.wal_folder))
        return id

    async def kill(self) -> None:
        """End as a process that is killed: nothing more is committed, deleted or told."""
        self.is_up = False
        self._died.set()
        service, member, server = self.service, self._member, self._server
        assert service is not None
        assert member is not None
        assert server is not None
        if service.shared is not None:
            service.shared.stop()
        await service.in_thread(_open_no_more, service)
        writers = [opened.writer for opened in service.tables.all()]
        for writer in writers:
            if writer is not None:
                _freeze(writer)
        members = service.shared.members if service.shared is not None else None
        assert isinstance(members, ChurningMembership)
        await members.end()
        await server.stop(0)
        with suppress(Exception):
            await service.maintenance.stop()
        await asyncio.gather(*(service.in_thread(_killed, writer) for writer in writers if writer is not None))
        await service.in_thread(lambda: None)
        if service.ingest._timer is not None:
            service.ingest._timer.cancel()
        threads: list[ThreadPoolExecutor] = [service.ingest._writers, service.ingest._flushers, service._query_threads]
        for one in (*threads, service.threads):
            one.shutdown(wait=False, cancel_futures=True)
        with suppress(grpc.aio.AioRpcError):
            await member.close()
        self.service = None


def _open_no_more(service: Service) -> None:
    """Writers that are being opened hold locks that the end of a process would release."""
    with service.tables._changes:
        for opened in service.tables.all():
            with opened._lock:
                opened._closed = True


def _freeze(writer: RowWriter) -> None:
    """From now on the process is dead: logs stay, and commits that have not begun never do."""

    def dead(*_: object) -> None:
        raise UnavailableError("the process is dead")

    writer._folder.remove = dead  # type: ignore[assignment,method-assign]
    writer._worker._stopped = True


def _killed(writer: RowWriter) -> None:
    with suppress(LakeletError, OSError):
        kill(writer)
