"""A decoded block of a lookup file for single keys: a row is found by one hash, and its values are kept once they were read.

Values are those that `as_py` of the Arrow column gives. Whole numbers, floats, booleans, text and bytes are read from the block's
cells; a column of any other type is made of the whole block at its first use, and kept. Values of nested types, which a caller
may change, are made anew for each.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

from lakelet.format.sst.sst_reader import SstRows
from lakelet.format.sst.sst_writer import FRONT_TYPES
from lakelet.model.types import BINARIES, STRINGS, Atomic, DataType, Kind

_SEQUENCE, _KIND = 1, 2
_FRONT = len(FRONT_TYPES)
_WHOLE_BITS = {Kind.TINYINT: 8, Kind.SMALLINT: 16, Kind.INT: 32, Kind.BIGINT: 64}
_WORD, _DOUBLE = struct.Struct("=Q"), struct.Struct("=d")
_HALF_WORD, _FLOAT = struct.Struct("=I"), struct.Struct("=f")
_FEW_ROWS = 4
_ENTRY_BYTES = 40
_ROW_BYTES = 150
_CELL_BYTES = 40

ServedRow = tuple[int, bool, int, tuple[Any, ...]]
"""The sequence number of a row, whether it is a retract, its place in the block, and its values; None where one is nested."""
CellReader = Callable[[SstRows, int], Any]
"""The value, not NULL, of a row in one column."""


class ServedBlock:
    """A block of rows by key. `touched` is for the cache: how many values had been put there when the block was used.

    A block `is_heavier` once the rows that it keeps are twice as many as those that its weight counts.
    """

    __slots__ = ("__weakref__", "_readers", "_weighed_rows", "found", "kept_rows", "rows", "touched")

    def __init__(self, rows: SstRows, readers: Sequence[CellReader | None]) -> None:
        self.rows = rows
        self.touched = 0
        self.kept_rows = 0
        self._weighed_rows = _FEW_ROWS
        self._readers = readers
        # A row that was not read yet is its place.
        self.found: dict[bytes, int | ServedRow] = {key: at for at, key in enumerate(rows.keys)}

    @property
    def is_heavier(self) -> bool:
        """Whether it is worth weighing it again."""
        return self.kept_rows > self._weighed_rows

    def weigh(self) -> int:
        """About the memory this takes, with the rows that it keeps and as many again."""
        self._weighed_rows = max(2 * self.kept_rows, _FEW_ROWS)
        kept = min(self._weighed_rows, len(self.rows)) * (_ROW_BYTES + _CELL_BYTES * len(self._readers))
        return self.rows.nbytes + _ENTRY_BYTES * len(self.rows) + kept

    def read(self, key: bytes, at: int) -> ServedRow:
        """Read the row at a place, and keep it. Threads that do so at the same time keep equal ones."""
        row = self.found[key] = self._row(at)
        self.kept_rows += 1
        return row

    def _row(self, at: int) -> ServedRow:
        cells = self.rows.cells
        sequence, kind = int(cells.numbers[_SEQUENCE, at].view("i8")), int(cells.numbers[_KIND, at])
        values = [
            None if read is None or not cells.valid[place + _FRONT, at] else read(self.rows, at)
            for place, read in enumerate(self._readers)
        ]
        return sequence, kind & 1 == 1, at, tuple(values)


def cell_readers(types: Sequence[DataType]) -> tuple[CellReader | None, ...]:
    """The readers of columns of a file; None for those of nested types."""
    return tuple(_cell_reader(one, place) if isinstance(one, Atomic) else None for place, one in enumerate(types))


def _cell_reader(data_type: Atomic, place: int) -> CellReader:
    column = place + _FRONT
    if data_type.kind in _WHOLE_BITS:
        bits = _WHOLE_BITS[data_type.kind]
        half, mask = 1 << bits - 1, (1 << bits) - 1
        # Numbers that are no differences fill only the low bytes of their words.
        return lambda rows, at: (int(rows.cells.numbers[column, at]) + half & mask) - half
    if data_type.kind in STRINGS:
        return lambda rows, at: _text(rows, column, at).decode()
    if data_type.kind in BINARIES:
        return lambda rows, at: _text(rows, column, at)
    if data_type.kind is Kind.BOOLEAN:
        return lambda rows, at: int(rows.cells.numbers[column, at]) & 255 != 0
    if data_type.kind is Kind.DOUBLE:
        return lambda rows, at: _DOUBLE.unpack(_WORD.pack(rows.cells.numbers[column, at]))[0]
    if data_type.kind is Kind.FLOAT:
        return lambda rows, at: _FLOAT.unpack(_HALF_WORD.pack(int(rows.cells.numbers[column, at]) & 0xFFFFFFFF))[0]
    return lambda rows, at: rows.column(place)[at].as_py()


def _text(rows: SstRows, column: int, at: int) -> bytes:
    cells = rows.cells
    found: bytes = cells.heap[int(cells.numbers[column, at]) : int(cells.ends[column, at])].tobytes()
    return found
