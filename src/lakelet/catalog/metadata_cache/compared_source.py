"""The metadata source of compatibility mode: every answer is the store's, and compared with what the cache would have said.

A difference is counted only where the store said the same before and after the cache was asked: a table that somebody changes
meanwhile is compared again. The cache revalidates at every call here, whatever staleness queries are allowed, for what they are
allowed to be is no difference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from lakelet.catalog.metadata_cache.native_keys import key_of, main_key
from lakelet.commit.metadata.source import UNCACHED
from lakelet.errors import LakeletError
from lakelet.model.manifest import BlockFilter, IndexManifestEntry, ManifestFile
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.model.tag import Tag
from lakelet.storage.home import TableHome
from lakelet.storage.metadata_source import KeptValues, MetadataSource

if TYPE_CHECKING:
    from lakelet.catalog.metadata_cache.native_source import CachedMetadata

T = TypeVar("T")
_TRIES = 3


@dataclass(frozen=True, slots=True)
class ComparedMetadata:
    """Answers from the store, and compares with `cached`."""

    cached: CachedMetadata

    def for_queries(self) -> MetadataSource:
        """Itself: the store's answers are never stale."""
        return self

    def latest_snapshot(self, home: TableHome) -> Snapshot | None:
        """The newest snapshot."""
        return self._compared(home, "the newest snapshot", lambda source: source.latest_snapshot(home))

    def latest_schema(self, home: TableHome) -> TableSchema:
        """The newest schema version."""
        return self._compared(home, "the newest schema", lambda source: source.latest_schema(home))

    def newest(self, home: TableHome) -> tuple[Snapshot | None, TableSchema]:
        """The newest snapshot and schema."""
        return self._compared(home, "the newest snapshot and schema", lambda source: source.newest(home))

    def snapshot(self, home: TableHome, number: int) -> Snapshot | None:
        """The snapshot that has this id now, which no cache keeps."""
        return UNCACHED.snapshot(home, number)

    def tag(self, home: TableHome, name: str) -> Tag | None:
        """The tag of that name, which no cache keeps."""
        return UNCACHED.tag(home, name)

    def tags(self, home: TableHome) -> tuple[Tag, ...]:
        """All tags of the branch, which no cache keeps."""
        return UNCACHED.tags(home)

    def schema(self, home: TableHome, number: int) -> TableSchema:
        """One schema version."""
        return self._compared(home, f"schema {number}", lambda source: source.schema(home, number))

    def manifest_list(self, home: TableHome, name: str) -> tuple[ManifestFile, ...]:
        """The manifests that a list names."""
        return self._compared(home, f"manifest list {name}", lambda source: source.manifest_list(home, name))

    def manifest(
        self,
        home: TableHome,
        name: str,
        columns: Sequence[str] | None = None,
        keep_blocks: BlockFilter | None = None,
    ) -> pa.Table:
        """The entries of a manifest. Where blocks are left out the cache may have more of them, and is not compared."""
        if keep_blocks is not None:
            return UNCACHED.manifest(home, name, columns, keep_blocks)
        return self._compared(home, f"manifest {name}", lambda source: source.manifest(home, name, columns))

    def index_manifest(self, home: TableHome, name: str) -> tuple[IndexManifestEntry, ...]:
        """The index files that an index manifest names."""
        return self._compared(home, f"index manifest {name}", lambda source: source.index_manifest(home, name))

    def kept(self, home: TableHome) -> KeptValues | None:
        """Computed values are never taken from here; those that are put are compared with the ones that were put before."""
        kept = self.cached.kept(home)
        return None if kept is None else _ComparedValues(self.cached, home, kept)

    def _compared(self, home: TableHome, what: str, read: Callable[[MetadataSource], T]) -> T:
        log, table = self.cached.cache.upkeep.differences, key_of(home.paths)
        stored = read(UNCACHED)
        for _ in range(_TRIES):
            found: object
            try:
                found = read(self.cached)
            except LakeletError as error:
                found = error
            if found == stored:
                log.same()
                return stored
            again = read(UNCACHED)
            if again == stored:
                log.different(table, what, found, stored)
                return stored
            stored = again
        return stored


@dataclass(frozen=True, slots=True)
class _ComparedValues:
    """Values of one table that are computed each time, and compared with those that the cache holds."""

    cached: CachedMetadata
    home: TableHome
    inside: KeptValues

    @property
    def max_bytes(self) -> int:
        return self.inside.max_bytes

    def get(self, name: tuple[object, ...], *, to_continue: bool = False) -> Any | None:
        return None

    def put(self, name: tuple[object, ...], value: object, nbytes: int) -> None:
        before = self.inside.get(name)
        log = self.cached.cache.upkeep.differences
        if before is not None and name[0] == "plan":
            if before == value:
                log.same()
            else:
                log.different(main_key(self.home.paths), "a plan", before, value)
        # The newly computed one is right; whatever the cache held is replaced.
        self.inside.put(name, value, nbytes)
