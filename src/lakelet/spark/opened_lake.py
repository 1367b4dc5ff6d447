"""Open the lake of a Spark job with the connection options among the job's options.

Jobs of one driver open the same warehouse again and again, a stream at every batch. What its cache knows of tables is kept: with
the cache's default staleness a job sees the newest version nevertheless.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from lakelet.cache.lru_cache import LruCache
from lakelet.catalog.connect import KeptCache
from lakelet.catalog.lake import Lake
from lakelet.options.connection import CATALOG_PREFIX, CONNECTION_OPTIONS

_CONNECTION = frozenset(option.name for option in CONNECTION_OPTIONS)
_MOST_CACHES = 4
_CREDENTIALS = "AWS_"

_CACHES: LruCache[KeptCache] = LruCache()


def open_lake(warehouse: str | os.PathLike[str], options: Mapping[str, str] | None = None) -> Lake:
    """The lake that the tables of a job are in."""
    given = {str(key): str(value) for key, value in (options or {}).items()}
    own = {key: value for key, value in given.items() if key in _CONNECTION or key.startswith(CATALOG_PREFIX)}
    location = os.fspath(warehouse)
    place = location if "://" in str(location) else os.path.abspath(location)
    # What other credentials may read is another cache's.
    secrets = tuple(sorted(pair for pair in os.environ.items() if pair[0].startswith(_CREDENTIALS)))
    key = (place, tuple(sorted(own.items())), secrets)
    cache = _CACHES.get(key)
    if cache is None:
        cache = KeptCache()
        _CACHES.put(key, cache, limit=_MOST_CACHES)
    return cache.connect(location, own)
