"""Mark rows of an append table as deleted, in deletion vectors, while their files stay as they are.

    places among the visible rows ─ positions in the file ─ united with the vector that the file has ─ index files ─ messages

A vector lies in an index file together with others, which are taken along: a table without buckets replaces the index files that
hold vectors of marked files, a bucket has one index file, that is replaced. Vectors are kept encoded, so that memory is a few
bits per deleted row. This owns the index files until their messages are committed.

Files of other formats than Parquet and ORC are rewritten as before: Java Paimon finds no positions in them, and could not read
what is left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lakelet.commit.index_changes import DELETION_VECTORS, read_index_entries
from lakelet.commit.metadata.table_identity import table_uuid
from lakelet.format.data.orc_file import NAME as ORC
from lakelet.format.data.parquet_file import NAME as PARQUET
from lakelet.model.bucket_mode import BucketMode, bucket_mode
from lakelet.model.commit_message import CommitMessage
from lakelet.model.data_file import IndexFile
from lakelet.model.manifest import IndexManifestEntry
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.model.split import DeletionVector, Split
from lakelet.options import (
    DELETION_VECTOR_INDEX_FILE_TARGET_SIZE,
    DELETION_VECTORS_BITMAP64,
    DELETION_VECTORS_ENABLED,
    TableOptions,
)
from lakelet.read.split_files import deleted_positions, files_of, vector_positions
from lakelet.sink.write.vector_files import EncodedVector, write_vectors
from lakelet.storage.home import TableHome

_Bucket = tuple[bytes, int, int]
_POSITIONED = (f".{PARQUET}", f".{ORC}")


def marks_rows(schema: TableSchema) -> bool:
    """Whether rows of this table are deleted by marks."""
    return not schema.primary_keys and TableOptions(schema.options).get(DELETION_VECTORS_ENABLED)


def takes_marks(one: Split) -> bool:
    """Whether all readers find the rows of a file, given as a split of its own, by their positions."""
    return one.files[0].name.endswith(_POSITIONED)


@dataclass(slots=True)
class MarkedRows:
    """The rows to be deleted from files of one snapshot; each file is marked once."""

    home: TableHome
    schema: TableSchema
    snapshot: Snapshot
    _marked: dict[_Bucket, dict[str, EncodedVector]] = field(default_factory=dict)
    _written: list[IndexFile] = field(default_factory=list)

    def mark(self, one: Split, places: NDArray[np.int64]) -> None:
        """Marks rows of a file, given as a split of its own, by their numbers among its visible rows, ascending."""
        (file,) = files_of([one])
        before = deleted_positions(self.home, file)
        positions = places
        if before is not None:
            visible = np.ones(file.data.row_count, np.bool_)
            visible[before] = False
            visible[np.flatnonzero(visible)[places]] = False
            positions = np.flatnonzero(~visible)
        bucket = (one.partition, one.bucket, one.total_buckets)
        self._marked.setdefault(bucket, {})[file.data.name] = self._encoded(file.data.name, positions)

    def messages(self) -> tuple[CommitMessage, ...]:
        """The messages of the commit that deletes the marked rows; their index files are written."""
        if not self._marked:
            return ()
        entries = [
            entry for entry in read_index_entries(self.home, self.snapshot) if entry.file.index_type == DELETION_VECTORS
        ]
        has_buckets = bucket_mode(self.schema) is BucketMode.HASH_FIXED
        target = None if has_buckets else TableOptions(self.schema.options).get(DELETION_VECTOR_INDEX_FILE_TARGET_SIZE)
        uuid = table_uuid(self.home)
        found: list[CommitMessage] = []
        for bucket, marked in self._marked.items():
            old = [entry for entry in entries if (entry.partition, entry.bucket) == bucket[:2]]
            if not has_buckets:
                old = [entry for entry in old if any(name in marked for name in _data_files(entry))]
            for index in write_vectors(self.home, (*self._taken_along(old, marked), *marked.values()), target):
                self._written.append(index)
                message = CommitMessage(
                    *bucket,
                    (),
                    base_snapshot=self.snapshot.id,
                    table_uuid=uuid,
                    sequenced_at=(self.snapshot.id, self.snapshot.delta_manifest_list),
                    old_vectors=tuple(sorted(entry.file.name for entry in old)),
                    new_vectors=index,
                    marked_files=tuple(marked),
                )
                found.append(message)
        return tuple(found)

    def remove(self) -> None:
        """Removes what was written for messages that are not going to be committed."""
        self.home.store.delete([self.home.paths.index(index.name) for index in self._written])

    def _taken_along(
        self, old: Sequence[IndexManifestEntry], marked: dict[str, EncodedVector]
    ) -> Iterator[EncodedVector]:
        """The vectors of files that are not marked."""
        for entry in old:
            path = self.home.paths.index(entry.file.name)
            for place in entry.file.deletion_vectors or ():
                if place.data_file in marked:
                    continue
                positions = vector_positions(self.home, DeletionVector(path, place), self.snapshot.id)
                yield self._encoded(place.data_file, positions)

    def _encoded(self, name: str, positions: NDArray[np.int64]) -> EncodedVector:
        bits64 = TableOptions(self.schema.options).get(DELETION_VECTORS_BITMAP64)
        return EncodedVector.of(name, positions, bits64=bits64)


def _data_files(entry: IndexManifestEntry) -> Iterator[str]:
    return (place.data_file for place in entry.file.deletion_vectors or ())
