"""Manifest entries (files added and removed) and the manifests themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum

from lakelet.model.data_file import DataFile, IndexFile, Stats


class EntryKind(IntEnum):
    """Whether an entry adds or removes a file; the number is what manifests store."""

    ADD = 0
    DELETE = 1


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """One file added or removed. `partition` is BinaryRow bytes with the arity prefix."""

    kind: EntryKind
    partition: bytes
    bucket: int
    total_buckets: int
    file: DataFile

    def identity(self) -> tuple[bytes, int, int, str]:
        """What identifies a live file: a level upgrade re-adds the same name at another level."""
        return (self.partition, self.bucket, self.file.level, self.file.name)


@dataclass(frozen=True, slots=True)
class ManifestFile:
    """A manifest as the manifest list describes it."""

    name: str
    size: int
    added_files: int
    deleted_files: int
    partition_stats: Stats
    schema_id: int
    min_bucket: int | None = None
    max_bucket: int | None = None
    min_level: int | None = None
    max_level: int | None = None
    min_row_id: int | None = None
    max_row_id: int | None = None


@dataclass(frozen=True, slots=True)
class IndexManifestEntry:
    """One index file added (only live ones are kept in an index manifest)."""

    kind: EntryKind
    partition: bytes
    bucket: int
    file: IndexFile


@dataclass(frozen=True, slots=True)
class BlockPartitions:
    """The number of entries in a block of a manifest, and the range of their partitions."""

    entries: int
    partitions: Stats


BlockFilter = Callable[[Sequence[BlockPartitions]], Sequence[bool]]
"""Which blocks of a manifest may hold entries that are wanted."""
