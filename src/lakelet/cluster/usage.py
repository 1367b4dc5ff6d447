"""What a caller has used of its limits."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Usage:
    """Requests, and bytes of requests."""

    requests: int = 0
    bytes: int = 0
