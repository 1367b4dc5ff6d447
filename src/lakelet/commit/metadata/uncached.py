"""The metadata source without a cache: reads the store at every call.

No other module decodes these files, except the check of a table, which compares their raw bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from lakelet.commit.metadata.version_ids import hinted_id, is_newest, latest_id, schema_ids, tag_names
from lakelet.errors import NotFoundError
from lakelet.format.manifest.index_manifest import decode_index_manifest
from lakelet.format.manifest.manifest_file import decode_manifest, decode_manifest_list
from lakelet.format.metadata.schema_json import decode_schema
from lakelet.format.metadata.snapshot_json import decode_snapshot
from lakelet.format.metadata.tag_json import decode_tag
from lakelet.model.manifest import BlockFilter, IndexManifestEntry, ManifestFile
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.model.tag import Tag
from lakelet.storage.home import TableHome

_READERS = 16


class UncachedMetadata:
    """The `MetadataSource` of tables without one of their own."""

    def for_queries(self) -> UncachedMetadata:
        """Itself: it has no cached state."""
        return self

    def latest_snapshot(self, home: TableHome) -> Snapshot | None:
        """The newest snapshot, None for a table without any."""
        hinted = hinted_id(home)
        found = None if hinted is None else self.snapshot(home, hinted)
        if hinted is not None and found is not None and is_newest(home, hinted):
            return found
        while True:
            number = latest_id(home)
            if number is None:
                return None
            found = self.snapshot(home, number)
            # Only a rollback or a drop between the two calls makes it vanish; then look again.
            if found is not None:
                return found

    def latest_schema(self, home: TableHome) -> TableSchema:
        """The newest schema version; NotFoundError where there is no table."""
        ids = schema_ids(home)
        while ids:
            try:
                return self.schema(home, ids[-1])
            except NotFoundError:
                # It was dropped in between, or the branch recreated.
                before, ids = ids, schema_ids(home)
                if ids == before:
                    raise
        raise NotFoundError(f"{home.where(home.paths.branch_root)} is not a table: it has no schema")

    def newest(self, home: TableHome) -> tuple[Snapshot | None, TableSchema]:
        """The newest snapshot, and the newest schema version after it."""
        # A schema read after the snapshot knows every column of its files.
        snapshot = self.latest_snapshot(home)
        return snapshot, self.latest_schema(home)

    def snapshot(self, home: TableHome, number: int) -> Snapshot | None:
        """The snapshot of that id, or None."""
        path = home.paths.snapshot(number)
        try:
            return decode_snapshot(home.store.get(path), path=home.where(path))
        except NotFoundError:
            return None

    def tag(self, home: TableHome, name: str) -> Tag | None:
        """The tag of that name, or None."""
        path = home.paths.tag(name)
        try:
            return decode_tag(home.store.get(path), name=name, path=home.where(path))
        except NotFoundError:
            return None

    def tags(self, home: TableHome) -> tuple[Tag, ...]:
        """All tags, by snapshot id and name; those deleted while they are read are left out."""
        names = tag_names(home)
        if not names:
            return ()
        with ThreadPoolExecutor(min(_READERS, len(names))) as pool:
            found = pool.map(lambda name: self.tag(home, name), names)
            return tuple(sorted((tag for tag in found if tag is not None), key=lambda tag: (tag.snapshot_id, tag.name)))

    def schema(self, home: TableHome, number: int) -> TableSchema:
        """One schema version."""
        path = home.paths.schema(number)
        return decode_schema(home.store.get(path), path=home.where(path))

    def manifest_list(self, home: TableHome, name: str) -> tuple[ManifestFile, ...]:
        """The manifests that a list names."""
        path = home.paths.manifest(name)
        return tuple(decode_manifest_list(home.store.get(path), path=home.where(path)))

    def manifest(
        self,
        home: TableHome,
        name: str,
        columns: Sequence[str] | None = None,
        keep_blocks: BlockFilter | None = None,
    ) -> pa.Table:
        """The entries of a manifest, without the blocks that fail."""
        path = home.paths.manifest(name)
        return decode_manifest(home.store.get(path), path=home.where(path), columns=columns, keep=keep_blocks)

    def index_manifest(self, home: TableHome, name: str) -> tuple[IndexManifestEntry, ...]:
        """The index files that an index manifest names."""
        path = home.paths.manifest(name)
        return tuple(decode_index_manifest(home.store.get(path), path=home.where(path)))

    def kept(self, home: TableHome) -> None:
        """Nothing is kept."""
