"""Open a lake by its address."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Mapping

from lakelet.cache.coordinator import TieredCacheCoordinator
from lakelet.cache.settings import CacheSettings
from lakelet.catalog.lake import Lake
from lakelet.catalog.metadata_cache.open import cached_metadata
from lakelet.errors import InvalidError
from lakelet.options import CATALOG_PREFIX, check_connection
from lakelet.storage.open import open_store


def connect(location: str | os.PathLike[str], options: Mapping[str, str] | None = None) -> Lake:
    """The lake at a folder (`./warehouse`) or in a bucket (`s3://bucket/prefix`, with options such as `s3.endpoint`).

    Options `catalog.<name>.<property>` register Iceberg catalogs, with pyiceberg's properties.
    """
    if not isinstance(location, (str, os.PathLike)):
        raise InvalidError(
            f"the warehouse location: expected a path, file://, s3:// or memory://, found {location!r} of type "
            f"{type(location).__name__}"
        )
    check_connection(options or {})
    storage = {key: text for key, text in (options or {}).items() if not key.startswith(CATALOG_PREFIX)}
    store = open_store(os.fspath(location), storage)
    source = cached_metadata(store, CacheSettings.of(options or {}))
    lake = Lake(store, options=options, metadata=source, cache=source.cache)
    # Its memory is given back at once. A table that outlives its lake finds the cache empty, and fills it again.
    weakref.finalize(lake, _close, source.cache)
    return lake


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
