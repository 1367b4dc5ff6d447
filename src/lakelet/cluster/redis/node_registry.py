"""The registry of nodes in Redis: an address in `nodes:services`, and a liveness key that expires.

The liveness key holds what the node says of itself and a token of its process. Who writes a key that holds another token is
refused, so that two processes never share an id; a process may give the tokens of its predecessors in the same folder, whose
keys it takes over. A node that leaves replaces its key by one that says so, for as long as a key lives: the others distinguish
that from keys that Redis lost.

    nodes:alive:n1   {"token": "…", "address": "10.0.0.1:50051", "role": "all", "version": "0.1.0", "protocol": 1,
                      "rest_address": "…", "status": "active", "heartbeat_ms": 1800000000000, "load": {…}}
                     {"token": "…", "left": true}
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import redis.asyncio as redis_async

from lakelet.cluster.cluster_keys import ClusterKeys
from lakelet.cluster.cluster_node import ClusterNode
from lakelet.errors import InvalidError

_LOG = logging.getLogger(__name__)

_REGISTER = """
local found = redis.call('GET', KEYS[1])
if found then
  local readable, other = pcall(cjson.decode, found)
  if readable and type(other) == 'table' and other.token and not other.left then
    local known = false
    for at = 5, #ARGV do known = known or ARGV[at] == other.token end
    if not known then return found end
  end
end
redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[4])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
return ''
"""
_LEAVE = """
local found = redis.call('GET', KEYS[1])
local readable, other = pcall(cjson.decode, found or '')
if readable and type(other) == 'table' and other.token ~= ARGV[2] then return 0 end
redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[4])
return redis.call('HDEL', KEYS[2], ARGV[1])
"""
_PRUNE = """
local pruned = 0
for at = 2, #KEYS do
  if redis.call('EXISTS', KEYS[at]) == 0 then pruned = pruned + redis.call('HDEL', KEYS[1], ARGV[at - 1]) end
end
return pruned
"""


@dataclass(frozen=True, slots=True)
class RegistryReading:
    """What the registry held at one moment."""

    nodes: dict[str, ClusterNode]
    tokens: dict[str, str]
    left: frozenset[str]
    # Registered addresses whose liveness key is absent.
    silent: frozenset[str]
    services: dict[str, str]
    requested: dict[str, str]


class NodeRegistry:
    """Reads and writes the registry."""

    def __init__(self, client: redis_async.Redis, keys: ClusterKeys, *, alive_seconds: float) -> None:
        self._client = client
        self._keys = keys
        self._alive_ms = max(1, round(alive_seconds * 1000))
        self._register = client.register_script(_REGISTER)
        self._leave = client.register_script(_LEAVE)
        self._prune = client.register_script(_PRUNE)

    async def register(self, node: ClusterNode, token: str, predecessors: Iterable[str] = ()) -> ClusterNode | None:
        """Write the keys of a node, anew or again; the node that has this id, if it is another one."""
        keys = [self._keys.alive(node.id), self._keys.services]
        value = _encoded(node, token)
        refused = await self._register(
            keys=keys, args=[node.id, node.address, value, self._alive_ms, token, *predecessors]
        )
        if not refused:
            return None
        found = _decoded(node.id, refused)
        return found[0] if found and found[0] else ClusterNode(node.id, "?")

    async def leave(self, node: ClusterNode, token: str) -> None:
        """Remove a node, unless its id belongs to another process by now."""
        gone = json.dumps({"token": token, "left": True})
        keys = [self._keys.alive(node.id), self._keys.services]
        await self._leave(keys=keys, args=[node.id, token, gone, self._alive_ms])

    async def prune(self, nodes: Iterable[str]) -> int:
        """Remove the addresses of those of these nodes that have no liveness key; how many."""
        listed = sorted(nodes)
        if not listed:
            return 0
        keys = [self._keys.services, *(self._keys.alive(node) for node in listed)]
        return int(await self._prune(keys=keys, args=listed))

    async def request_status(self, node: str, status: str) -> None:
        """Ask a node to be draining, or active again; it follows at its next look."""
        await self._client.hset(self._keys.decommission, node, status)

    async def read(self, known: Iterable[str] = ()) -> RegistryReading:
        """All registered nodes, and of known ones whether they left."""
        async with self._client.pipeline(transaction=False) as pipeline:
            pipeline.hgetall(self._keys.services)
            pipeline.hgetall(self._keys.decommission)
            services, requested = await pipeline.execute()
        ids = sorted({*services, *known})
        values = await self._client.mget([self._keys.alive(id) for id in ids]) if ids else []
        nodes: dict[str, ClusterNode] = {}
        tokens: dict[str, str] = {}
        left: set[str] = set()
        for id, value in zip(ids, values, strict=True):
            found = _decoded(id, value) if value else None
            if found is None:
                continue
            node, token = found
            tokens[id] = token
            if node is None:
                left.add(id)
            else:
                nodes[id] = node
        silent = frozenset(services) - nodes.keys()
        return RegistryReading(nodes, tokens, frozenset(left), silent, dict(services), dict(requested))


def _encoded(node: ClusterNode, token: str) -> str:
    fields = ("address", "role", "version", "protocol", "rest_address", "status", "heartbeat_ms")
    value = {"token": token, **{name: getattr(node, name) for name in fields}, "load": dict(node.load)}
    return json.dumps(value, separators=(",", ":"))


def _decoded(id: str, value: str | bytes) -> tuple[ClusterNode | None, str] | None:
    """The node, None for one that left, and its token; None for a value that is none of ours."""
    try:
        found: Any = json.loads(value)
        token = str(found["token"])
        if found.get("left"):
            return None, token
        # A later version may say more of itself; what is not known here is left out.
        return (
            ClusterNode(
                id,
                str(found["address"]),
                role=found["role"],
                version=str(found.get("version", "")),
                protocol=int(found.get("protocol", 0)),
                rest_address=str(found.get("rest_address", "")),
                status="draining" if found.get("status") == "draining" else "active",
                heartbeat_ms=int(found.get("heartbeat_ms", 0)),
                load={str(name): float(number) for name, number in dict(found.get("load") or {}).items()},
            ),
            token,
        )
    except (ValueError, TypeError, KeyError, AttributeError, InvalidError) as error:
        _LOG.warning("the liveness key of node %s cannot be read: %s", id, error)
        return None
