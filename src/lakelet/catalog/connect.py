"""Open a lake by its address."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Mapping

from lakelet.cache.bus import InvalidationBus
from lakelet.cache.coordinator import TieredCacheCoordinator
from lakelet.cache.settings import CacheSettings
from lakelet.catalog.lake import Lake
from lakelet.catalog.metadata_cache.native_source import CachedMetadata
from lakelet.catalog.metadata_cache.open import cached_metadata
from lakelet.errors import InvalidError
from lakelet.options import CATALOG_PREFIX, check_connection
from lakelet.storage.open import open_store
from lakelet.storage.store import ObjectStore


def connect(
    location: str | os.PathLike[str], options: Mapping[str, str] | None = None, *, bus: InvalidationBus | None = None
) -> Lake:
    """The lake at a folder (`./warehouse`) or in a bucket (`s3://bucket/prefix`, with options such as `s3.endpoint`).

    Options `catalog.<name>.<property>` register Iceberg catalogs, with pyiceberg's properties. A `bus` tells the lake's metadata
    cache of changes that other processes make.
    """
    store = _store(location, options or {})
    source = cached_metadata(store, CacheSettings.of(options or {}), bus=bus)
    lake = Lake(store, options=options, metadata=source, cache=source.cache)
    # Its memory is given back at once. A table that outlives its lake finds the cache empty, and fills it again.
    weakref.finalize(lake, _close, source.cache)
    return lake


class KeptCache:
    """A metadata cache for lakes of one location and the same options that are opened one after another."""

    def __init__(self) -> None:
        self._source: CachedMetadata | None = None
        self._lock = threading.Lock()

    def connect(self, location: str | os.PathLike[str], options: Mapping[str, str]) -> Lake:
        """The lake, with this cache."""
        store = _store(location, options)
        with self._lock:
            if self._source is None:
                self._source = cached_metadata(store, CacheSettings.of(options))
                weakref.finalize(self, _close, self._source.cache)
        return Lake(store, options=options, metadata=self._source, cache=self._source.cache)


def _store(location: str | os.PathLike[str], options: Mapping[str, str]) -> ObjectStore:
    if not isinstance(location, (str, os.PathLike)):
        raise InvalidError(
            f"the warehouse location: expected a path, file://, s3:// or memory://, found {location!r} of type "
            f"{type(location).__name__}"
        )
    check_connection(options)
    storage = {key: text for key, text in options.items() if not key.startswith(CATALOG_PREFIX)}
    return open_store(os.fspath(location), storage)


def _close(cache: TieredCacheCoordinator) -> None:
    """Give the memory of a lake's cache back, after what is to be persisted."""
    if not threading.main_thread().is_alive():
        # The process ends, and waits for nobody: threads that are inside of a library are waited for here.
        cache.close()
    elif cache.upkeep.has_changes:
        # The lake may have been collected at any moment, also by a thread that holds a lock of the cache.
        threading.Thread(target=cache.close, name="lakelet-cache-close").start()
    else:
        cache.stop()
        cache.release()
