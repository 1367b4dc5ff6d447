"""The files of splits: their deletion vectors, and the errors of files that cannot be read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lakelet.commit.metadata.expired_file import missing_file
from lakelet.commit.metadata.missing_file import SnapshotExpiredError
from lakelet.errors import CorruptionError, NotFoundError, UnavailableError
from lakelet.format.data.data_file_errors import store_failed
from lakelet.format.data.parquet_file import NAME as PARQUET
from lakelet.format.data.parquet_file import open_parquet
from lakelet.format.data.sst_file import NAME as SST
from lakelet.format.index import deletion_vectors
from lakelet.model.data_file import DataFile
from lakelet.model.split import DeletionVector, Split
from lakelet.storage.home import TableHome


@dataclass(frozen=True, slots=True)
class SplitFile:
    """One file of a split."""

    data: DataFile
    path: str
    vector: DeletionVector | None
    snapshot_id: int
    partition: bytes

    @property
    def is_parquet(self) -> bool:
        """Whether the file is a Parquet file, by its name."""
        return self.data.name.endswith(f".{PARQUET}")

    @property
    def is_sst(self) -> bool:
        """Whether the file is an SST file, by its name."""
        return self.data.name.endswith(f".{SST}")


def files_of(splits: Sequence[Split]) -> Iterator[SplitFile]:
    """All files, in the order of the splits."""
    for split in splits:
        for data, path, vector in zip(split.files, split.paths, split.deletion_vectors, strict=True):
            yield SplitFile(data, path, vector, split.snapshot_id, split.partition)


def deleted_positions(home: TableHome, file: SplitFile) -> deletion_vectors.Positions | None:
    """The rows that the file's deletion vector deletes, ascending; None where it has none."""
    return None if file.vector is None else vector_positions(home, file.vector, file.snapshot_id)


def vector_positions(home: TableHome, vector: DeletionVector, snapshot_id: int) -> deletion_vectors.Positions:
    """The rows that a deletion vector of a snapshot deletes, ascending."""
    path, place = vector.index_path, vector.place
    info = home.store.head(path)
    if info is None:
        raise missing_file(home, path, snapshot_id)
    # The recorded length leaves out the size before and the checksum after the vector, except in the 64-bit form.
    length = min(place.length + deletion_vectors.READ_SLACK, info.size - place.offset)
    try:
        data = home.store.get_range(path, place.offset, length)
    except NotFoundError as error:
        raise missing_file(home, path, snapshot_id) from error
    return deletion_vectors.decode(data, path=home.where(path))


class naming:
    """Translate errors of the block into ones that name the file."""

    def __init__(self, home: TableHome, files: Sequence[SplitFile]) -> None:
        self._home = home
        self._files = files

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        # A store says only that a file is not there; what that means is told by the snapshot.
        if not isinstance(error, (NotFoundError, pa.ArrowException, OSError)) or isinstance(
            error, SnapshotExpiredError
        ):
            return
        for file in self._files:
            self._check_there(file, error)
        for file in self._files:
            self._blame(file, error)
        if store_failed(error):
            raise UnavailableError(
                f"reading below {self._home.where(self._home.paths.root)} failed: {error}"
            ) from error
        raise CorruptionError(
            f"one of {len(self._files)} files below {self._home.where(self._home.paths.root)} cannot be read: {error}"
        ) from error

    def _check_there(self, file: SplitFile, error: BaseException) -> None:
        """Raise the error for a missing file, or a missing index file of its deletion vector."""
        for path in (file.path, *([] if file.vector is None else [file.vector.index_path])):
            if self._home.store.head(path) is not None:
                continue
            raise missing_file(self._home, path, file.snapshot_id) from error

    def _blame(self, file: SplitFile, error: BaseException) -> None:
        where = self._home.where(file.path)
        info = self._home.store.head(file.path)
        if info is None:
            return
        if info.size != file.data.size:
            raise CorruptionError(f"{where} has {info.size} bytes; its manifest says {file.data.size}") from error
        if store_failed(error):
            return
        if len(self._files) == 1:
            raise CorruptionError(f"{where} cannot be read: {error}") from error
        if file.is_parquet:
            try:
                with open_parquet(self._home.store, file.path) as parquet:
                    for _ in parquet.iter_batches():
                        continue
            except (pa.ArrowException, OSError) as found:
                raise CorruptionError(f"{where} cannot be read: {found}") from error
