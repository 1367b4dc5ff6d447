"""Assign the files of a plan to DuckDB's own Parquet reader or to ours.

A file is assigned to DuckDB only where it certainly returns the same rows as `table.scan()`: Parquet, under a path that DuckDB
takes literally, every column stored in a type that both read alike. Rows that a deletion vector deletes, or that a newer row of
their key in another file supersedes, are left out by their positions; where files are merged, these are found out once from the
keys alone and cached. Everything else goes through our reader.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lakelet.errors import InvalidError
from lakelet.model.schema import TableSchema
from lakelet.model.schema_change.widening import check_widening
from lakelet.model.split import Split
from lakelet.model.types import Atomic, DataType, Field, Row
from lakelet.read.evolve import same_layout
from lakelet.read.split_files import SplitFile, deleted_positions, files_of
from lakelet.sql.engine.duck_types import reads_natively
from lakelet.storage.home import TableHome

# Characters that DuckDB interprets as a glob in a path.
GLOB = frozenset("{}[]*?\\")
# DuckDB's columns of a row's position and a file's number.
ROW_NUMBER, FILE_NUMBER = "file_row_number", "file_index"
# Beyond this share of superseded rows, merging is cheaper than skipping them by position.
_MOST_OUTDATED = 0.5

Positions = NDArray[np.int64]
Outdated = Callable[[Split], dict[str, Positions] | None]


@dataclass(frozen=True, slots=True)
class AssignedFiles:
    """The files assigned to DuckDB's reader, by the schema they were written under, with their deleted and superseded positions
    by path (`gone`), and the splits assigned to ours."""

    native: dict[int, list[SplitFile]] = field(default_factory=dict)
    gone: dict[str, Positions] = field(default_factory=dict)
    ours: list[Split] = field(default_factory=list)

    @property
    def files(self) -> list[SplitFile]:
        """All files assigned to DuckDB."""
        return [file for files in self.native.values() for file in files]


@dataclass(frozen=True, slots=True)
class FileAssigner:
    """Assigns the files of one table to the readers. `location` is the root under which DuckDB finds them, None where it cannot
    reach them; `outdated` finds the superseded rows of a split, None where all splits that need a merge go to our reader."""

    home: TableHome
    fields: tuple[Field, ...]
    schema_of: Callable[[int], TableSchema]
    location: str | None
    outdated: Outdated | None = None
    _able: dict[int, bool] = field(default_factory=dict)

    def assign(self, splits: Sequence[Split]) -> AssignedFiles:
        """Assign the files of splits to the readers."""
        assigned = AssignedFiles()
        reachable = self.location is not None and not GLOB & set(self.location)
        for split in splits:
            if not reachable or split.branch is not None:
                assigned.ours.append(split)
            elif split.needs_merge:
                self._assign_merged(split, assigned)
            else:
                self._assign_plain(split, assigned)
        return assigned

    def _assign_plain(self, split: Split, assigned: AssignedFiles) -> None:
        for single, file in zip(split.single_files(), files_of([split]), strict=True):
            if not self._reads(file):
                assigned.ours.append(single)
                continue
            gone = deleted_positions(self.home, file)
            if gone is not None and len(gone):
                assigned.gone[file.path] = np.asarray(gone, np.int64)
            assigned.native.setdefault(file.data.schema_id, []).append(file)

    def _assign_merged(self, split: Split, assigned: AssignedFiles) -> None:
        files = list(files_of([split]))
        plain = all(self._reads(file) and file.vector is None for file in files)
        gone = self.outdated(split) if plain and self.outdated is not None else None
        if gone is None or sum(len(rows) for rows in gone.values()) > split.row_count * _MOST_OUTDATED:
            assigned.ours.append(split)
            return
        assigned.gone.update(gone)
        for file in files:
            if len(gone.get(file.path, ())) < file.data.row_count:
                assigned.native.setdefault(file.data.schema_id, []).append(file)

    def _reads(self, file: SplitFile) -> bool:
        """Whether DuckDB reads a file as we do."""
        number = file.data.schema_id
        if number not in self._able:
            self._able[number] = _reads_schema(self.schema_of(number), self.fields)
        plain = file.data.write_columns is None and file.is_parquet and not GLOB & set(file.path)
        return plain and self._able[number]


def _reads_schema(stored: TableSchema, fields: Sequence[Field]) -> bool:
    names = [one.name.lower() for one in stored.fields]
    if len(set(names)) < len(names) or ROW_NUMBER in names or FILE_NUMBER in names:
        return False
    by_id = {one.id: one for one in stored.fields}
    return all(_alike(by_id[one.id].type, one.type) for one in fields if one.id in by_id)


def _alike(stored: DataType, wanted: DataType) -> bool:
    if not reads_natively(stored) or not reads_natively(wanted):
        return False
    if isinstance(stored, Atomic) and isinstance(wanted, Atomic):
        try:
            check_widening(stored, wanted, "")
        except InvalidError:
            return False
        return True
    if isinstance(stored, Row) and isinstance(wanted, Row):
        # Fields are found by their ids; one that the file lacks is NULL.
        by_id = {one.id: one for one in stored.fields}
        return all(_alike(by_id[one.id].type, one.type) for one in wanted.fields if one.id in by_id)
    return same_layout(stored, wanted)
