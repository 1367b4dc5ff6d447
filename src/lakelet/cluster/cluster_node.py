"""A node of the cluster as other nodes see it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from lakelet.errors import InvalidError

Role = Literal["all", "gateway", "worker"]
Status = Literal["active", "draining"]
ROLES: tuple[Role, ...] = ("all", "gateway", "worker")

# A node's id is part of Redis keys (`nodes:alive:{id}`) and of the ring's members (`{id}#{vnode}`).
_ID = re.compile(r"[A-Za-z0-9_.-]{1,64}")


@dataclass(frozen=True, slots=True)
class ClusterNode:
    """A service process: its addresses, its role and what it last said of itself."""

    id: str
    # host:port of the node's gRPC, by which the other nodes reach it.
    address: str
    role: Role = "all"
    version: str = ""
    # The version of the calls between nodes.
    protocol: int = 1
    rest_address: str = ""
    status: Status = "active"
    # When the node last reported, by its own clock. It is shown to people; liveness is decided by Redis and our own clock.
    heartbeat_ms: int = 0
    load: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not _ID.fullmatch(self.id):
            raise InvalidError(f"node id: expected 1 to 64 letters, digits, '_', '.' or '-', found {self.id!r}")
        if self.role not in ROLES:
            raise InvalidError(f"role of node {self.id}: expected {' or '.join(ROLES)}, found {self.role!r}")

    @property
    def owns_keys(self) -> bool:
        """Whether keys are assigned to this node: not to gateways, nor to nodes that are about to leave."""
        return self.role != "gateway" and self.status == "active"
