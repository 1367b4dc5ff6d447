"""The membership of a node in a cluster that Redis holds together.

    every 3 s    read the registry: who is there, who left, what an administrator asked of us
                 register again if our keys are gone (flushed, expired) or our heartbeat is due (every 30 s)
                 load the ring if its epoch is another one
                 if the ring is not that of the live nodes: take the lease, write the next one

`nodes`, `owner` and `epoch` answer from memory. While Redis is dead, slow, read-only or full the last view holds and `problem`
says why; the next pass that succeeds brings everything back, without a restart.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

import redis.asyncio as redis_async

from lakelet.clock import Clock, SystemClock
from lakelet.cluster.cluster_keys import ClusterKeys
from lakelet.cluster.cluster_node import ClusterNode, Status
from lakelet.cluster.cluster_view import KnownNode, next_view
from lakelet.cluster.hash_ring import HashRing
from lakelet.cluster.lease import Lease
from lakelet.cluster.redis.connection import REDIS_FAILURES, RedisTimes, connect_redis, redis_problem
from lakelet.cluster.redis.leases import RedisLeases
from lakelet.cluster.redis.node_registry import NodeRegistry, RegistryReading
from lakelet.cluster.redis.ring_store import RING_LEASE, RingStore
from lakelet.errors import AlreadyExistsError
from lakelet.ids import Ids, RandomIds

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MembershipTimes:
    """The intervals of a membership."""

    heartbeat_seconds: float = 30.0
    alive_seconds: float = 60.0
    refresh_seconds: float = 3.0
    # How long a node that found no ring waits for others to register before it calls its view complete.
    settle_seconds: float = 4.5
    # A holder that died keeps others from changing the ring for as long.
    ring_lease_seconds: float = 10.0
    # A pass that takes longer is given up.
    pass_seconds: float = 10.0


class RedisMembership:
    """This node in a cluster. Belongs to the event loop that starts it; what answers from memory is safe in any thread."""

    def __init__(
        self,
        url: str,
        node: ClusterNode,
        clock: Clock | None = None,
        *,
        token: str | None = None,
        predecessors: Iterable[str] = (),
        keys: ClusterKeys | None = None,
        times: MembershipTimes | None = None,
        redis_times: RedisTimes | None = None,
        ids: Ids | None = None,
        load: Callable[[], Mapping[str, float]] | None = None,
    ) -> None:
        self._url = url
        self._clock = clock or SystemClock()
        self._ids = ids or RandomIds()
        self._token = token or self._ids.uuid()
        self._predecessors = tuple(predecessors)
        self._keys = keys or ClusterKeys()
        self._times = times or MembershipTimes()
        self._load = load or dict
        self._client: redis_async.Redis = connect_redis(url, redis_times)
        self._registry = NodeRegistry(self._client, self._keys, alive_seconds=self._times.alive_seconds)
        self._leases = RedisLeases(self._client, self._keys, node.id)
        self._rings = RingStore(self._client, self._keys)
        self._turn = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._node = replace(node, heartbeat_ms=self._clock.now_ms())
        self._known: dict[str, KnownNode] = {}
        self._nodes: dict[str, ClusterNode] = {node.id: self._node}
        self._stored = self._ring = HashRing.of([node.id] if node.owns_keys else [])
        self._epoch = 0
        self._lease: Lease | None = None
        self._stopped = asyncio.Event()
        self._heartbeat_due = self._clock.monotonic()
        self._steady_since: float | None = None
        self._settles_at = 0.0
        self._problem: str | None = "this node has not registered yet"
        self._rival: ClusterNode | None = None

    # ------------------------------------------------------------------ from memory

    @property
    def node(self) -> ClusterNode:
        """This node, as it last reported itself."""
        return self._node

    @property
    def epoch(self) -> int:
        """The number of the ring; 0 before the first one is known."""
        return self._epoch

    def nodes(self) -> tuple[ClusterNode, ...]:
        """All live nodes, ordered by id."""
        return tuple(self._nodes.values())

    def owner(self, table: str, id: str) -> ClusterNode:
        """The live node that owns this id of a table; this node where no other can."""
        found = self._ring.owner(table, id)
        return self._nodes.get(found, self._node) if found is not None else self._node

    def unsettled(self) -> str | None:
        """Why nodes may be missing in the view: Redis has not been reached yet, or its keys are new."""
        if self._epoch == 0:
            return self._problem or "this node has not registered yet"
        if self._clock.monotonic() < self._settles_at:
            return "the cluster's keys are new: other nodes may not have registered yet"
        return None

    def problem(self) -> str | None:
        """Why the view may be outdated: Redis fails, another node has our id, or keys were lost a moment ago."""
        return self._problem or self.unsettled()

    # ------------------------------------------------------------------ life

    async def start(self) -> None:
        """Register and learn of the others; AlreadyExistsError if another process has our id."""
        await self.refresh()
        if self._rival is not None:
            await self._client.aclose()
            raise AlreadyExistsError(
                f"node {self._node.id} runs already at {self._rival.address}; two nodes need two WAL folders "
                f"(a node that died is forgotten after {self._times.alive_seconds:g} s)"
            )
        self._task = asyncio.create_task(self._run(), name="lakelet-membership")

    async def stop(self) -> None:
        """Leave the cluster. Without Redis the others find out when the liveness key expires."""
        if self._stopped.is_set():
            return
        self._stopped.set()
        if self._task is not None:
            # A pass that runs is finished: one that is cancelled in a command could register the node after it left.
            await asyncio.wait({self._task})
        try:
            async with asyncio.timeout(self._times.pass_seconds):
                await self._registry.leave(self._node, self._token)
                if self._lease is not None:
                    await self._leases.release(self._lease)
        except REDIS_FAILURES as error:
            _LOG.warning("node %s could not say that it leaves: %s", self._node.id, redis_problem(error, self._url))
        await self._client.aclose()

    async def set_status(self, status: Status) -> None:
        """Report another status at once; it is reported later where Redis fails."""
        self._node = replace(self._node, status=status)
        self._heartbeat_due = self._clock.monotonic()
        await self.refresh()

    async def _run(self) -> None:
        while not self._stopped.is_set():
            # Spread, so that nodes that were started together do not ask together.
            seconds = self._times.refresh_seconds * (0.9 + 0.2 * self._ids.jitter())
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), seconds)
            if not self._stopped.is_set():
                await self.refresh()

    async def refresh(self) -> None:
        """One pass. Never raises for what Redis does."""
        async with self._turn:
            try:
                async with asyncio.timeout(self._times.pass_seconds):
                    await self._pass()
            except REDIS_FAILURES as error:
                self._fail(redis_problem(error, self._url))
            except Exception as error:
                # A membership that ends silently would be taken for a dead node.
                _LOG.exception("a pass of the membership failed")
                self._fail(f"the membership failed: {error}")

    def _fail(self, problem: str) -> None:
        if self._problem != problem:
            _LOG.warning("%s; the last known nodes and ring hold", problem)
        self._problem = problem
        self._steady_since = None
        self._heartbeat_due = self._clock.monotonic()

    # ------------------------------------------------------------------ a pass

    async def _pass(self) -> None:
        reading = await self._registry.read(self._known)
        await self._register(reading)
        now = self._clock.monotonic()
        if self._steady_since is None:
            self._steady_since = now
        others = {id: node for id, node in reading.nodes.items() if id != self._node.id}
        known = next_view(
            {id: one for id, one in self._known.items() if id != self._node.id},
            others,
            reading.left,
            now=now,
            steady_since=self._steady_since,
            alive_seconds=self._times.alive_seconds,
        )
        self._show(known)
        await self._update_ring()
        await self._registry.prune(reading.silent - self._nodes.keys())
        if self._rival is None:
            if self._problem is not None:
                _LOG.info("node %s is registered, epoch %d, %d nodes", self._node.id, self._epoch, len(self._nodes))
            self._problem = None

    async def _register(self, reading: RegistryReading) -> None:
        """Write our keys if they are absent or due; notice a rival that has our id."""
        id = self._node.id
        asked = reading.requested.get(id)
        if asked in ("active", "draining") and asked != self._node.status:
            _LOG.info("node %s was asked to be %s", id, asked)
            self._node = replace(self._node, status="draining" if asked == "draining" else "active")
            self._heartbeat_due = self._clock.monotonic()
        is_there = reading.tokens.get(id) == self._token and reading.services.get(id) == self._node.address
        now = self._clock.monotonic()
        if is_there and now < self._heartbeat_due and self._rival is None:
            return
        if not is_there:
            # Keys were lost, those of others with ours: they get the time to register again.
            self._steady_since = now
        self._node = replace(self._node, heartbeat_ms=self._clock.now_ms(), load=dict(self._load()))
        self._rival = await self._registry.register(self._node, self._token, self._predecessors)
        if self._rival is not None:
            problem = f"node id {id} is used by another node at {self._rival.address}; this one is not registered"
            if self._problem != problem:
                _LOG.error("%s", problem)
            self._problem = problem
            return
        self._heartbeat_due = now + self._times.heartbeat_seconds

    async def _update_ring(self) -> None:
        is_known = self._epoch > 0 and await self._rings.size() == (self._epoch, len(self._stored.points))
        found = (self._epoch, self._stored) if is_known else await self._rings.load()
        if found is None and self._epoch == 0:
            # Nobody has written a ring: nodes that are there, if any, register within an interval.
            self._settles_at = self._clock.monotonic() + self._times.settle_seconds
        if found is not None and found[0] >= self._epoch:
            self._take_ring(*found)
        wanted = frozenset(id for id, node in self._nodes.items() if node.owns_keys)
        is_stored = found is not None and found[0] >= self._epoch and found[1].nodes == wanted
        if self._lease is not None:
            # Kept for as long as we live: nodes whose views differ for a while do not take turns in changing the ring.
            is_held = await self._leases.renew(self._lease, self._times.ring_lease_seconds)
            self._lease = self._lease if is_held else None
        if is_stored or self._rival is not None:
            return
        self._lease = await self._leases.acquire(RING_LEASE, self._times.ring_lease_seconds)
        if self._lease is None:
            return
        ring = HashRing.of(sorted(wanted))
        epoch = await self._rings.replace(self._lease, ring, above=self._epoch)
        if epoch is not None:
            self._take_ring(epoch, ring)

    def _take_ring(self, epoch: int, stored: HashRing) -> None:
        self._epoch = epoch
        self._stored = stored
        self._ring = stored.restricted_to(id for id, node in self._nodes.items() if node.owns_keys)

    def _show(self, known: dict[str, KnownNode]) -> None:
        """Show these nodes, and give the keys of those that are gone to the ones that follow them."""
        self._known = known
        shown = {id: one.node for id, one in known.items()}
        shown[self._node.id] = self._node
        self._nodes = dict(sorted(shown.items()))
        self._take_ring(self._epoch, self._stored)
