"""The one door to the metadata of a table.

Whoever asks for a snapshot, a schema, a manifest or a tag comes through here, be it by the functions of
`commit/metadata/snapshots`, `commit/metadata/schemas`, `commit/metadata/manifests` and `commit/versions/tags` or by itself:
a table whose home brings a source of its own is answered by it, every other one by the store. A home that was pickled has
none, so that executors read what they are asked to read.
"""

from __future__ import annotations

from lakelet.commit.metadata.uncached import UncachedMetadata
from lakelet.storage.home import TableHome
from lakelet.storage.metadata_source import MetadataSource

UNCACHED = UncachedMetadata()
"""The source that reads the store at every call."""


def metadata(home: TableHome) -> MetadataSource:
    """What answers questions about the metadata of this table."""
    return UNCACHED if home.metadata is None else home.metadata
