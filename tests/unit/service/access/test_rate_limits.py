"""Limits by key: what a second allows is taken, the rest is refused until there are tokens again."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from lakelet.errors import InvalidError, NotFoundError, OverloadedError
from lakelet.protos.message_types import LAKELET, OLAP, message_class
from lakelet.service.access import rate_limits
from lakelet.service.access.access import Access
from lakelet.service.access.caller import ANYBODY, Caller
from lakelet.service.access.key_store import KeyStore
from lakelet.service.access.rate_limits import RateLimit, RateLimits
from tests.unit.moving_clock import MovingClock
from tests.unit.service.grpc.running_service import running
from tests.unit.service.served_lake import MORNING, ServedLake

ONE, OTHER = Caller("key one", key_id="one"), Caller("key other", key_id="other")


def taken(limits: RateLimits, caller: Caller, size: int = 0) -> int:
    """How many requests of a size are taken now."""
    number = 0
    while number < 1000:
        try:
            limits.take(caller, size)
        except OverloadedError:
            return number
        number += 1
    return number


def test_what_a_second_allows_may_come_at_once_and_comes_again_with_time() -> None:
    clock = MovingClock()
    limits = RateLimits(RateLimit(requests=10), clock)
    assert taken(limits, ONE) == 10
    assert taken(limits, OTHER) == 10
    clock.sleep(0.5)
    assert taken(limits, ONE) == 5
    clock.sleep(100)
    assert taken(limits, ONE) == 10
    assert limits.refused == 4
    with pytest.raises(OverloadedError, match="key one sends more than 10 requests a second") as refused:
        limits.take(ONE)
    assert 0 < refused.value.retry_after_seconds <= 0.1


def test_a_large_body_is_taken_and_those_behind_it_wait() -> None:
    clock = MovingClock()
    limits = RateLimits(RateLimit(bytes=1000), clock)
    limits.take(ONE, 5000)
    with pytest.raises(OverloadedError) as refused:
        limits.take(ONE, 1)
    assert 4 <= refused.value.retry_after_seconds <= 4.1
    clock.sleep(refused.value.retry_after_seconds)
    limits.take(ONE, 1)
    assert taken(limits, OTHER, 100) == 10
    assert limits.charge(OTHER, 1000) == pytest.approx(1.0)


def test_a_key_may_have_limits_of_its_own_and_callers_without_one_share_theirs() -> None:
    limits = RateLimits(RateLimit(requests=3), MovingClock())
    assert taken(limits, Caller("x", key_id="x", requests_per_second=7)) == 7
    assert taken(limits, Caller("free", key_id="free", requests_per_second=0)) == 1000
    assert taken(limits, Caller("y", key_id="y", bytes_per_second=100), 50) == 2
    assert taken(limits, ANYBODY) == 3
    assert taken(limits, Caller("another without a key")) == 0
    assert taken(RateLimits(), ANYBODY) == 1000


def test_full_buckets_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limits, "_MOST_BUCKETS", 5)
    clock = MovingClock()
    limits = RateLimits(RateLimit(requests=2, bytes=100), clock)
    for number in range(100):
        limits.take(Caller("x", key_id=str(number)), 10)
        clock.sleep(1)
    assert len(limits._buckets) <= 5


def test_limits_of_keys_are_kept_and_changed(tmp_path: Path) -> None:
    store = KeyStore(str(tmp_path / "keys.json"))
    key = store.create("loader", {"*": "write"}, requests_per_second=5)
    (made,) = store.list()
    assert (made.requests_per_second, made.bytes_per_second) == (5, None)
    store.limit(made.id, requests_per_second=None, bytes_per_second=0)
    found = store.caller_of(key)
    assert found is not None
    assert (found.key_id, found.requests_per_second, found.bytes_per_second) == (made.id, None, 0)
    with pytest.raises(InvalidError, match="bytes_per_second: expected 0 or more"):
        store.limit(made.id, requests_per_second=None, bytes_per_second=-1)
    with pytest.raises(InvalidError):
        store.create("x", {"*": "read"}, requests_per_second=-1)
    with pytest.raises(NotFoundError):
        store.limit("none", requests_per_second=1, bytes_per_second=1)


def test_rest_refuses_what_is_beyond_the_limit(tmp_path: Path) -> None:
    clock = MovingClock()
    access = Access(None, RateLimits(RateLimit(requests=3, bytes=10_000), clock))
    record = {"table": "t", "id": "a", "timestamp": MORNING, "payload": {"x": 1}}
    with ServedLake(tmp_path, access=access) as served:
        served.create("t")
        assert served.request("POST", "/v1/data", json=record).status_code == 200
        assert served.request("GET", "/v1/tables").status_code == 200
        refused = served.request("POST", "/v1/data", json=record)
        assert (refused.status_code, refused.json()["code"]) == (429, "overloaded")
        assert refused.headers["retry-after"] == "1"
        assert served.request("GET", "/v1/health").status_code == 200
        clock.sleep(1)
        assert len(served.records("t")) == 1
        # A length beyond the largest body is refused, and does not hold the others up for long.
        told = served.request("POST", "/v1/data", content=b"x", headers={"content-length": "9" * 15})
        assert told.status_code == 413
        clock.sleep(served.settings.most_body_bytes / 10_000)
        metrics = served.request("GET", "/metrics").text
        assert "\nlakelet_rate_limited_requests_total 1\n" in metrics


def test_bytes_of_a_body_without_a_length_are_counted(tmp_path: Path) -> None:
    clock = MovingClock()
    access = Access(None, RateLimits(RateLimit(bytes=1000), clock))

    async def parts() -> AsyncIterator[bytes]:
        yield b" " * 1500
        yield b"[]"

    with ServedLake(tmp_path, access=access) as served:
        served.create("t")
        assert served.request("POST", "/v1/data/batch?table=t", content=parts()).status_code == 200
        assert served.request("GET", "/v1/tables").status_code == 429
        clock.sleep(1)
        assert served.request("GET", "/v1/tables").status_code == 200


def test_grpc_refuses_what_is_beyond_the_limit(tmp_path: Path) -> None:
    clock = MovingClock()
    limits = RateLimits(RateLimit(requests=2), clock)

    async def call(channel: Any, service: str, method: str, request: Any, answer: str) -> Any:
        made = channel.unary_unary(
            f"/{service}/{method}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=message_class(answer).FromString,
        )
        return await made(request)

    async def run() -> None:
        async with running(tmp_path, limits=limits) as (_, channel):
            listed = message_class("olap.v1.ListTablesRequest")()
            for _ in range(2):
                await call(channel, OLAP, "ListTables", listed, "olap.v1.ListTablesResponse")
            batch = message_class("lakelet.v1.WriteBatchRequest")(table="t")
            for service, method, request, answer in (
                (OLAP, "ListTables", listed, "olap.v1.ListTablesResponse"),
                (LAKELET, "WriteBatch", batch, "lakelet.v1.WriteBatchResponse"),
            ):
                with pytest.raises(grpc.aio.AioRpcError) as refused:
                    await call(channel, service, method, request, answer)
                assert refused.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
                trailing = dict(refused.value.trailing_metadata() or ())
                assert trailing["retry-after"] == "1"
                assert trailing["grpc-retry-pushback-ms"] == "500"
            health = message_class("olap.v1.HealthCheckRequest")()
            await call(channel, OLAP, "HealthCheck", health, "olap.v1.HealthCheckResponse")

    asyncio.run(run())
    assert limits.refused == 2
