"""Open the metadata cache of a lake: its source for native tables, with the loader and the listener that go with it."""

from __future__ import annotations

import weakref

from lakelet.cache.bus import InvalidationBus
from lakelet.cache.coordinator import TieredCacheCoordinator
from lakelet.cache.loader import MetadataLoader
from lakelet.cache.settings import CacheSettings
from lakelet.cache.upkeep.codec import TableCodec
from lakelet.catalog.metadata_cache.native_keys import NATIVE_CATALOG
from lakelet.catalog.metadata_cache.native_source import CachedMetadata
from lakelet.catalog.metadata_cache.own_changes import OwnChanges
from lakelet.clock import Clock
from lakelet.events import subscribe
from lakelet.storage.store import ObjectStore

_IN_PROCESS = "memory://"
_NEAR = ("file://", _IN_PROCESS)


def cached_metadata(
    store: ObjectStore,
    settings: CacheSettings | None = None,
    *,
    clock: Clock | None = None,
    bus: InvalidationBus | None = None,
    listens: bool = True,
    parallel: bool | None = None,
) -> CachedMetadata:
    """The source of a store's tables over a cache of its own. One that does not listen learns of changes only by revalidation;
    `parallel` says whether a call of the store is a round trip, which its location tells unless it is given."""
    if parallel is None:
        parallel = "://" in store.location and not store.location.startswith(_NEAR)
    cache = TieredCacheCoordinator(settings, clock=clock, bus=bus, default_catalog=NATIVE_CATALOG)
    source = CachedMetadata(cache, parallel)
    cache.register(NATIVE_CATALOG, lambda: _native_loader(store, source))
    if cache.settings.persist_folder and not store.location.startswith(_IN_PROCESS):
        cache.upkeep.register_codec(NATIVE_CATALOG, _native_codec(weakref.ref(cache)))
        cache.upkeep.persist_in(store.location)
    if listens:
        # The listener does not keep the cache alive; it leaves with it.
        subscription = subscribe(OwnChanges(weakref.ref(cache), store.location, announces=source.parallel))
        weakref.finalize(cache, subscription.close)
    return source


def _native_loader(store: ObjectStore, source: CachedMetadata) -> MetadataLoader:
    from lakelet.catalog.metadata_cache.native_loader import NativeLoader  # noqa: PLC0415 - scans load with it, and few ask for it.

    return NativeLoader(store, source)


def _native_codec(cache: weakref.ref[TieredCacheCoordinator]) -> TableCodec:
    from lakelet.catalog.metadata_cache.native_codec import NativeCodec  # noqa: PLC0415 - most caches are not persisted.

    return NativeCodec(cache)
