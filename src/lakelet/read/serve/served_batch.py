"""Many keys in the files of one bucket: one loop a file finds them (`format/sst/sst_arena`), one pass a column makes values.

Which row of a key wins is decided as for single keys (`served_bucket`), of all keys at once. Values are those of `to_pylist`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lakelet.format.sst.record_columns import Cells, columns_of
from lakelet.format.sst.record_loops import Longs, gather_loop
from lakelet.format.sst.sst_writer import FRONT_TYPES
from lakelet.model.types import BINARIES, STRINGS, Atomic, DataType, Field, Kind

_SEQUENCE, _KIND = 1, 2
_FRONT = len(FRONT_TYPES)
_WHOLE_BYTES = {Kind.TINYINT: 1, Kind.SMALLINT: 2, Kind.INT: 4, Kind.BIGINT: 8}


@dataclass(frozen=True, slots=True)
class FoundRows:
    """Rows of a file that were found: the places of their keys and their cells; the number of the file's columns; the positions
    that its deletion vector deletes, ascending."""

    places: Longs
    cells: Cells
    columns: int
    deleted: NDArray[np.integer[Any]] | None

    def numbers(self, column: int) -> Longs:
        """The numbers of all rows in a column of numbers, those in front included."""
        found: Longs = self.cells.numbers[column].view(np.int64)
        return found

    def kept(self, *, ignore_delete: bool) -> Longs:
        """The rows that are not deleted, nor retracts where these are ignored."""
        kept = np.ones(len(self.places), np.bool_)
        if self.deleted is not None and len(self.deleted) and len(kept):
            own = self.numbers(_FRONT + self.columns)
            at = np.searchsorted(self.deleted, own)
            kept = (at == len(self.deleted)) | (self.deleted[np.minimum(at, len(self.deleted) - 1)] != own)
        if ignore_delete:
            kept &= self.numbers(_KIND) & 1 == 0
        return np.flatnonzero(kept)


def winners(
    files: Sequence[FoundRows], count: int, *, keeps_first: bool, ignore_delete: bool
) -> list[tuple[Longs, Longs]]:
    """Of each file, oldest first, the places of those of `count` keys whose row it has that wins, and the rows; not those of
    retracts."""
    found = [file.kept(ignore_delete=ignore_delete) for file in files]
    if len(files) > 1:
        owner, best = np.full(count, -1, np.int64), np.empty(count, np.int64)
        for number, (file, rows) in enumerate(zip(files, found, strict=True)):
            places, sequences = file.places[rows], file.numbers(_SEQUENCE)[rows]
            held = best[places]
            better = sequences <= held if keeps_first else sequences >= held
            # Of rows with one sequence number that of the later file wins.
            chosen = better | (owner[places] < 0)
            best[places[chosen]] = sequences[chosen]
            owner[places[chosen]] = number
        found = [
            rows[owner[file.places[rows]] == number]
            for number, (file, rows) in enumerate(zip(files, found, strict=True))
        ]
    won = []
    for file, rows in zip(files, found, strict=True):
        stays = rows[file.numbers(_KIND)[rows] & 1 == 0]
        won.append((file.places[stays], stays))
    return won


def column_lists(file: FoundRows, columns: Sequence[tuple[Field, int]], rows: Longs, where: str) -> list[list[Any]]:
    """The values of rows in columns, each with its place in the file."""
    at, cells = [_FRONT + place for _, place in columns], file.cells
    numbers, ends, valid = cells.numbers[at], cells.ends[at], cells.valid[at]
    if len(rows) < len(file.places):
        numbers, ends, valid = (np.take(numbers, rows, 1), np.take(ends, rows, 1), np.take(valid, rows, 1))
    chosen = Cells(numbers, ends, valid, cells.heap)
    return [_values(chosen, number, field.type, where) for number, (field, _) in enumerate(columns)]


def _values(cells: Cells, number: int, data_type: DataType, where: str) -> list[Any]:
    make = _maker(data_type)
    if make is None:
        part = Cells(
            cells.numbers[number : number + 1],
            cells.ends[number : number + 1],
            cells.valid[number : number + 1],
            cells.heap,
        )
        listed: list[Any] = columns_of(part, [data_type], where=where)[0].to_pylist()
        return listed
    values = make(cells, number)
    valid = cells.valid[number]
    if not valid.all():
        for place in np.flatnonzero(valid == 0).tolist():
            values[place] = None
    return values


def _maker(data_type: DataType) -> Callable[[Cells, int], list[Any]] | None:
    """Makes the values of a column, any where it is NULL; None for types that Arrow makes."""
    if not isinstance(data_type, Atomic):
        return None
    if data_type.kind in STRINGS:
        return _texts
    if data_type.kind in BINARIES:
        return _byte_strings
    if data_type.kind in _WHOLE_BYTES:
        width = _WHOLE_BYTES[data_type.kind]
        return lambda cells, number: cells.numbers[number].astype(f"u{width}").view(f"i{width}").tolist()
    if data_type.kind is Kind.DOUBLE:
        return lambda cells, number: cells.numbers[number].view(np.float64).tolist()
    return None


def _gathered(cells: Cells, number: int) -> tuple[bytes, list[int]]:
    begins, ends = cells.numbers[number].view(np.int64), cells.ends[number]
    at = np.zeros(len(begins) + 1, np.int64)
    np.cumsum(ends - begins, out=at[1:])
    out = np.empty(int(at[-1]), np.uint8)
    gather_loop.for_bytes_or_interpreted(len(out))(cells.heap, begins, ends, at[:-1], out)
    return out.tobytes(), at.tolist()


def _texts(cells: Cells, number: int) -> list[Any]:
    data, at = _gathered(cells, number)
    if data.isascii():
        text = data.decode("ascii")
        return [text[begin:end] for begin, end in itertools.pairwise(at)]
    return [data[begin:end].decode() for begin, end in itertools.pairwise(at)]


def _byte_strings(cells: Cells, number: int) -> list[Any]:
    data, at = _gathered(cells, number)
    return [data[begin:end] for begin, end in itertools.pairwise(at)]
