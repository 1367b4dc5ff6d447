"""Leases: work that one node at a time does, for a limited time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease as its holder knows it. Of two leases of one name the later has the higher fencing token, also where the first
    holder does not know yet that it lost its own: whoever writes under a lease has the token compared at the write."""

    name: str
    holder: str
    fence: int

    @property
    def value(self) -> str:
        """What is stored while the lease is held."""
        return f"{self.holder} {self.fence}"


class Leases(Protocol):
    """Grants leases. A lease saves work that is done twice; correctness never depends on it."""

    async def acquire(self, name: str, seconds: float) -> Lease | None:
        """The lease for this many seconds, also where this holder has it already; None while another holder has it."""
        ...

    async def renew(self, lease: Lease, seconds: float) -> bool:
        """Hold the lease for this many seconds from now; False if it was lost."""
        ...

    async def release(self, lease: Lease) -> None:
        """Give the lease back; nothing happens if it was lost."""
        ...
