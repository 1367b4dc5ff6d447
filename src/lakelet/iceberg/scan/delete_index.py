"""Find the delete files that apply to a data file.

a vector        to the file that it names; position delete files of it are then ignored
positions       to files of the same spec and partition, or to the one that the delete file names, up to its own sequence number
equality        to files of the same spec and partition, or to all where the delete file has no partition, that are strictly older
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from lakelet.errors import CorruptionError
from lakelet.iceberg.scan.scan_file import EQUALITY, VECTOR, DeleteFile

_Partition = tuple[int, Hashable]


@dataclass(frozen=True, slots=True)
class PlacedDelete:
    """A delete file with what decides to which files it applies. `lowest` and `highest` bound the paths in it, where known."""

    file: DeleteFile
    sequence_number: int
    spec_id: int
    partition: tuple[Any, ...]
    is_global: bool = False
    referenced: str | None = None
    lowest: bytes | None = None
    highest: bytes | None = None

    def may_name(self, path: bytes) -> bool:
        """Whether a path is within its bounds."""
        return (self.lowest is None or self.lowest <= path) and (self.highest is None or path <= self.highest)


@dataclass(slots=True)
class DeleteIndex:
    """All delete files of a snapshot."""

    _by_path: dict[str, list[PlacedDelete]] = field(default_factory=dict)
    _by_partition: dict[_Partition, list[PlacedDelete]] = field(default_factory=dict)
    _everywhere: list[PlacedDelete] = field(default_factory=list)

    @property
    def count(self) -> int:
        """How many there are."""
        placed = (*self._by_path.values(), *self._by_partition.values())
        return len(self._everywhere) + sum(len(one) for one in placed)

    def add(self, delete: PlacedDelete) -> None:
        """Adds a delete file."""
        if delete.file.kind == VECTOR and None in (delete.referenced, delete.file.offset, delete.file.length):
            raise CorruptionError(
                f"{delete.file.path}: a deletion vector that does not say of which file or where it is"
            )
        if delete.file.kind != EQUALITY and delete.referenced is not None:
            self._by_path.setdefault(delete.referenced, []).append(delete)
        elif delete.file.kind == EQUALITY and delete.is_global:
            self._everywhere.append(delete)
        else:
            self._by_partition.setdefault((delete.spec_id, delete.partition), []).append(delete)

    def of(self, path: str, spec_id: int, partition: tuple[Any, ...], sequence_number: int) -> tuple[DeleteFile, ...]:
        """The delete files that apply to a data file."""
        if not (self._by_path or self._by_partition or self._everywhere):
            return ()
        encoded = path.encode()
        found: list[PlacedDelete] = []
        for delete in (
            *self._by_path.get(path, ()),
            *self._by_partition.get((spec_id, partition), ()),
            *self._everywhere,
        ):
            if delete.file.kind == EQUALITY:
                if sequence_number < delete.sequence_number:
                    found.append(delete)
            elif sequence_number <= delete.sequence_number and delete.may_name(encoded):
                found.append(delete)
        vectors = [delete for delete in found if delete.file.kind == VECTOR]
        if len(vectors) > 1:
            raise CorruptionError(f"{path} has {len(vectors)} deletion vectors, expected one at most")
        if vectors:
            found = vectors + [delete for delete in found if delete.file.kind == EQUALITY]
        return tuple(delete.file for delete in found)
