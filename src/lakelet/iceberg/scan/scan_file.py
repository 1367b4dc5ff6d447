"""What a plan says of a file, in values that travel: the file, and the delete files that fall on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

POSITIONS, VECTOR, EQUALITY = "positions", "vector", "equality"


@dataclass(frozen=True, slots=True)
class DeleteFile:
    """A file that says which rows are gone: by their positions, as a bitmap (`offset` and `length` are its place in the file), or
    by the values of the fields `equality_ids`."""

    path: str
    kind: str
    format: str
    size: int
    row_count: int
    offset: int | None = None
    length: int | None = None
    equality_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ScanFile:
    """A data file of a snapshot. `partition` holds the values by which it is filed, in the order of its spec."""

    path: str
    format: str
    size: int
    row_count: int
    spec_id: int
    partition: tuple[Any, ...]
    sequence_number: int
    deletes: tuple[DeleteFile, ...] = ()

    @property
    def has_equality_deletes(self) -> bool:
        """Whether rows are gone by their values."""
        return any(delete.kind == EQUALITY for delete in self.deletes)
