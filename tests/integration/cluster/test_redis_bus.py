"""Invalidations between caches of several processes, on a real Redis."""

import itertools
import queue
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import redis as redis_library

from lakelet.cache.bus import InvalidationBus
from lakelet.cache.invalidation import Invalidation, InvalidationType
from lakelet.cache.keys import TableCacheKey
from lakelet.cluster.cluster_keys import ClusterKeys
from lakelet.cluster.redis.invalidation_bus import RedisBus
from tests.services.redis import RedisService

_PREFIXES = itertools.count()
HANG_SECONDS = 900
ORDERS = TableCacheKey("lakelet", "shop", "Ördersß", "dev")
CHANGE = Invalidation(InvalidationType.DATA_CHANGE, ORDERS)
REFRESH = Invalidation(InvalidationType.CATALOG_REFRESH, TableCacheKey("lakelet", "", ""))


@pytest.fixture
def keys() -> ClusterKeys:
    return ClusterKeys(f"bus-{next(_PREFIXES)}:")


class Member:
    """A cache that notes what it is told."""

    def __init__(self, bus: InvalidationBus) -> None:
        self.told: queue.Queue[Invalidation] = queue.Queue()
        self.leave = bus.join(self, self.told.put)

    def next(self) -> Invalidation:
        return self.told.get(timeout=HANG_SECONDS)


@contextmanager
def bus(service: RedisService, keys: ClusterKeys) -> Iterator[RedisBus]:
    made = RedisBus(service.url, keys, retry_seconds=0.02)
    made.start()
    assert made.connected.wait(HANG_SECONDS)
    try:
        yield made
    finally:
        made.close()


def test_others_are_told_and_the_sender_is_not(redis_service: RedisService, keys: ClusterKeys) -> None:
    with bus(redis_service, keys) as one, bus(redis_service, keys) as other:
        sender, neighbour, remote = Member(one), Member(one), Member(other)
        one.send(CHANGE, sender)
        assert neighbour.next() == CHANGE
        assert remote.next() == CHANGE
        other.send(REFRESH, remote)
        assert sender.next() == REFRESH
        remote.leave()
        one.send(CHANGE, sender)
        one.send(REFRESH, sender)
        assert neighbour.next() == REFRESH
        assert neighbour.next() == CHANGE
        assert remote.told.empty()


def test_a_restarted_redis_and_lost_messages_refresh_everything(redis_service: RedisService, keys: ClusterKeys) -> None:
    with bus(redis_service, keys) as one, bus(redis_service, keys) as other:
        sender, remote = Member(one), Member(other)
        one.send(CHANGE, sender)
        assert remote.next() == CHANGE
        redis_service.kill()
        one.send(CHANGE, sender)
        redis_service.start()
        assert remote.next() == REFRESH
        assert other.connected.wait(HANG_SECONDS)
        one.send(CHANGE, sender)
        while remote.next() != CHANGE:
            pass


def test_a_gap_or_nonsense_refreshes_everything(redis_service: RedisService, keys: ClusterKeys) -> None:
    with (
        bus(redis_service, keys) as one,
        redis_library.Redis(port=redis_service.port, decode_responses=True) as server,
    ):
        member = Member(one)
        message = '{"bus": "x", "number": %d, "kind": "data_change", "table": ["lakelet", "shop", "Ördersß", "dev"]}'
        for number in (7, 8, 10):
            server.publish(keys.invalidations, message % number)
        assert [member.next() for _ in range(4)] == [CHANGE, CHANGE, REFRESH, CHANGE]
        for wrong in ("", "[]", '{"bus": "x"}', (message % 11).replace("data_change", "unknown")):
            server.publish(keys.invalidations, wrong)
            assert member.next() == REFRESH
