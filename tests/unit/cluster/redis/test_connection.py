import asyncio
from typing import Any

import pytest
import redis.exceptions as redis_errors

from lakelet.cluster.redis.connection import (
    connect_redis,
    connect_redis_blocking,
    redis_error,
    redis_problem,
    shown_url,
)
from lakelet.errors import InvalidError, PermissionDeniedError, UnavailableError


def settings(url: str) -> dict[str, Any]:
    async def run() -> dict[str, Any]:
        client = connect_redis(url)
        await client.aclose()
        return dict(client.connection_pool.connection_kwargs)

    return asyncio.run(run())


def test_urls_say_host_password_and_database() -> None:
    found = settings("redis://user:p%40ss@host:7000/3")
    assert [found[name] for name in ("host", "port", "db", "username", "password")] == ["host", 7000, 3, "user", "p@ss"]
    assert found["socket_timeout"] == found["socket_connect_timeout"] == 2.0
    assert settings("rediss://host/?ssl_ca_certs=/ca.pem")["ssl_ca_certs"] == "/ca.pem"
    assert settings("unix:///run/redis.sock")["path"] == "/run/redis.sock"


def test_sentinels_are_asked_for_the_primary() -> None:
    async def run() -> None:
        client = connect_redis("redis+sentinel://:secret@one:26380,two/main/2?sentinel_password=other")
        pool: Any = client.connection_pool
        assert pool.service_name == "main"
        assert (pool.connection_kwargs["db"], pool.connection_kwargs["password"]) == (2, "secret")
        hosts = [
            (one.connection_pool.connection_kwargs["host"], one.connection_pool.connection_kwargs["port"])
            for one in pool.sentinel_manager.sentinels
        ]
        assert hosts == [("one", 26380), ("two", 26379)]
        asked = pool.sentinel_manager.sentinels[0].connection_pool.connection_kwargs
        assert (asked["password"], asked["socket_timeout"]) == ("other", 2.0)
        threads: Any = connect_redis_blocking("redis+sentinel://one/main").connection_pool
        assert threads.service_name == "main"

    asyncio.run(run())


@pytest.mark.parametrize(
    "url",
    [
        "",
        "host:6379",
        "http://host",
        "redis+sentinel://host",
        "redis+sentinel://host:x/main",
        "redis+sentinel://h/m?x=1",
        "redis://host:port",
        "redis://[host",
    ],
)
def test_a_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InvalidError, match="redis"):
        connect_redis(url)


def test_messages_have_no_password() -> None:
    url = "redis://user:secret@host:7000/3?password=secret"
    assert shown_url(url) == "redis://host:7000/3"
    assert "secret" not in redis_problem(redis_errors.ConnectionError("refused"), url)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (redis_errors.ReadOnlyError("x"), "is read-only"),
        (redis_errors.OutOfMemoryError("x"), "has no memory left"),
        (redis_errors.BusyLoadingError("x"), "still loading"),
        (redis_errors.TimeoutError("x"), "in time"),
        (TimeoutError(), "in time"),
        (redis_errors.ConnectionError("refused"), "not reachable: refused"),
        (redis_errors.ResponseError("odd"), "failed: odd"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_a_failure_is_told_in_our_words(error: Exception, said: str) -> None:
    assert said in redis_problem(error, "redis://host")
    assert isinstance(redis_error(error, "redis://host"), UnavailableError)


def test_refused_credentials_are_an_error_of_their_own() -> None:
    assert isinstance(redis_error(redis_errors.AuthenticationError("x"), "redis://host"), PermissionDeniedError)
