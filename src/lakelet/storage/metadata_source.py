"""The protocol of metadata reads, behind their single entry point `commit/metadata/source`.

All reads of a table's metadata go through a source: the store itself (`commit/metadata/uncached`) or one that caches. Two kinds
of reads are distinguished:

- **Pointers** may change at every call: which snapshot and schema are newest, which snapshot has an id (a rollback reuses ids),
  which snapshot a tag refers to. A source that caches them revalidates them at every call; only `for_queries` may return stale
  ones, where its owner wants that.
- **Values** never change under their key: manifest lists, manifests and index manifests, whose names hold a random part, and
  schema versions as long as the newest one is known to be the same. They may be cached without revalidation. A snapshot is a
  value once it is known by its id and its delta manifest list.

Schemas, snapshots and tags belong to a branch, so that a key of theirs has `paths.branch_root` in it; manifests belong to the
table. A source serves any number of tables: each read names the home it is about. The result is shared between callers, which
never modify it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from lakelet.model.manifest import BlockFilter, IndexManifestEntry, ManifestFile
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.model.tag import Tag

if TYPE_CHECKING:
    from lakelet.storage.home import TableHome


class KeptValues(Protocol):
    """Values that are computed from a table's immutable metadata, kept within the limits of a cache; for any number of threads.

    A name identifies a value for good, such as that of something computed from one snapshot, known by its id and its delta
    manifest list. A value is shared between callers, which never modify it.
    """

    @property
    def max_bytes(self) -> int:
        """The size from which on a value is not kept."""
        ...

    def get(self, name: tuple[object, ...], *, to_continue: bool = False) -> Any | None:
        """The value, None where there is none. With `to_continue` it is needed for the one of a later version."""
        ...

    def put(self, name: tuple[object, ...], value: object, nbytes: int) -> None:
        """Keep a value of this size."""
        ...


class MetadataSource(Protocol):
    """Reads the metadata of tables; safe to share between threads.

    A file that is not there is NotFoundError, unless None is documented for it; damaged bytes are CorruptionError.
    """

    def for_queries(self) -> MetadataSource:
        """The same source for readers: its pointers may be as stale as the source's owner allows.

        All other callers get what the store says at the time of the call, if only after a revalidation: a commit that relied on
        a stale pointer would be based on an outdated version of the table.
        """
        ...

    # ------------------------------------------------------------------ pointers

    def latest_snapshot(self, home: TableHome) -> Snapshot | None:
        """The newest snapshot of the branch, None before the first commit."""
        ...

    def latest_schema(self, home: TableHome) -> TableSchema:
        """The newest schema version of the branch; NotFoundError where there is no table."""
        ...

    def newest(self, home: TableHome) -> tuple[Snapshot | None, TableSchema]:
        """The newest snapshot and a schema that knows every column of its files; NotFoundError where there is no table."""
        ...

    def snapshot(self, home: TableHome, number: int) -> Snapshot | None:
        """The snapshot that has this id now, None where there is none."""
        ...

    def tag(self, home: TableHome, name: str) -> Tag | None:
        """The tag of that name, None where there is none."""
        ...

    def tags(self, home: TableHome) -> tuple[Tag, ...]:
        """All tags of the branch, by snapshot id and name."""
        ...

    # ------------------------------------------------------------------ values

    def schema(self, home: TableHome, number: int) -> TableSchema:
        """One schema version."""
        ...

    def manifest_list(self, home: TableHome, name: str) -> tuple[ManifestFile, ...]:
        """The manifests that a list names, oldest first."""
        ...

    def manifest(
        self,
        home: TableHome,
        name: str,
        columns: Sequence[str] | None = None,
        keep_blocks: BlockFilter | None = None,
    ) -> pa.Table:
        """The entries of a manifest: these columns of them, all where none are named.

        Blocks that fail `keep_blocks` may be left out, and may as well be there: who gives it filters the entries after that.
        """
        ...

    def index_manifest(self, home: TableHome, name: str) -> tuple[IndexManifestEntry, ...]:
        """The index files that an index manifest names."""
        ...

    # ------------------------------------------------------------------ what is computed from values

    def kept(self, home: TableHome) -> KeptValues | None:
        """Where values computed from the table's metadata are kept; None where they are not."""
        ...
