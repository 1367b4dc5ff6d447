"""One row that was found in the arena of a lookup file: its values, made of its cells one by one.

Values are those that `as_py` of the Arrow column gives. Those of types that are not listed here are made by Arrow.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np

from lakelet.format.sst.record_columns import Cells, columns_of
from lakelet.format.sst.sst_writer import FRONT_TYPES
from lakelet.model.types import BINARIES, STRINGS, Atomic, DataType, Kind

_FRONT = len(FRONT_TYPES)
_WHOLE_BITS = {Kind.TINYINT: 8, Kind.SMALLINT: 16, Kind.INT: 32, Kind.BIGINT: 64}
_LONG, _DOUBLE = struct.Struct("=q"), struct.Struct("=d")
_HALF_WORD, _FLOAT = struct.Struct("=I"), struct.Struct("=f")
_EPOCH = datetime(1970, 1, 1)
_FIRST_DAY = date(1970, 1, 1).toordinal()
_MILLIS, _MICROS = 3, 6
_NARROW_DECIMAL = 18

CellMaker = Callable[[list[int], memoryview], Any]
"""Makes a value, None for NULL, of the cells of a row: all numbers, all ends of bytes, whether each is valid; and the heap."""


def cell_makers(types: Sequence[DataType], wanted: Sequence[int], *, where: str) -> tuple[CellMaker | None, ...]:
    """The makers of the columns of a file, None for those that are not wanted, or nested: a caller may change such a value."""
    chosen = set(wanted)
    return tuple(
        _maker(one, place + _FRONT, len(types) + _FRONT, where) if place in chosen and isinstance(one, Atomic) else None
        for place, one in enumerate(types)
    )


def row_cells(cells: Sequence[int], heap: Any) -> Cells:
    """The same cells as arrays of one row."""
    parts = np.array(cells, np.int64).reshape(3, -1, 1)
    return Cells(parts[0].view(np.uint64), parts[1], parts[2].astype(np.uint8), heap)


def _maker(data_type: Atomic, column: int, columns: int, where: str) -> CellMaker:
    end, valid = columns + column, 2 * columns + column
    if data_type.kind in STRINGS:
        return lambda cells, heap: str(heap[cells[column] : cells[end]], "utf-8") if cells[valid] else None
    if data_type.kind in BINARIES:
        return lambda cells, heap: heap[cells[column] : cells[end]].tobytes() if cells[valid] else None
    make = _number_maker(data_type)

    def by_arrow(cells: list[int], heap: memoryview) -> Any:
        if not cells[valid]:
            return None
        one = row_cells([cells[column], cells[end], 1], np.frombuffer(heap, np.uint8))
        return columns_of(one, [data_type], where=where)[0][0].as_py()

    def by_number(cells: list[int], heap: memoryview) -> Any:
        try:
            return make(cells[column]) if cells[valid] else None  # type: ignore[misc]
        except (ValueError, OverflowError):
            # A date that Python does not have: Arrow says so.
            return by_arrow(cells, heap)

    return by_arrow if make is None else by_number


def _number_maker(data_type: Atomic) -> Callable[[int], Any] | None:
    """Makes a value of the number of its cell; None for types that Arrow makes."""
    kind = data_type.kind
    if kind in _WHOLE_BITS:
        half, mask = 1 << _WHOLE_BITS[kind] - 1, (1 << _WHOLE_BITS[kind]) - 1
        # Numbers that are no differences fill only the low bytes of their words.
        return lambda number: (number + half & mask) - half
    if kind is Kind.BOOLEAN:
        return lambda number: number & 255 != 0
    if kind is Kind.DOUBLE:
        return lambda number: _DOUBLE.unpack(_LONG.pack(number))[0]
    if kind is Kind.FLOAT:
        return lambda number: _FLOAT.unpack(_HALF_WORD.pack(number & 0xFFFFFFFF))[0]
    if kind is Kind.DATE:
        return lambda number: date.fromordinal((number + (1 << 31) & 0xFFFFFFFF) - (1 << 31) + _FIRST_DAY)
    if kind is Kind.TIMESTAMP and data_type.precision <= _MICROS:
        unit = timedelta(milliseconds=1) if data_type.precision <= _MILLIS else timedelta(microseconds=1)
        return lambda number: _EPOCH + number * unit
    if kind is Kind.DECIMAL and data_type.precision <= _NARROW_DECIMAL:
        # Arithmetic would round to the precision of the caller's context.
        return lambda number: Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -data_type.scale))
    return None
