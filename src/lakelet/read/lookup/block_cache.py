"""What lookups have read, kept in memory: one cache for the process, weighed in bytes.

Data files never change and their names are never used again. Each `put` names the limit: tables differ in what they allow.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from lakelet.cache.lru_cache import LruCache

BlockCache: TypeAlias = LruCache[Any]

BLOCKS: BlockCache = LruCache()
"""The cache of this process."""
