"""The four levels of the metadata cache."""

from __future__ import annotations

from enum import Enum


class CacheLevel(Enum):
    """A tier of the cache; the value is its name in reports."""

    TABLE_METADATA = "TableMetadata"
    SNAPSHOT = "Snapshot"
    SCHEMA = "Schema"
    PARTITION = "Partition"

    @property
    def number(self) -> int:
        """1 to 4, as in the names of metrics."""
        return list(CacheLevel).index(self) + 1


class MetadataLevel(Enum):
    """How much of a table's metadata a caller asks for: the levels up to this one."""

    TABLE_METADATA = 1
    SNAPSHOT = 2
    SCHEMA = 3
    PARTITION = 4
