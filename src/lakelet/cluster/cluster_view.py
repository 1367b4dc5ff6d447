"""Which nodes are live, from what Redis says and what was known before: a pure function.

    reported by Redis                    live
    left (it said so)                    not live, at once
    known before, not reported           live until its last heartbeat is older than a liveness key lives

The last rule covers keys that Redis lost (flushed, restarted, evicted): the nodes are still there, hold acknowledged rows in
memory, and register again within seconds; leaving one out of a query would give a short answer. The time is counted by our own
clock, and only while Redis takes our own heartbeats: as long as nobody can register, nobody is taken for dead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lakelet.cluster.cluster_node import ClusterNode


@dataclass(frozen=True, slots=True)
class KnownNode:
    """A node, and when a heartbeat of it was last noticed, by this process's monotonic clock."""

    node: ClusterNode
    noticed: float


def next_view(
    known: Mapping[str, KnownNode],
    reported: Mapping[str, ClusterNode],
    left: Iterable[str],
    *,
    now: float,
    steady_since: float | None,
    alive_seconds: float,
) -> dict[str, KnownNode]:
    """The live nodes by id. `steady_since` is when Redis began to take our heartbeats, None while it does not."""
    view: dict[str, KnownNode] = {}
    for id, node in reported.items():
        before = known.get(id)
        is_same = before is not None and before.node.heartbeat_ms == node.heartbeat_ms
        view[id] = KnownNode(node, before.noticed if before is not None and is_same else now)
    gone = set(left)
    for id, before in known.items():
        if id in view or id in gone:
            continue
        if steady_since is None or now - max(before.noticed, steady_since) < alive_seconds:
            view[id] = before
    return view
