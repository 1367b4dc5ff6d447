"""A unit of reading: files of one bucket that one reader takes, in this process or another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from lakelet.model.data_file import DataFile, DeletionVectorRange


@dataclass(frozen=True, slots=True)
class DeletionVector:
    """The deleted rows of a data file: an index file and the place in it."""

    index_path: str
    place: DeletionVectorRange

    @property
    def index_name(self) -> str:
        """The name of the index file."""
        return self.index_path.rsplit("/", 1)[-1]


@dataclass(frozen=True, slots=True)
class Split:
    """Files to read together. `paths` and `deletion_vectors` run parallel to `files`.

    Where `needs_merge`, several of the files hold rows of the same key, or some files hold deletes: the files are whole sections
    of a bucket's tree, and only the newest row of each key is visible. Otherwise every row of every file is visible. `branch`
    names the branch of the files, where it is not the branch that is read.
    """

    snapshot_id: int
    partition: bytes
    bucket: int
    total_buckets: int
    files: tuple[DataFile, ...]
    paths: tuple[str, ...]
    deletion_vectors: tuple[DeletionVector | None, ...]
    needs_merge: bool = False
    branch: str | None = None

    @property
    def row_count(self) -> int:
        """Rows in the files, deleted ones included."""
        return sum(file.row_count for file in self.files)

    @property
    def least_rows(self) -> int:
        """A lower bound of the rows that a read of the split without a condition gives."""
        if self.needs_merge:
            return 0
        found = 0
        for file, vector in zip(self.files, self.deletion_vectors, strict=True):
            gone = 0 if vector is None else vector.place.cardinality
            found += 0 if gone is None else file.row_count - gone
        return found

    @property
    def size(self) -> int:
        """Bytes of the files."""
        return sum(file.size for file in self.files)

    def single_files(self) -> Iterator[Split]:
        """The same files, a split each."""
        for file, path, vector in zip(self.files, self.paths, self.deletion_vectors, strict=True):
            yield replace(self, files=(file,), paths=(path,), deletion_vectors=(vector,), needs_merge=False)
