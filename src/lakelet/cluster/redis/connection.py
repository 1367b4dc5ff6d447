"""Connections to Redis by URL, and what its failures are in our words.

    redis://[[user]:password@]host[:port][/db]                            plain
    rediss://…?ssl_ca_certs=FILE                                          TLS; ssl_cert_reqs, ssl_certfile, ssl_keyfile too
    unix://[[user]:password@]/path[?db=N]                                 a socket
    redis+sentinel://[[user]:password@]host[:port][,host…]/service[/db]   the primary that Sentinels name; rediss+sentinel: by TLS
                                            ?sentinel_password=…          the password of the Sentinels themselves

A command that gets no answer in time is an error: the caller goes on with what it knows, and asks again later.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit, urlunsplit

import redis
import redis.asyncio as redis_async
import redis.asyncio.sentinel as redis_async_sentinel
import redis.exceptions as redis_errors
import redis.sentinel as redis_sentinel
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import ExponentialBackoff
from redis.retry import Retry

from lakelet.errors import InvalidError, LakeletError, PermissionDeniedError, UnavailableError

_SENTINEL = "+sentinel"
_SCHEMES = ("redis", "rediss", "unix", "redis+sentinel", "rediss+sentinel")
_SENTINEL_PORT = 26_379
_BACK_OFF = ExponentialBackoff(cap=0.5, base=0.05)

# Everything that a command on a connection raises when the server does not do what was asked.
REDIS_FAILURES: tuple[type[Exception], ...] = (redis_errors.RedisError, OSError, asyncio.TimeoutError)


@dataclass(frozen=True, slots=True)
class RedisTimes:
    """How long Redis may take."""

    connect_seconds: float = 2.0
    answer_seconds: float = 2.0
    repeats: int = 1


def connect_redis(url: str, times: RedisTimes | None = None) -> redis_async.Redis:
    """A client for the event loop that runs; it connects at its first command. InvalidError for a URL that is none."""
    found: redis_async.Redis = _client(
        url, times or RedisTimes(), redis_async.Redis, redis_async_sentinel.Sentinel, AsyncRetry
    )
    return found


def connect_redis_blocking(url: str, times: RedisTimes | None = None) -> redis.Redis:
    """A client for threads."""
    found: redis.Redis = _client(url, times or RedisTimes(), redis.Redis, redis_sentinel.Sentinel, Retry)
    return found


def _client(url: str, times: RedisTimes, plain: Any, sentinel: Any, retry: Any) -> Any:
    parts = _split(url)
    settings: dict[str, Any] = {
        "decode_responses": True,
        "socket_timeout": times.answer_seconds,
        "socket_connect_timeout": times.connect_seconds,
        "health_check_interval": 30,
        "retry": retry(_BACK_OFF, times.repeats),
    }
    try:
        if parts.scheme.endswith(_SENTINEL):
            return _by_sentinel(parts, settings, sentinel)
        return plain.from_url(url, **settings)
    except (ValueError, TypeError, redis_errors.RedisError) as error:
        raise InvalidError(f"redis {shown_url(url)}: {error}") from None


def _by_sentinel(parts: SplitResult, settings: dict[str, Any], sentinels: Any) -> Any:
    login, _, hosts = parts.netloc.rpartition("@")
    user, _, password = login.partition(":")
    service, _, db = parts.path.strip("/").partition("/")
    if not service or not hosts:
        raise InvalidError(f"redis: expected {parts.scheme}://host:port/service, found no service or no host")
    query = dict(parse_qsl(parts.query))
    asked = {name: settings[name] for name in ("decode_responses", "socket_timeout", "socket_connect_timeout")}
    if "sentinel_password" in query:
        asked["password"] = query.pop("sentinel_password")
    if parts.scheme.startswith("rediss"):
        settings["ssl"] = asked["ssl"] = True
        settings.update(query)
        asked.update(query)
    elif query:
        raise InvalidError(f"redis: unknown parameter {next(iter(query))!r} of a {parts.scheme} URL")
    found = sentinels([_host(one) for one in hosts.split(",")], sentinel_kwargs=asked)
    return found.master_for(
        service, db=int(db or 0), username=unquote(user) or None, password=unquote(password) or None, **settings
    )


def _host(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":") if ":" in text else (text, "", str(_SENTINEL_PORT))
    if not port.isdigit():
        raise InvalidError(f"redis: expected host:port of a Sentinel, found {text!r}")
    return host.strip("[]"), int(port)


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise InvalidError(f"redis: {error}") from None
    if parts.scheme not in _SCHEMES:
        raise InvalidError(f"redis: expected a URL of {', '.join(_SCHEMES)}, found {parts.scheme or 'no scheme'!r}")
    return parts


def shown_url(url: str) -> str:
    """A URL without its passwords, for messages."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "(not a URL)"
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def redis_problem(error: Exception, url: str) -> str:
    """What is wrong with Redis, in one line that people act on."""
    at = f"redis at {shown_url(url)}"
    if isinstance(error, redis_errors.ReadOnlyError):
        return f"{at} is read-only"
    if isinstance(error, redis_errors.OutOfMemoryError):
        return f"{at} has no memory left for writes"
    if isinstance(error, redis_errors.BusyLoadingError):
        return f"{at} is still loading its data"
    if isinstance(error, redis_errors.AuthenticationError | redis_errors.NoPermissionError):
        return f"{at} refused the credentials"
    if isinstance(error, redis_errors.TimeoutError | asyncio.TimeoutError):
        return f"{at} does not answer in time"
    if isinstance(error, redis_errors.ConnectionError | OSError):
        return f"{at} is not reachable: {error}"
    return f"{at} failed: {error}"


def redis_error(error: Exception, url: str) -> LakeletError:
    """The error of our own kind for a failure of Redis."""
    refused = isinstance(error, redis_errors.AuthenticationError | redis_errors.NoPermissionError)
    return (PermissionDeniedError if refused else UnavailableError)(redis_problem(error, url))
