"""Adaptive size: the cache shrinks where memory is scarce, and grows again up to its configured size.

    memory in use > 80 %      the limits become 80 % of what they are, but no less than a tenth of the configured ones
    memory in use < 50 %      they become 120 %, but no more than the configured ones

What is in use is looked up at most every ten seconds, by whoever comes to cache something.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from lakelet.cache.upkeep.memory_use import MemoryUse, memory_use

_LOG = logging.getLogger(__name__)
_SCARCE = 0.8
_PLENTY = 0.5
_SHRINK = 0.8
_GROW = 1.2
LEAST_SHARE = 0.1


def adapted_share(share: float, used: float) -> float:
    """The share of the configured size that is right when this share of memory is in use."""
    if used > _SCARCE:
        return max(share * _SHRINK, LEAST_SHARE)
    if used < _PLENTY:
        return min(share * _GROW, 1.0)
    return share


class AdaptiveSize:
    """Keeps the share of the configured size that is in force."""

    def __init__(self, resize: Callable[[float], None], look: Callable[[], MemoryUse | None] = memory_use) -> None:
        self._resize = resize
        self._look = look
        self.share = 1.0

    def adjust(self) -> float:
        """Look at the memory in use, and change the size if that is called for; the share now in force."""
        found = self._look()
        if found is None:
            return self.share
        share = adapted_share(self.share, found.ratio)
        if share != self.share:
            if share < self.share and self.share == 1.0:
                _LOG.warning(
                    "memory is scarce (%.0f %% in use): the metadata cache shrinks; cache.adaptive-size = false keeps its size",
                    found.ratio * 100,
                )
            elif share == 1.0:
                _LOG.info("memory is no longer scarce: the metadata cache has its configured size again")
            self.share = share
            self._resize(share)
        return self.share

    def restore(self) -> None:
        """Go back to the configured size, when the adaption is switched off."""
        if self.share != 1.0:
            self.share = 1.0
            self._resize(1.0)
