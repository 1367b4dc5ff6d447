"""Nodes that join, leave, die and lose their Redis, on a real one."""

import asyncio
import itertools
from collections.abc import Iterator
from typing import Any

import pytest
import redis as redis_library

from lakelet.clock import SystemClock
from lakelet.cluster.cluster_keys import ClusterKeys
from lakelet.cluster.hash_ring import VIRTUAL_NODES, HashRing
from lakelet.cluster.redis.membership import MembershipTimes
from lakelet.errors import AlreadyExistsError
from tests.integration.cluster.members import BY_HAND, Members, member, started
from tests.services.redis import RedisService
from tests.unit.moving_clock import MovingClock

KEYS = [("t", f"id-{number}") for number in range(300)]
_PREFIXES = itertools.count()


@pytest.fixture
def keys() -> ClusterKeys:
    return ClusterKeys(f"members-{next(_PREFIXES)}:")


@pytest.fixture
def server(redis_service: RedisService) -> Iterator[redis_library.Redis]:
    with redis_library.Redis(port=redis_service.port, decode_responses=True) as client:
        yield client


def owners(members: Members, id: str) -> list[str]:
    return [members[id].owner(*key).id for key in KEYS]


def test_nodes_find_each_other_and_agree(
    redis_service: RedisService, keys: ClusterKeys, server: redis_library.Redis
) -> None:
    async def run() -> None:
        async with started(redis_service.url, "abc", keys) as members:
            assert members.ids("a") == members.ids("b") == members.ids("c") == ["a", "b", "c"]
            assert owners(members, "a") == owners(members, "b") == owners(members, "c")
            assert set(owners(members, "a")) == {"a", "b", "c"}
            assert members["a"].epoch == members["c"].epoch == int(server.get(keys.epoch))
            assert members["a"].problem() is None
            # What others read of the cluster.
            assert server.hgetall(keys.services) == {id: members[id].node.address for id in "abc"}
            assert server.zcard(keys.hash_ring) == 3 * VIRTUAL_NODES
            assert 50_000 < server.pttl(keys.alive("a")) <= 60_000
        assert server.hgetall(keys.services) == {}

    asyncio.run(run())


def test_a_node_that_leaves_is_gone_at_once_and_its_keys_alone_move(
    redis_service: RedisService, keys: ClusterKeys
) -> None:
    async def run() -> None:
        async with started(redis_service.url, "abc", keys) as members:
            before, epoch = owners(members, "a"), members["a"].epoch
            await members["b"].stop()
            del members.by_id["b"]
            await asyncio.sleep(BY_HAND.ring_lease_seconds)
            await members.refresh()
            after = owners(members, "c")
            assert members.ids("a") == ["a", "c"]
            assert members["c"].epoch > epoch
            assert all(old in (new, "b") for old, new in zip(before, after, strict=True))

    asyncio.run(run())


def test_draining_nodes_and_gateways_own_nothing(redis_service: RedisService, keys: ClusterKeys) -> None:
    async def run() -> None:
        async with started(redis_service.url, "ab", keys) as members:
            gateway = member(redis_service.url, "g", members.clock, keys, role="gateway")
            await gateway.start()
            members.by_id["g"] = gateway
            await members["a"].set_status("draining")
            await asyncio.sleep(BY_HAND.ring_lease_seconds)
            await members.refresh()
            assert members.ids("b") == ["a", "b", "g"]
            assert set(owners(members, "g")) == set(owners(members, "a")) == {"b"}
            await members["a"].set_status("active")
            await asyncio.sleep(BY_HAND.ring_lease_seconds)
            await members.refresh()
            assert set(owners(members, "g")) == {"a", "b"}
            await gateway.stop()

    asyncio.run(run())


def test_an_administrator_asks_a_node_to_drain(
    redis_service: RedisService, keys: ClusterKeys, server: redis_library.Redis
) -> None:
    async def run() -> None:
        async with started(redis_service.url, "ab", keys) as members:
            server.hset(keys.decommission, "b", "draining")
            await asyncio.sleep(BY_HAND.ring_lease_seconds)
            await members.refresh()
            assert members["b"].node.status == "draining"
            assert {node.id: node.status for node in members["a"].nodes()} == {"a": "active", "b": "draining"}
            # A flush takes the request with it, not the state.
            server.delete(keys.decommission)
            await members.refresh()
            assert members["b"].node.status == "draining"

    asyncio.run(run())


def test_a_second_node_with_an_id_is_refused(redis_service: RedisService, keys: ClusterKeys) -> None:
    async def run() -> None:
        async with started(redis_service.url, "a", keys, token="first") as members:
            second = member(redis_service.url, "a", members.clock, keys, token="second")
            with pytest.raises(AlreadyExistsError, match=r"node a runs already at 127\.0\.0\.1"):
                await second.start()
            await members.refresh()
            assert members["a"].problem() is None
            # The next process in the same folder knows the token of the one before.
            heir = member(redis_service.url, "a", members.clock, keys, token="third", predecessors=["zeroth", "first"])
            await heir.start()
            await members.refresh()
            assert "node id a is used by another node" in (members["a"].problem() or "")
            await heir.stop()
            await members.refresh()
            assert members["a"].problem() is None

    asyncio.run(run())


def test_lost_keys_come_back_and_no_live_node_is_forgotten(
    redis_service: RedisService, keys: ClusterKeys, server: redis_library.Redis
) -> None:
    async def run() -> None:
        async with started(redis_service.url, "abc", keys) as members:
            before, epoch = owners(members, "a"), members["a"].epoch
            members.clock.move(minutes=0.4)
            server.flushall()
            await members["a"].refresh()
            assert members.ids("a") == ["a", "b", "c"]
            assert owners(members, "a") == before
            await members.refresh()
            assert sorted(server.hgetall(keys.services)) == ["a", "b", "c"]
            assert server.zcard(keys.hash_ring) == 3 * VIRTUAL_NODES
            assert [members.ids(id) for id in "abc"] == [["a", "b", "c"]] * 3
            # Epochs never go back, although their key was lost.
            assert min(members[id].epoch for id in "abc") > epoch
            assert len({members[id].epoch for id in "abc"}) == 1
            assert owners(members, "b") == before

    asyncio.run(run())


def test_a_dead_node_is_dropped_when_its_last_heartbeat_is_too_old(
    redis_service: RedisService, keys: ClusterKeys, server: redis_library.Redis
) -> None:
    async def run() -> None:
        async with started(redis_service.url, "abc", keys) as members:
            dead = members.by_id.pop("b")
            server.delete(keys.alive("b"))
            members.clock.move(minutes=0.5)
            await members.refresh()
            assert members.ids("a") == ["a", "b", "c"]
            members.clock.move(minutes=0.6)
            await asyncio.sleep(BY_HAND.ring_lease_seconds)
            await members.refresh()
            assert members.ids("a") == members.ids("c") == ["a", "c"]
            assert sorted(server.hgetall(keys.services)) == ["a", "c"]
            assert set(owners(members, "a")) == {"a", "c"}
            # It was only asleep.
            members.by_id["b"] = dead
            await asyncio.sleep(BY_HAND.ring_lease_seconds)
            await members.refresh()
            assert members.ids("a") == ["a", "b", "c"]
            assert owners(members, "a") == owners(members, "b")

    asyncio.run(run())


def test_a_ring_that_was_damaged_is_written_again(
    redis_service: RedisService, keys: ClusterKeys, server: redis_library.Redis
) -> None:
    async def run() -> None:
        async with started(redis_service.url, "ab", keys) as members:
            before = owners(members, "a")
            for damage in (
                lambda: server.delete(keys.hash_ring),
                lambda: server.set(keys.hash_ring, "text"),
                lambda: server.zadd(keys.hash_ring, {"nonsense": 1}),
                lambda: server.set(keys.epoch, "text"),
                lambda: server.set(keys.alive("b"), "no JSON"),
            ):
                damage()
                await asyncio.sleep(BY_HAND.ring_lease_seconds)
                await members.refresh()
                assert members["a"].problem() is None
                assert owners(members, "a") == owners(members, "b") == before
                assert server.zcard(keys.hash_ring) == 2 * VIRTUAL_NODES
                assert members["a"].epoch == members["b"].epoch == int(server.get(keys.epoch))

    asyncio.run(run())


@pytest.mark.parametrize("setting", ["read-only", "full"])
def test_a_redis_that_takes_no_writes_keeps_everybody(
    redis_service: RedisService, keys: ClusterKeys, server: redis_library.Redis, setting: str
) -> None:
    async def run() -> None:
        async with started(redis_service.url, "ab", keys) as members:
            before = owners(members, "a")
            if setting == "full":
                server.config_set("maxmemory", 1)
            else:
                server.config_set("min-replicas-to-write", 1)
            try:
                for _ in range(4):
                    members.clock.move(minutes=0.7)
                    await members.refresh()
                problem = members["a"].problem() or ""
                assert ("no memory left" if setting == "full" else "NOREPLICAS") in problem
                assert members.ids("a") == ["a", "b"]
                assert owners(members, "a") == before
            finally:
                server.config_set("maxmemory", 0)
                server.config_set("min-replicas-to-write", 0)
            await members.refresh()
            assert (members["a"].problem(), members["b"].problem()) == (None, None)

    asyncio.run(run())


def test_a_redis_that_pauses_or_dies_is_told_and_healed(
    redis_service: RedisService, keys: ClusterKeys, server: redis_library.Redis
) -> None:
    async def run() -> None:
        async with started(redis_service.url, "ab", keys) as members:
            before = owners(members, "a")
            redis_service.pause()
            try:
                members.clock.move(minutes=5)
                await members.refresh(1)
                assert "does not answer in time" in (members["a"].problem() or "")
                assert members.ids("b") == ["a", "b"]
            finally:
                redis_service.resume()
            await members.refresh()
            assert members["a"].problem() is None
            redis_service.kill()
            members.clock.move(minutes=5)
            await members.refresh(1)
            assert "is not reachable" in (members["a"].problem() or "")
            assert members.ids("a") == ["a", "b"]
            assert owners(members, "a") == before
            redis_service.start()
            await members["a"].refresh()
            assert members.ids("a") == ["a", "b"]
            await members.refresh()
            assert (members["a"].problem(), members["b"].problem()) == (None, None)
            assert sorted(server.hgetall(keys.services)) == ["a", "b"]
            assert owners(members, "a") == owners(members, "b") == before

    asyncio.run(run())


def test_a_node_that_starts_without_redis_is_alone_and_joins_later(
    redis_service: RedisService, keys: ClusterKeys
) -> None:
    async def run() -> None:
        async with started(redis_service.url, "a", keys) as members:
            redis_service.kill()
            late = member(redis_service.url, "b", members.clock, keys)
            await late.start()
            assert "is not reachable" in (late.problem() or "")
            assert [node.id for node in late.nodes()] == ["b"]
            assert late.owner("t", "x").id == "b"
            redis_service.start()
            members.by_id["b"] = late
            await members.refresh(3)
            await asyncio.sleep(BY_HAND.ring_lease_seconds)
            await members.refresh()
            assert members.ids("a") == members.ids("b") == ["a", "b"]
            assert owners(members, "a") == owners(members, "b")
            await late.stop()

    asyncio.run(run())


def test_many_nodes_that_come_and_leave_by_themselves_end_in_one_ring(
    redis_service: RedisService, keys: ClusterKeys, server: redis_library.Redis
) -> None:
    """Here the passes are the memberships' own, at short intervals."""
    times = MembershipTimes(0.2, 2.0, 0.02, settle_seconds=0.03, ring_lease_seconds=0.3)
    settings: dict[str, Any] = {"times": times, "real_clock": SystemClock()}

    async def run() -> None:
        async with started(redis_service.url, [f"n{number}" for number in range(5)], keys, **settings) as members:
            for number in range(5, 8):
                joined = member(redis_service.url, f"n{number}", members.clock, keys, **settings)
                await joined.start()
                members.by_id[joined.node.id] = joined
                await members.by_id.pop(f"n{number - 5}").stop()
                if number == 6:
                    server.flushall()
            wanted = sorted(members.by_id)
            while not all(
                members.ids(id) == wanted
                and members[id].problem() is None
                and members[id].epoch == int(server.get(keys.epoch) or 0)
                and set(owners(members, id)) == set(wanted)
                for id in wanted
            ):
                await asyncio.sleep(0.02)
            expected = [HashRing.of(wanted).owner(*key) for key in KEYS]
            assert all(owners(members, id) == expected for id in wanted)
            for one in members.by_id.values():
                await one.stop()

    asyncio.run(run())


def test_a_node_that_finds_no_ring_says_that_others_may_be_missing(
    redis_service: RedisService, keys: ClusterKeys
) -> None:
    async def run() -> None:
        clock = MovingClock()
        first = member(redis_service.url, "a", clock, keys)
        await first.start()
        assert "may not have registered yet" in (first.problem() or "")
        clock.move(minutes=0.1)
        assert first.problem() is None
        second = member(redis_service.url, "b", clock, keys)
        await second.start()
        assert second.problem() is None
        await second.stop()
        await first.stop()

    asyncio.run(run())
