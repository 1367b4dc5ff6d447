"""Picklable values of a plan: a data file, and the delete files that apply to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

POSITIONS, VECTOR, EQUALITY = "positions", "vector", "equality"


@dataclass(frozen=True, slots=True)
class DeleteFile:
    """A delete file: by positions, as a bitmap (`offset` and `length` are its place in the file), or
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
    """A data file of a snapshot. `partition` holds its partition values, in the order of its spec."""

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
        """Whether equality deletes apply to the file."""
        return any(delete.kind == EQUALITY for delete in self.deletes)
