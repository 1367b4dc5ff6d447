"""Values of one table in the partition tier, named by what identifies them for good, such as the manifests of a snapshot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakelet.cache.coordinator import TieredCacheCoordinator
from lakelet.cache.keys import DerivedCacheKey, TableCacheKey
from lakelet.cache.level import CacheLevel

if TYPE_CHECKING:
    from lakelet.cache.trace import CacheTrace


@dataclass(frozen=True, slots=True)
class TableValues:
    """Values of one table, of all its branches: they are named by what no two branches share."""

    cache: TieredCacheCoordinator
    table: TableCacheKey
    trace: CacheTrace | None = None

    @property
    def max_bytes(self) -> int:
        """The size from which on a value is not kept."""
        return min(self.cache.tiers[CacheLevel.PARTITION].limits.max_bytes, self.cache.tiers.max_bytes) // 2

    def get(self, name: tuple[object, ...], *, to_continue: bool = False) -> Any | None:
        """The value, None where there is none. With `to_continue` it is needed for the one of a later version."""
        found = self.cache.tiers[CacheLevel.PARTITION].get(DerivedCacheKey(self.table, name))
        if self.trace is not None and name[0] in ("plan", "view"):
            if not to_continue:
                self.trace.note("plan made" if found is None else "plan kept")
            elif found is not None:
                self.trace.note("plan continued")
        return found

    def put(self, name: tuple[object, ...], value: object, nbytes: int) -> None:
        """Keep a value of this size."""
        if nbytes <= self.max_bytes:
            self.cache.tiers[CacheLevel.PARTITION].put(DerivedCacheKey(self.table, name), value, nbytes)
