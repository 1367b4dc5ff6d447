"""The membership of a service that has one node."""

from __future__ import annotations

from dataclasses import replace

from lakelet.clock import Clock, SystemClock
from lakelet.cluster.cluster_node import ClusterNode, Status


class EmbeddedMembership:
    """One node, which owns every key."""

    def __init__(self, node: ClusterNode, clock: Clock | None = None) -> None:
        self._node = node
        self._clock = clock or SystemClock()

    @property
    def node(self) -> ClusterNode:
        """This node, alive at this moment."""
        return replace(self._node, heartbeat_ms=self._clock.now_ms())

    @property
    def epoch(self) -> int:
        """Always 0: the ring never changes."""
        return 0

    async def start(self) -> None:
        """Nothing to register with."""

    async def stop(self) -> None:
        """Nobody to tell."""

    async def set_status(self, status: Status) -> None:
        """Show this status in `nodes`; the node still owns every key, for there is no other."""
        self._node = replace(self._node, status=status)

    async def refresh(self) -> None:
        """Nobody else to learn of."""

    def nodes(self) -> tuple[ClusterNode, ...]:
        """This node."""
        return (self.node,)

    def owner(self, table: str, id: str) -> ClusterNode:
        """This node."""
        return self._node

    def unsettled(self) -> str | None:
        """None."""
        return None

    def problem(self) -> str | None:
        """None."""
        return None
