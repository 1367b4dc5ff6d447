"""Limits on what one caller sends: token buckets of requests and bytes by API key.

    bucket      refilled by `per second`, up to what one second gives; a request takes a token and its bytes
    empty       OverloadedError, with the seconds after which there is a token again

A body larger than a second's bytes is taken, and paid for by those behind it: the bucket goes below zero. Callers without keys
share one bucket. In a cluster each node takes what was used on the others from its own buckets (`peers/shared_limits`), so that
a limit is that of all nodes. Used on the event loop alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lakelet.clock import Clock, SystemClock
from lakelet.cluster.usage import Usage
from lakelet.errors import OverloadedError
from lakelet.service.access.caller import Caller

# Full buckets beyond this many are dropped: a full bucket says what no bucket does.
_MOST_BUCKETS = 10_000
# A token, less what sums of fractions are wrong by: who waited as long as was said finds one.
_WHOLE = 0.999
# Requests on other nodes keep a caller waiting for at most as long.
_MOST_DEBT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class RateLimit:
    """What a caller may send in a second; 0 is no limit."""

    requests: int = 0
    bytes: int = 0


class _Bucket:
    """What is left of both limits, and when that was so."""

    __slots__ = ("bytes_left", "bytes_used", "limit", "requests_left", "requests_used", "since")

    def __init__(self, limit: RateLimit, since: float) -> None:
        self.limit = limit
        self.requests_left = float(limit.requests)
        self.bytes_left = float(limit.bytes)
        self.since = since
        # What was taken since other nodes were told.
        self.requests_used = self.bytes_used = 0

    def refill(self, now: float) -> None:
        limit, passed = self.limit, now - self.since
        self.since = now
        # Every request comes here: comparisons cost a third of min().
        if limit.requests:
            left = self.requests_left + passed * limit.requests
            self.requests_left = left if left < limit.requests else limit.requests
        if limit.bytes:
            left = self.bytes_left + passed * limit.bytes
            self.bytes_left = left if left < limit.bytes else limit.bytes

    def is_full(self, now: float) -> bool:
        self.refill(now)
        return self.requests_left >= self.limit.requests and (
            not self.limit.bytes or self.bytes_left >= self.limit.bytes
        )

    def wait_seconds(self) -> float:
        """How long until there is a request and a byte; 0 where there is now."""
        waited = 0.0
        if self.limit.requests and self.requests_left < _WHOLE:
            waited = (1 - self.requests_left) / self.limit.requests
        if self.limit.bytes and self.bytes_left < _WHOLE:
            waited = max(waited, (1 - self.bytes_left) / self.limit.bytes)
        return waited


class RateLimits:
    """The buckets of all callers. `default` holds for keys without a limit of their own."""

    def __init__(self, default: RateLimit | None = None, clock: Clock | None = None) -> None:
        self._default = default or RateLimit()
        self._monotonic = (clock or SystemClock()).monotonic
        self._buckets: dict[str, _Bucket] = {}
        self.refused = 0

    def limit_of(self, caller: Caller) -> RateLimit:
        """The limit of a caller: its key's own, else the service's."""
        requests, size, default = caller.requests_per_second, caller.bytes_per_second, self._default
        if requests is None and size is None:
            return default
        return RateLimit(default.requests if requests is None else requests, default.bytes if size is None else size)

    def take(self, caller: Caller, size: int = 0) -> None:
        """Take a request of a caller; OverloadedError where its bucket is empty."""
        bucket = self._bucket(caller)
        if bucket is None:
            return
        limit = bucket.limit
        if (limit.requests and bucket.requests_left < _WHOLE) or (limit.bytes and bucket.bytes_left < _WHOLE):
            self.refused += 1
            raise OverloadedError(
                f"{caller.name} sends more than {_shown(limit)}; nothing was done, try again later",
                retry_after_seconds=bucket.wait_seconds(),
            )
        if limit.requests:
            bucket.requests_left -= 1
        bucket.bytes_left -= size
        bucket.requests_used += 1
        bucket.bytes_used += size

    def charge(self, caller: Caller, size: int) -> float:
        """Take bytes of a request that is under way; the seconds after which its next part is in time."""
        bucket = self._bucket(caller)
        if bucket is None:
            return 0.0
        bucket.bytes_left -= size
        bucket.bytes_used += size
        return -bucket.bytes_left / bucket.limit.bytes if bucket.limit.bytes and bucket.bytes_left < 0 else 0.0

    def counts_bytes(self, caller: Caller) -> bool:
        """Whether the size of a caller's requests has to be known."""
        return self.limit_of(caller).bytes > 0

    def take_usage(self) -> dict[str, Usage]:
        """What callers have used since the last call, by key id; of those that are below their limit, which are all that others
        may have to know of."""
        now, found = self._monotonic(), {}
        for key, bucket in self._buckets.items():
            if bucket.requests_used or bucket.bytes_used or not bucket.is_full(now):
                found[key] = Usage(bucket.requests_used, bucket.bytes_used)
                bucket.requests_used = bucket.bytes_used = 0
        return found

    def charge_elsewhere(self, usage: Mapping[str, Usage]) -> None:
        """Take what callers have used on other nodes from their buckets here."""
        for key, used in usage.items():
            bucket = self._buckets.get(key)
            if bucket is not None:
                limit = bucket.limit
                bucket.requests_left = max(bucket.requests_left - used.requests, -_MOST_DEBT_SECONDS * limit.requests)
                bucket.bytes_left = min(
                    bucket.bytes_left, max(bucket.bytes_left - used.bytes, -_MOST_DEBT_SECONDS * limit.bytes)
                )

    def _bucket(self, caller: Caller) -> _Bucket | None:
        limit = self.limit_of(caller)
        if not limit.requests and not limit.bytes:
            return None
        now = self._monotonic()
        found = self._buckets.get(caller.key_id)
        if found is None or (found.limit is not limit and found.limit != limit):
            if len(self._buckets) >= _MOST_BUCKETS:
                self._buckets = {key: one for key, one in self._buckets.items() if not one.is_full(now)}
            found = self._buckets[caller.key_id] = _Bucket(limit, now)
        else:
            found.refill(now)
        return found


def _shown(limit: RateLimit) -> str:
    parts = [f"{limit.requests} requests"] * bool(limit.requests) + [f"{limit.bytes} bytes"] * bool(limit.bytes)
    return f"{' or '.join(parts)} a second"
