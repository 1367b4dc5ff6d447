"""Write index files of deletion vectors.

    0x01 | vector of a data file | vector of the next | …       closed when it reaches a target size, where there is one

This owns the file from its name to its ranges; the commit of its message makes it visible, and who fails before removes it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from numpy.typing import NDArray

from lakelet.commit.index_changes import DELETION_VECTORS
from lakelet.format.index import deletion_vectors
from lakelet.model.data_file import DeletionVectorRange, IndexFile
from lakelet.storage.home import TableHome


@dataclass(frozen=True, slots=True)
class EncodedVector:
    """The deletion vector of a data file as it is stored, its length as manifests give it, and the number of deleted rows."""

    data_file: str
    data: bytes
    length: int
    count: int

    @classmethod
    def of(cls, data_file: str, positions: NDArray, *, bits64: bool) -> EncodedVector:  # type: ignore[type-arg]
        """The vector of these positions, ascending."""
        data = deletion_vectors.encode(positions, bits64=bits64)
        length = len(data) - (0 if bits64 else deletion_vectors.READ_SLACK)
        return cls(data_file, data, length, len(positions))


def write_vectors(
    home: TableHome, vectors: Iterable[EncodedVector], target_bytes: int | None = None
) -> list[IndexFile]:
    """The index files of these vectors, written; one, where no target size is given."""
    written: list[IndexFile] = []
    data, ranges = bytearray([deletion_vectors.VERSION]), list[DeletionVectorRange]()

    def close() -> None:
        name = f"index-{home.ids.uuid()}-{len(written)}"
        home.put_new(home.paths.index(name), bytes(data))
        written.append(IndexFile(DELETION_VECTORS, name, len(data), len(ranges), tuple(ranges)))

    for vector in vectors:
        if ranges and target_bytes is not None and len(data) + len(vector.data) > target_bytes:
            close()
            data, ranges = bytearray([deletion_vectors.VERSION]), []
        ranges.append(DeletionVectorRange(vector.data_file, len(data), vector.length, vector.count))
        data += vector.data
    if ranges:
        close()
    return written
