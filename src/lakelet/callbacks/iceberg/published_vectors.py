"""Describe deletion vectors as Iceberg does: the Puffin file, where in it a vector lies, and the data file it deletes from.

A vector of 64 bits has the bytes of Iceberg's `deletion-vector-v1`, but most readers refuse one that lies in a file of another
kind. So each index file that is new is copied into a Puffin file, which is named after it and after the attempt. Iceberg has no
vectors of 32 bits: a table with some is not published before they are written anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lakelet.callbacks.iceberg.published_files import FileDescriber
from lakelet.callbacks.iceberg.published_metadata import index_file_of
from lakelet.commit.index_changes import DELETION_VECTORS, read_index_entries
from lakelet.errors import CorruptionError, InvalidError
from lakelet.format.index.deletion_vectors import has_64_bits
from lakelet.format.index.puffin import VectorBlob, blob_offsets, encode_puffin
from lakelet.model.data_file import DeletionVectorRange
from lakelet.model.manifest import IndexManifestEntry
from lakelet.model.snapshot import Snapshot
from lakelet.storage.home import TableHome

_POSITION_DELETES = 1

# The index file that a vector was copied from, and the data file that it deletes from.
_VectorName = tuple[str, str]


class VectorDescriber:
    """Describes the deletion vectors of one table. `published` are rows of the manifests of the version before."""

    def __init__(
        self, home: TableHome, files: FileDescriber, published: Iterable[Mapping[str, Any]], *, place: str
    ) -> None:
        self._home = home
        self._files = files
        self._place = place
        self._published: dict[_VectorName, Mapping[str, Any]] = {
            (name, file["referenced_data_file"]): file
            for file in (row["data_file"] for row in published)
            if (name := index_file_of(file["file_path"])) is not None
        }
        self.puffins: dict[str, bytes] = {}

    def rows(self, snapshot: Snapshot) -> list[dict[str, Any]]:
        """Manifest rows that add all vectors of a snapshot; Puffin files that they need, and are new, are in `puffins`."""
        return [
            {
                "status": 1,
                "snapshot_id": snapshot.id,
                "sequence_number": snapshot.id,
                "file_sequence_number": snapshot.id,
                "data_file": described,
            }
            for entry in read_index_entries(self._home, snapshot)
            if entry.file.index_type == DELETION_VECTORS and entry.file.deletion_vectors
            for described in self._described(entry)
        ]

    def _described(self, entry: IndexManifestEntry) -> list[Mapping[str, Any]]:
        vectors, name = entry.file.deletion_vectors or (), entry.file.name
        places = [self._files.location(entry.partition, entry.bucket, vector.data_file) for vector in vectors]
        found = [self._published.get((name, place)) for place in places]
        known = [file for file, vector in zip(found, vectors, strict=True) if file is not None and _is_of(file, vector)]
        return known if len(known) == len(vectors) else self._copied(entry, places)

    def _copied(self, entry: IndexManifestEntry, places: list[str]) -> list[Mapping[str, Any]]:
        """The vectors of an index file, in a new Puffin file."""
        path = self._home.paths.index(entry.file.name)
        where, data = self._home.where(path), self._home.store.get(path)
        vectors = entry.file.deletion_vectors or ()
        blobs = [
            VectorBlob(_bytes_of(data, vector, where), place, _cardinality(vector, where))
            for vector, place in zip(vectors, places, strict=True)
        ]
        puffin, name = encode_puffin(blobs), self._place.format(entry.file.name)
        if index_file_of(name) != entry.file.name:
            raise InvalidError(f"{where} cannot be published: expected a name like index-<uuid>-<number>")
        self.puffins[name.rsplit("/", 1)[-1]] = puffin
        return [
            {
                "content": _POSITION_DELETES,
                "file_path": name,
                "file_format": "PUFFIN",
                "partition": self._files.partition(entry.partition),
                "record_count": blob.cardinality,
                "file_size_in_bytes": len(puffin),
                "referenced_data_file": blob.data_file,
                "content_offset": offset,
                "content_size_in_bytes": len(blob.data),
            }
            for blob, offset in zip(blobs, blob_offsets(blobs), strict=True)
        ]


def _is_of(file: Mapping[str, Any], vector: DeletionVectorRange) -> bool:
    return bool(file["record_count"] == vector.cardinality and file["content_size_in_bytes"] == vector.length)


def _bytes_of(data: bytes, vector: DeletionVectorRange, where: str) -> bytes:
    found = data[vector.offset : vector.offset + vector.length]
    if len(found) != vector.length:
        raise CorruptionError(
            f"{where}: a deletion vector ends at {vector.offset + vector.length}, the file at {len(data)}"
        )
    if not has_64_bits(found):
        raise InvalidError(
            f"{where} cannot be published: the deletion vector of {vector.data_file} has 32 bits, which Iceberg's readers do not "
            "know; compact the table fully"
        )
    return found


def _cardinality(vector: DeletionVectorRange, where: str) -> int:
    if vector.cardinality is None:
        raise InvalidError(
            f"{where} cannot be published: it is not known how many rows of {vector.data_file} are deleted; compact the table "
            "fully"
        )
    return vector.cardinality
