"""Which rows of files survive their merge, kept between reads where the table's metadata source keeps values.

A data file never changes under its name, and neither does the row of each key that a select engine keeps among the same files. So
what one read has found out by comparing keys holds for every later read of the same files by the same rules, whatever its
columns; it then reads the values alone. A mask has a bit for each row of a file:

    file 1   1 1 0 1 0 …      0: superseded by a row of another file, or deleted
    file 2   1 1 1 …

What decides is in the name of the masks: the files in the order of their runs, with all that the manifest says about their order
and retracts; the schemas that they were written under; and the columns, types and options that order the rows of a key. Files
with deletion vectors, which change while the file stays, and rows beside files have no masks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakelet.commit.metadata.source import metadata
from lakelet.lsm.merge_spec import MergeSpec
from lakelet.model.schema import TableSchema
from lakelet.model.types import Field
from lakelet.read.merge.file_run import FileRun
from lakelet.read.merge.pieces import Piece
from lakelet.storage.home import TableHome

Masks: TypeAlias = tuple[pa.BooleanArray, ...]
"""A mask for each source of a piece, run by run."""
_NAME_BYTES = 400
_FILE_BYTES = 400


@dataclass(frozen=True, slots=True)
class SurvivingMasks:
    """The kept masks of a table, for merges by one specification. `deciding` are the columns that it compares; with
    `counts_deletes` files say rightly how many retracts they hold."""

    home: TableHome
    spec: MergeSpec
    deciding: tuple[Field, ...]
    counts_deletes: bool
    schema_of: Callable[[int], TableSchema]

    def find(self, piece: Piece) -> Masks | None:
        """The masks of a piece; None where none are kept."""
        kept = metadata(self.home).kept(self.home)
        name = None if kept is None else self._name(piece)
        found: Masks | None = None if kept is None or name is None else kept.get(name)
        return found

    def keep(self, piece: Piece, survives: NDArray[np.bool_]) -> None:
        """Keep which rows of a piece survive, of all its sources one after the other."""
        kept = metadata(self.home).kept(self.home)
        name = None if kept is None else self._name(piece)
        if kept is not None and name is not None:
            masks = masks_of(piece, survives)
            size = sum(int(mask.nbytes) for mask in masks) + _FILE_BYTES * len(masks) + _NAME_BYTES
            kept.put(name, masks, size)

    def _name(self, piece: Piece) -> tuple[object, ...] | None:
        """Everything that decides which rows survive; None where the rows are not those of files as they are stored."""
        if any(not isinstance(source, FileRun) or source.file.vector is not None for source in piece.sources):
            return None
        files = tuple(tuple(_identity(source) for source in run if isinstance(source, FileRun)) for run in piece.runs)
        versions = sorted({source.data.schema_id for source in piece.sources if isinstance(source, FileRun)})
        written_under = tuple((version, self.schema_of(version).fields) for version in versions)
        return ("surviving rows", self.spec, self.deciding, self.counts_deletes, written_under, files)


def masks_of(piece: Piece, survives: NDArray[np.bool_]) -> Masks:
    """The masks of the sources of a piece, all of whose stored rows were merged."""
    ends = np.cumsum([source.data.row_count for source in piece.sources])
    return tuple(pa.array(part) for part in np.split(survives, ends[:-1]))


def _identity(run: FileRun) -> tuple[object, ...]:
    data = run.file.data
    return (
        run.file.path,
        data.size,
        data.row_count,
        data.min_sequence,
        data.max_sequence,
        data.schema_id,
        data.level,
        data.creation_ms,
        data.delete_row_count,
    )
