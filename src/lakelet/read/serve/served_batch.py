"""Many keys in the files of one bucket that are held whole: one loop a file finds them, one pass a column makes their values.

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
from lakelet.format.sst.sst_key_index import SstKeyIndex
from lakelet.format.sst.sst_writer import FRONT_TYPES
from lakelet.model.types import BINARIES, STRINGS, Atomic, DataType, Field, Kind

_SEQUENCE, _KIND = 1, 2
_FRONT = len(FRONT_TYPES)
_WHOLE_BYTES = {Kind.TINYINT: 1, Kind.SMALLINT: 2, Kind.INT: 4, Kind.BIGINT: 8}


@dataclass(frozen=True, slots=True)
class IndexedFile:
    """A file that is held whole, the number of its columns, and the positions that its deletion vector deletes, ascending."""

    index: SstKeyIndex
    columns: int
    deleted: NDArray[np.integer[Any]] | None

    def find(self, keys: NDArray[np.uint8], key_at: Longs, *, ignore_delete: bool) -> tuple[Longs, Longs, Longs]:
        """The places of the keys that are there, and the row and the sequence number of each; not those that are deleted."""
        rows = self.index.find(keys, key_at)
        places = np.flatnonzero(rows >= 0)
        rows = rows[places]
        kept = None
        if self.deleted is not None and len(self.deleted) and len(rows):
            own = self.index.column(_FRONT + self.columns, rows).view(np.int64)
            at = np.searchsorted(self.deleted, own)
            kept = (at == len(self.deleted)) | (self.deleted[np.minimum(at, len(self.deleted) - 1)] != own)
        if ignore_delete:
            added = self.index.column(_KIND, rows) & np.uint64(1) == 0
            kept = added if kept is None else kept & added
        if kept is not None:
            places, rows = places[kept], rows[kept]
        return places, rows, self.index.column(_SEQUENCE, rows).view(np.int64)


def winners(
    files: Sequence[IndexedFile], keys: NDArray[np.uint8], key_at: Longs, *, keeps_first: bool, ignore_delete: bool
) -> list[tuple[Longs, Longs]]:
    """Of each file, oldest first, the places of the keys whose row it has that wins, and the rows; not those of retracts."""
    count = len(key_at) - 1
    found = [file.find(keys, key_at, ignore_delete=ignore_delete) for file in files]
    if len(files) == 1:
        won = [(found[0][0], found[0][1])]
    else:
        owner, best = np.full(count, -1, np.int64), np.empty(count, np.int64)
        for number, (places, _, sequences) in enumerate(found):
            held = best[places]
            better = sequences <= held if keeps_first else sequences >= held
            # Of rows with one sequence number that of the later file wins.
            chosen = better | (owner[places] < 0)
            best[places[chosen]] = sequences[chosen]
            owner[places[chosen]] = number
        won = []
        for number, (places, rows, _) in enumerate(found):
            own = owner[places] == number
            won.append((places[own], rows[own]))
    kept = []
    for file, (places, rows) in zip(files, won, strict=True):
        stays = file.index.column(_KIND, rows) & np.uint64(1) == 0
        kept.append((places, rows) if stays.all() else (places[stays], rows[stays]))
    return kept


def column_lists(file: IndexedFile, columns: Sequence[tuple[Field, int]], rows: Longs, where: str) -> list[list[Any]]:
    """The values of rows in columns, each with its place in the file."""
    cells = file.index.cells([_FRONT + place for _, place in columns], rows)
    return [_values(cells, number, field.type, where) for number, (field, _) in enumerate(columns)]


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
