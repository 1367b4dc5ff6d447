"""Membership: which nodes are there, and which of them owns a key."""

from __future__ import annotations

from typing import Protocol

from lakelet.cluster.cluster_node import ClusterNode, Status


class Membership(Protocol):
    """The cluster as this node sees it. What is no coroutine does no I/O, and is safe in any thread."""

    @property
    def node(self) -> ClusterNode:
        """This node."""
        ...

    @property
    def epoch(self) -> int:
        """The number of the ring that `owner` answers from; it rises with every change of the ring."""
        ...

    async def start(self) -> None:
        """Register this node and learn of the others; AlreadyExistsError if another process has its id.

        A server that does not answer is no error: the node goes on alone, `problem` says why, and it registers later.
        """
        ...

    async def stop(self) -> None:
        """Leave the cluster, so that the others know at once."""
        ...

    async def set_status(self, status: Status) -> None:
        """Tell the others that this node is draining (it owns no keys any longer), or active again."""
        ...

    async def refresh(self) -> None:
        """Learn of the nodes anew; where that is not possible the view stays as it is."""
        ...

    def nodes(self) -> tuple[ClusterNode, ...]:
        """All live nodes, this one included, ordered by id."""
        ...

    def owner(self, table: str, id: str) -> ClusterNode:
        """The live node that owns this id of a table; this node where no other can."""
        ...

    def unsettled(self) -> str | None:
        """Why nodes may be missing in the view, or None: it may be outdated and still have all of them."""
        ...

    def problem(self) -> str | None:
        """Why the view of the cluster may be outdated, or None."""
        ...
