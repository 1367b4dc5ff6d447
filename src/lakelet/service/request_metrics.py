"""Counts and durations of the requests that both edges answered."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict

REST, GRPC = "rest", "grpc"
BOUNDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
# The client went away.
DISCONNECTED = 499


class RequestMetrics:
    """Requests by edge, route, method and status, and their durations by edge and route; used on the event loop alone."""

    def __init__(self) -> None:
        self.requests: dict[tuple[str, str, str, int], int] = defaultdict(int)
        self.buckets: dict[tuple[str, str], list[int]] = {}
        self.seconds: dict[tuple[str, str], float] = defaultdict(float)
        self.running = 0

    def count(self, transport: str, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        self.requests[transport, route, method, status] += 1
        buckets = self.buckets.get((transport, route))
        if buckets is None:
            buckets = self.buckets[transport, route] = [0] * (len(BOUNDS) + 1)
        buckets[bisect_left(BOUNDS, seconds)] += 1
        self.seconds[transport, route] += seconds
