"""The metadata source of a table: its own (a cache), or the store.

Every read of a snapshot, a schema, a manifest or a tag passes through here, be it by the functions of
`commit/metadata/snapshots`, `commit/metadata/schemas`, `commit/metadata/manifests` and `commit/versions/tags` or directly:
a table whose home has a source of its own is answered by it, every other one by the store. A pickled home loses
its source, so that executors read from the store what they are asked to read.
"""

from __future__ import annotations

from lakelet.commit.metadata.uncached import UncachedMetadata
from lakelet.storage.home import TableHome
from lakelet.storage.metadata_source import MetadataSource

UNCACHED = UncachedMetadata()
"""The source that reads the store at every call."""


def metadata(home: TableHome) -> MetadataSource:
    """The metadata source of this table."""
    return UNCACHED if home.metadata is None else home.metadata
