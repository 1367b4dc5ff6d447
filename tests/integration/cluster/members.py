"""Several memberships in one process, each with a clock of its own kind, whose passes the test makes by hand."""

from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from lakelet.cluster.cluster_keys import ClusterKeys
from lakelet.cluster.cluster_node import ClusterNode
from lakelet.cluster.redis.connection import RedisTimes
from lakelet.cluster.redis.membership import MembershipTimes, RedisMembership
from tests.unit.moving_clock import MovingClock

# Nothing happens by itself: tests make the passes.
BY_HAND = MembershipTimes(refresh_seconds=3600.0, heartbeat_seconds=30.0, alive_seconds=60.0, ring_lease_seconds=0.05)
QUICK = RedisTimes(connect_seconds=0.5, answer_seconds=0.5, repeats=0)


@dataclass(frozen=True, slots=True)
class Members:
    """Started memberships by node id."""

    by_id: dict[str, RedisMembership]
    clock: MovingClock

    def __getitem__(self, id: str) -> RedisMembership:
        return self.by_id[id]

    async def refresh(self, passes: int = 2) -> None:
        """Have all nodes look, so often that each has seen what the others wrote."""
        for _ in range(passes):
            for one in self.by_id.values():
                await one.refresh()

    def ids(self, of: str) -> list[str]:
        """The nodes that one of them sees."""
        return [node.id for node in self.by_id[of].nodes()]


def member(url: str, id: str, clock: MovingClock, keys: ClusterKeys, **settings: Any) -> RedisMembership:
    """A membership that is not started."""
    moved = settings.pop("real_clock", clock)
    node = ClusterNode(id, f"127.0.0.1:{hash_port(id)}", role=settings.pop("role", "all"), version="0.1.0")
    return RedisMembership(
        url, node, moved, keys=keys, times=settings.pop("times", BY_HAND), redis_times=QUICK, **settings
    )


def hash_port(id: str) -> int:
    """A port that is the same in every process."""
    return 20_000 + sum(id.encode())


@asynccontextmanager
async def started(url: str, ids: Iterable[str], keys: ClusterKeys, **settings: Any) -> AsyncIterator[Members]:
    """Memberships that know each other, until the block is left."""
    clock = MovingClock()
    members = Members({id: member(url, id, clock, keys, **settings) for id in ids}, clock)
    async with AsyncExitStack() as stack:
        for one in members.by_id.values():
            await one.start()
            stack.push_async_callback(one.stop)
        await members.refresh()
        clock.move(minutes=0.1)
        yield members
