"""The block cache of lookups: one for the process, limited in bytes.

Data files are immutable and their names are never reused. Each `put` gives the limit, which is an option of the table.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from lakelet.cache.lru_cache import LruCache

BlockCache: TypeAlias = LruCache[Any]

BLOCKS: BlockCache = LruCache()
"""The cache of this process."""
