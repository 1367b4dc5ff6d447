"""A unit of reading: files of one bucket that one reader takes, in this process or another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lakelet.model.data_file import DataFile, DeletionVectorRange


@dataclass(frozen=True, slots=True)
class DeletionVector:
    """The deleted rows of a data file: an index file and the place in it."""

    index_path: str
    place: DeletionVectorRange


@dataclass(frozen=True, slots=True)
class Split:
    """Files to read together. `paths` and `deletion_vectors` run parallel to `files`."""

    snapshot_id: int
    partition: bytes
    bucket: int
    total_buckets: int
    files: tuple[DataFile, ...]
    paths: tuple[str, ...]
    deletion_vectors: tuple[DeletionVector | None, ...]

    @property
    def row_count(self) -> int:
        """Rows in the files, deleted ones included."""
        return sum(file.row_count for file in self.files)

    @property
    def size(self) -> int:
        """Bytes of the files."""
        return sum(file.size for file in self.files)

    def single_files(self) -> Iterator[Split]:
        """The same files, a split each."""
        for file, path, vector in zip(self.files, self.paths, self.deletion_vectors, strict=True):
            yield Split(self.snapshot_id, self.partition, self.bucket, self.total_buckets, (file,), (path,), (vector,))
