"""A registry of nodes in this process, which can be emptied and be away: what Redis is to a cluster, with short times."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace

from lakelet.cluster.cluster_node import ClusterNode, Status
from lakelet.cluster.cluster_view import KnownNode, next_view
from lakelet.cluster.hash_ring import HashRing

ALIVE_SECONDS = 1.5
_HEARTBEAT_SECONDS = 0.4
LOOK_SECONDS = 0.1


@dataclass
class Registry:
    """What every node writes and reads."""

    nodes: dict[str, tuple[ClusterNode, float]] = field(default_factory=dict)
    left: set[str] = field(default_factory=set)
    epoch: int = 0
    is_away: bool = False

    def register(self, node: ClusterNode) -> None:
        """Write the key of a node, which expires."""
        self.left.discard(node.id)
        self.nodes[node.id] = (node, time.monotonic() + ALIVE_SECONDS)

    def leave(self, id: str) -> None:
        """A node says that it leaves."""
        self.nodes.pop(id, None)
        self.left.add(id)

    def reported(self) -> dict[str, ClusterNode]:
        """The nodes whose keys have not expired."""
        now = time.monotonic()
        return {id: node for id, (node, until) in self.nodes.items() if until > now}

    def empty(self) -> None:
        """Forget everything."""
        self.nodes.clear()
        self.left.clear()


class ChurningMembership:
    """The view of one node, which is brought up to date now and then."""

    def __init__(self, registry: Registry, node: ClusterNode) -> None:
        self._registry = registry
        self._node = replace(node, heartbeat_ms=1)
        self._known: dict[str, KnownNode] = {}
        self._epoch = 0
        self._ids: tuple[str, ...] = ()
        self._steady: float | None = None
        self._due = 0.0
        self._task: asyncio.Task[None] | None = None
        self.is_cut_off = False

    @property
    def node(self) -> ClusterNode:
        return self._node

    @property
    def epoch(self) -> int:
        return self._epoch

    async def start(self) -> None:
        await self.refresh()
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        await self.end()
        if not self._registry.is_away:
            self._registry.leave(self._node.id)

    async def end(self) -> None:
        """End without a word."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        self._task = None

    async def set_status(self, status: Status) -> None:
        self._node = replace(self._node, status=status)
        self._due = 0.0
        await self.refresh()

    async def refresh(self) -> None:
        await asyncio.sleep(0)
        now = time.monotonic()
        if self._registry.is_away or self.is_cut_off:
            self._steady = None
            self._due = 0.0
            return
        reported = self._registry.reported()
        if self._node.id not in reported:
            self._steady = now
        if self._node.id not in reported or now >= self._due:
            self._node = replace(self._node, heartbeat_ms=self._node.heartbeat_ms + 1)
            self._registry.register(self._node)
            self._due = now + _HEARTBEAT_SECONDS
        if self._steady is None:
            self._steady = now
        reported.pop(self._node.id, None)
        self._known = next_view(
            self._known,
            reported,
            set(self._registry.left),
            now=now,
            steady_since=self._steady,
            alive_seconds=ALIVE_SECONDS,
        )
        owners = tuple(sorted(node.id for node in self.nodes() if node.owns_keys))
        if owners != self._ids:
            self._ids = owners
            self._registry.epoch += 1
        self._epoch = self._registry.epoch

    def nodes(self) -> tuple[ClusterNode, ...]:
        found = {id: one.node for id, one in self._known.items()}
        found[self._node.id] = self._node
        return tuple(found[id] for id in sorted(found))

    def owner(self, table: str, id: str) -> ClusterNode:
        found = HashRing.of(self._ids or (self._node.id,)).owner(table, id)
        return next((node for node in self.nodes() if node.id == found), self._node)

    def unsettled(self) -> str | None:
        return None if self._epoch else "this node has not registered yet"

    def problem(self) -> str | None:
        return self.unsettled()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await self.refresh()
