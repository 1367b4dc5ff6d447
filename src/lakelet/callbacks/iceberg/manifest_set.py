"""The manifests of a new Iceberg snapshot: those of the one before, without removed files, and one of the files that were added.

A manifest none of whose files are removed is used again as it is. Of others live entries become EXISTING, removed ones DELETED.
Small manifests are merged once there are many of them, so that neither readers nor later publications open one per commit.

Deletion vectors have manifests of their own. They are written anew when vectors have changed, since a table's index manifest,
too, names all of them.

In version 3 the rows of each new manifest get numbers that no row has had; a file that is moved into a new manifest takes its
numbers along.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.callbacks.iceberg.manifest_files import (
    ADDED,
    DATA,
    DELETED,
    DELETES,
    EXISTING,
    FIRST_ROW_ID,
    ManifestCodec,
    PublishedManifest,
    is_empty,
    row_counts,
)
from lakelet.callbacks.iceberg.published_metadata import Metadata, PublishedFolder, current_snapshot
from lakelet.errors import CorruptionError
from lakelet.options import (
    ICEBERG_COMPACT_MAX_FILES,
    ICEBERG_COMPACT_MIN_FILES,
    MANIFEST_TARGET_FILE_SIZE,
    TableOptions,
)
from lakelet.storage.home import TableHome


class ManifestSet:
    """The manifest files of one publication, and its manifest list."""

    def __init__(
        self,
        home: TableHome,
        folder: PublishedFolder,
        codec: ManifestCodec,
        options: TableOptions,
        snapshot_id: int,
    ) -> None:
        self._home = home
        self._folder = folder
        self._codec = codec
        self._options = options
        self._snapshot_id = snapshot_id
        self._attempt = home.ids.uuid()
        self._target_bytes = options.get(MANIFEST_TARGET_FILE_SIZE)
        self._made: dict[str, pa.StructArray] = {}
        self._bytes: dict[str, bytes] = {}
        self._puffins: dict[str, bytes] = {}
        self._written: list[str] = []

    def manifests(
        self, base: Metadata | None, added: Sequence[dict[str, Any]], removed: frozenset[str]
    ) -> list[PublishedManifest]:
        """The manifests of data files of the snapshot; new ones are in memory until `write`."""
        kept = [one for one in self._of(base) if one.content == DATA and not is_empty(one)]
        found: list[PublishedManifest] = []
        there: set[str] = set()
        names = {row["data_file"]["file_path"] for row in added}
        for manifest in kept:
            if removed or names:
                manifests, seen = self._without(manifest, removed, names) if removed else ([manifest], set())
                found += manifests
                there |= seen
            else:
                found.append(manifest)
        # A file whose level alone has changed is there already.
        fresh = [row for row in added if row["data_file"]["file_path"] not in there]
        if fresh:
            found += self._encoded(self._codec.entries(fresh), DATA)
        return self._merged(found)

    def kept_vectors(self, base: Metadata) -> list[PublishedManifest]:
        """The manifests of deletion vectors of the snapshot before."""
        return [one for one in self._of(base) if one.content == DELETES]

    def new_vectors(self, rows: Sequence[dict[str, Any]], puffins: Mapping[str, bytes]) -> list[PublishedManifest]:
        """Manifests of these deletion vectors, which are in these Puffin files as far as they are new."""
        self._puffins.update(puffins)
        return self._encoded(self._codec.entries(rows), DELETES) if rows else []

    def vector_rows(self, base: Metadata | None) -> list[dict[str, Any]]:
        """The rows of the deletion vectors that the snapshot before has."""
        rows: list[dict[str, Any]] = []
        for manifest in self._of(base):
            if manifest.content == DELETES:
                path = self._own(manifest.path)
                rows += self._live(manifest, self._home.store.get(path), path).to_pylist()
        return rows

    @property
    def puffin_place(self) -> str:
        """Where Puffin files of this attempt go, `{}` standing for the name of the index file."""
        return self._home.where(self._folder.path("{}." + f"{self._attempt}.puffin"))

    @staticmethod
    def numbered(manifests: Sequence[PublishedManifest], first: int) -> tuple[list[PublishedManifest], int]:
        """The manifests, the rows of those of data files numbered from `first` on where they are not; and the next number."""
        found: list[PublishedManifest] = []
        for manifest in manifests:
            if manifest.content == DATA and manifest.first_row_id is None:
                found.append(manifest.numbered(first))
                first += sum(row_counts(manifest))
            else:
                found.append(manifest)
        return found, first

    def write(self, manifests: Sequence[PublishedManifest], parent: int | None) -> str:
        """Write the new manifests, what they name, and their list, durably; the path of the list."""
        store = self._home.store
        for name, data in self._puffins.items():
            self._put(self._folder.path(name), data)
        for manifest in manifests:
            name = manifest.path.rsplit("/", 1)[-1]
            if name in self._bytes:
                self._put(self._folder.path(name), self._bytes[name])
        path = self._folder.path(f"snap-{self._snapshot_id}-{self._attempt}.avro")
        self._put(path, self._codec.encode_list(manifests, snapshot_id=self._snapshot_id, parent=parent))
        store.sync(self._written)
        return path

    def remove(self) -> None:
        """Remove what was written, for another publication came first."""
        self._home.store.delete(self._written)

    def _put(self, path: str, data: bytes) -> None:
        self._written.append(path)
        self._home.store.put(path, data, deferred=True)

    def _of(self, base: Metadata | None) -> list[PublishedManifest]:
        published = None if base is None else current_snapshot(base)
        if published is None:
            return []
        path = self._own(published["manifest-list"])
        return self._codec.decode_list(self._home.store.get(path), path=self._home.where(path))

    def _own(self, location: str) -> str:
        path = self._folder.name_of(location)
        if path is None:
            raise CorruptionError(
                f"{location} is named by {self._home.where(self._folder.folder)} but is no file of it"
            )
        return path

    def _without(
        self, manifest: PublishedManifest, removed: frozenset[str], names: set[str]
    ) -> tuple[list[PublishedManifest], set[str]]:
        """The manifest without removed files, and which of the added files it has."""
        path = self._own(manifest.path)
        data = self._home.store.get(path)
        status, paths = self._codec.decode_paths(data, path=self._home.where(path))
        live = set(paths.filter(pc.not_equal(status, DELETED)).to_pylist())
        there = live & names
        gone = (live & removed) - there
        if not gone:
            return [manifest], there
        entries = self._live(manifest, data, path)
        is_gone = pc.is_in(entries.field("data_file").field("file_path"), value_set=pa.array(sorted(gone)))
        status = pc.if_else(is_gone, pa.scalar(DELETED, pa.int32()), pa.scalar(EXISTING, pa.int32()))
        snapshots = pc.if_else(is_gone, pa.scalar(self._snapshot_id, pa.int64()), entries.field("snapshot_id"))
        return self._encoded(self._replaced(entries, status, snapshots), DATA), there

    def _live(self, manifest: PublishedManifest, data: bytes, path: str) -> pa.StructArray:
        """The live entries of a manifest, each with the number of its first row, if rows have numbers."""
        entries = self._codec.decode_entries(data, path=self._home.where(path)).cast(self._codec.entry_type)
        entries = entries.filter(pc.not_equal(entries.field("status"), DELETED))
        return entries if manifest.first_row_id is None else _with_row_ids(entries, manifest.first_row_id)

    def _replaced(self, entries: pa.StructArray, status: pa.Array, snapshots: pa.Array) -> pa.StructArray:
        columns = [status, snapshots, *(entries.field(place) for place in range(2, entries.type.num_fields))]
        return pa.StructArray.from_arrays(columns, fields=list(self._codec.entry_type))

    def _encoded(self, entries: pa.StructArray, content: int) -> list[PublishedManifest]:
        """Manifests of these rows of about the target size."""
        data = self._codec.encode_entries(entries, content)
        parts = min(len(entries), -(-len(data) // self._target_bytes))
        if parts > 1:
            size = -(-len(entries) // parts)
            slices = [entries.slice(start, size) for start in range(0, len(entries), size)]
            return [self._keep(each, content, self._codec.encode_entries(each, content)) for each in slices]
        return [self._keep(entries, content, data)]

    def _keep(self, entries: pa.StructArray, content: int, data: bytes) -> PublishedManifest:
        name = f"{self._attempt}-m{len(self._made)}.avro"
        self._made[name], self._bytes[name] = entries, data
        path = self._home.where(self._folder.path(name))
        return self._codec.described(entries, content, path=path, length=len(data), snapshot_id=self._snapshot_id)

    def _merged(self, manifests: list[PublishedManifest]) -> list[PublishedManifest]:
        """The manifests, small ones merged where there are many."""
        small = [one for one in manifests if one.length < self._target_bytes * 2 // 3]
        size = sum(one.length for one in small)
        if len(small) < self._options.get(ICEBERG_COMPACT_MIN_FILES) or (
            len(small) < self._options.get(ICEBERG_COMPACT_MAX_FILES) and size < self._target_bytes
        ):
            return manifests
        if len(small) < 2:
            return manifests
        entries = pa.concat_arrays([self._settled(one) for one in small])
        chosen = {one.path for one in small}
        return [*(one for one in manifests if one.path not in chosen), *self._encoded(entries, DATA)]

    def _settled(self, manifest: PublishedManifest) -> pa.StructArray:
        """The entries of a manifest, those of earlier snapshots as EXISTING and without what these removed."""
        name = manifest.path.rsplit("/", 1)[-1]
        if name in self._made:
            return self._made[name]
        path = self._own(manifest.path)
        entries = self._live(manifest, self._home.store.get(path), path)
        is_new = pc.and_(
            pc.equal(entries.field("snapshot_id"), self._snapshot_id), pc.equal(entries.field("status"), ADDED)
        )
        status = pc.if_else(is_new, pa.scalar(ADDED, pa.int32()), pa.scalar(EXISTING, pa.int32()))
        return self._replaced(entries, status, entries.field("snapshot_id"))


def _with_row_ids(entries: pa.StructArray, first: int) -> pa.StructArray:
    """Live entries of a manifest whose rows are numbered from `first`, each with its own number."""
    file = entries.field("data_file")
    own = file.field(FIRST_ROW_ID)
    counted = pc.if_else(own.is_null(), file.field("record_count"), 0)
    before = pc.subtract(pc.cumulative_sum(counted), counted)
    numbers = pc.coalesce(own, pc.add(before, first))
    files = pa.StructArray.from_arrays(
        [numbers if field.name == FIRST_ROW_ID else file.field(field.name) for field in file.type],
        fields=list(file.type),
    )
    return pa.StructArray.from_arrays(
        [files if field.name == "data_file" else entries.field(field.name) for field in entries.type],
        fields=list(entries.type),
    )
