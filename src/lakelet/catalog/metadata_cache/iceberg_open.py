"""Open the metadata cache of a lake's Iceberg catalogs: their source over the same cache, and the loaders of their tables."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from lakelet.cache.coordinator import TieredCacheCoordinator
from lakelet.cache.loader import MetadataLoader
from lakelet.cache.upkeep.codec import TableCodec
from lakelet.errors import NotFoundError

if TYPE_CHECKING:
    from lakelet.catalog.lake import Lake
    from lakelet.iceberg.metadata.source import IcebergMetadataSource


def iceberg_source(cache: TieredCacheCoordinator) -> IcebergMetadataSource:
    """The metadata source of Iceberg tables over a cache."""
    from lakelet.iceberg.metadata.cached import CachedIcebergMetadata  # noqa: PLC0415 - pyiceberg loads with it.

    return CachedIcebergMetadata(cache)


def load_iceberg(cache: TieredCacheCoordinator, lake: Lake) -> None:
    """Have a cache load tables of all Iceberg catalogs that a lake knows by then."""
    # The cache does not keep the lake alive.
    reference, source = weakref.ref(lake), weakref.ref(cache)

    def find_loader(catalog: str) -> MetadataLoader | None:
        opened, known = reference(), source()
        if opened is None or known is None:
            return None
        try:
            found = opened.catalogs.open(catalog)
        except NotFoundError:
            return None
        from lakelet.iceberg.metadata.cache_loader import IcebergLoader  # noqa: PLC0415 - as above.
        from lakelet.iceberg.metadata.cached import CachedIcebergMetadata  # noqa: PLC0415

        return IcebergLoader(found, CachedIcebergMetadata(known))

    def make_codec() -> TableCodec:
        from lakelet.iceberg.metadata.cache_codec import IcebergCodec  # noqa: PLC0415 - as above.

        return IcebergCodec(source)

    cache.register_others(find_loader)
    cache.upkeep.register_other_codec(make_codec)
