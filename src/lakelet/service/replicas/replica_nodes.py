"""Which nodes may hold copies of this one's logs: live ones that own ids, in the order of the ring."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

from lakelet.clock import Clock
from lakelet.cluster.cluster_node import ClusterNode
from lakelet.cluster.hash_ring import HashRing
from lakelet.cluster.membership import Membership
from lakelet.service.peers.peers import PEER_PROTOCOL

_AVOIDED_SECONDS = 10.0


class ReplicaNodes:
    """The other nodes as this one knows them, with or without Redis; for any number of threads."""

    def __init__(self, members: Membership, clock: Clock, mark: Callable[[], None]) -> None:
        self._members = members
        self._clock = clock
        self._lock = threading.Lock()
        self._avoided: dict[str, float] = {}
        # Puts the marker of this node into the warehouse.
        self.mark = mark

    def usable(self) -> dict[str, ClusterNode]:
        """The nodes that take copies, by id."""
        own = self._members.node.id
        return {
            node.id: node
            for node in self._members.nodes()
            if node.id != own and node.owns_keys and node.protocol == PEER_PROTOCOL
        }

    def candidates(self, folder: str) -> Iterator[ClusterNode]:
        """The nodes that may hold the copy of a table's logs: the one after its point on the ring, and those after that."""
        usable, own = self.usable(), self._members.node.id
        rest, order = HashRing.of(usable), list[str]()
        while (owner := rest.owner(folder, own)) is not None:
            order.append(owner)
            rest = rest.restricted_to(rest.nodes - {owner})
        order.sort(key=self.avoids)
        yield from (usable[id] for id in order)

    def avoid(self, id: str) -> None:
        """Ask a node last for a while, for it has failed."""
        with self._lock:
            self._avoided[id] = self._clock.monotonic() + _AVOIDED_SECONDS

    def avoids(self, id: str) -> bool:
        """Whether a node has failed lately."""
        with self._lock:
            until = self._avoided.get(id)
            return until is not None and self._clock.monotonic() < until
