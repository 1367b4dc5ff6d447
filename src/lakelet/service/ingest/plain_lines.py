"""Plain NDJSON in the columns of a table by a compiled loop (`line_loop`); whatever it does not take is left to Arrow's reader.

body ── line_loop: places and numbers of all fields ── one array a field, one copy of each text
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from lakelet.model.types import MAX_LENGTH, Atomic, DataType, Kind, Row
from lakelet.service.ingest.line_loop import (
    BOOLEAN,
    DOUBLE,
    INTEGER,
    LARGE_INTEGER,
    OTHER,
    POWERS,
    TEXT,
    Bytes,
    Longs,
    gather_loop,
    line_loop,
)
from lakelet.service.tables.table_layout import ID, PAYLOAD, TIMESTAMP

# What is kept for each row and field takes more than the text of wide rows that have few of their fields.
_MOST_FIELDS = 100
_MOST_BYTES = 1 << 30
_NEWLINE = ord("\n")
_KINDS = {Kind.DOUBLE: DOUBLE, Kind.BOOLEAN: BOOLEAN, Kind.VARCHAR: TEXT}
_ESCAPES: Bytes = np.zeros(256, np.uint8)
_ESCAPES[list(b'"\\/bfnrt')] = list(b'"\\/\b\f\n\r\t')


def plain_lines(body: bytes, row: Row, payload: pa.StructType, exact: frozenset[str]) -> pa.Table | None:
    """Lines as a table of id, timestamp and payload; None where one of them is not plain, and as long as the loop is not worth
    being loaded. `row` is the payload's type in the table, `payload` in Arrow, `exact` the fields with integers beyond 2^53."""
    names = [field.name.encode() for field in row.fields]
    if not 0 < len(names) <= _MOST_FIELDS or not 0 < len(body) <= _MOST_BYTES:
        return None
    run = line_loop.for_bytes(len(body))
    if run is None or not _is_text(body):
        return None
    gather_loop.load_if_enabled()
    gather = gather_loop.compiled
    assert gather is not None
    data = np.frombuffer(body + b"\n" + bytes(16), np.uint8).copy()
    most = int(np.count_nonzero(data == _NEWLINE))
    known = [*names, ID.encode(), TIMESTAMP.encode(), PAYLOAD.encode()]
    kinds = np.array([_kind(field.type, exact=field.name in exact) for field in row.fields], np.int64)
    cells, sizes = np.zeros((len(names) + 1, most), np.int64), np.zeros((len(names) + 1, most), np.int64)
    valid, moments = np.zeros((len(names) + 1, most), np.uint8), np.empty(most, np.int64)
    hard = np.empty((most * int((kinds == DOUBLE).sum()) + 1, 4), np.int64)
    state, seen = np.zeros(2, np.int64), np.full(len(known), -1, np.int64)
    places = np.cumsum([0, *map(len, known)], dtype=np.int64)
    letters = np.frombuffer(b"".join(known), np.uint8)
    run(data, len(body), letters, places, kinds, _ESCAPES, POWERS, cells, sizes, valid, moments, hard, state, seen)
    count = int(state[0])
    if count < 0 or not _fill_hard(body, hard[: state[1]], cells):
        return None
    # An id is no text that is empty; that it is not too long is looked at with all others.
    columns = _Columns(data, cells, sizes, valid, count, gather)
    fields = [pa.field(field.name, payload.field(place).type) for place, field in enumerate(row.fields)]
    arrays = [columns.array(place, int(kind), fields[place].type) for place, kind in enumerate(kinds.tolist())]
    times = pa.Array.from_buffers(pa.timestamp("us", "UTC"), count, [None, pa.py_buffer(moments[:count])])
    ids = columns.array(len(names), TEXT, pa.string())
    return pa.table({ID: ids, TIMESTAMP: times, PAYLOAD: pa.StructArray.from_arrays(arrays, fields=fields)})


def _kind(data_type: DataType, *, exact: bool) -> int:
    match data_type:
        case Atomic(kind=Kind.BIGINT):
            return LARGE_INTEGER if exact else INTEGER
        case Atomic(kind=Kind.VARCHAR, precision=length) if length != MAX_LENGTH:
            return OTHER
        case Atomic(kind=kind):
            return _KINDS.get(kind, OTHER)
    return OTHER


def _is_text(body: bytes) -> bool:
    if body.isascii():
        return True
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def _fill_hard(body: bytes, hard: Longs, cells: Longs) -> bool:
    """Put in the numbers that the loop has left; False where one is none that a DOUBLE holds."""
    if not len(hard):
        return True
    values = np.array([float(body[begin:end]) for begin, end in hard[:, 2:].tolist()])
    cells.view(np.float64)[hard[:, 0], hard[:, 1]] = values
    # One that is too small for a double is left to those who know what becomes of it.
    return all(map(math.isfinite, values.tolist())) and bool(values.all())


class _Columns:
    """What the loop has found, as arrays."""

    def __init__(
        self, data: Bytes, cells: Longs, sizes: Longs, valid: Bytes, count: int, gather: Callable[..., Any]
    ) -> None:
        self._data, self._cells, self._sizes, self._valid = data, cells, sizes, valid
        self._count = count
        self._gather = gather

    def array(self, place: int, kind: int, data_type: pa.DataType) -> pa.Array:
        """The array of a field."""
        cells, valid = self._cells[place, : self._count], self._valid[place, : self._count]
        if not valid.any():
            return pa.nulls(self._count, data_type)
        mask = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
        if kind == BOOLEAN:
            bits = pa.py_buffer(np.packbits(cells != 0, bitorder="little"))
            return pa.Array.from_buffers(data_type, self._count, [mask, bits])
        if kind != TEXT:
            return pa.Array.from_buffers(data_type, self._count, [mask, pa.py_buffer(cells)])
        sizes = self._sizes[place, : self._count]
        offsets = np.zeros(self._count + 1, np.int32)
        np.cumsum(sizes, out=offsets[1:])
        text = np.empty(int(offsets[-1]), np.uint8)
        self._gather(self._data, cells, sizes, text)
        return pa.Array.from_buffers(data_type, self._count, [mask, pa.py_buffer(offsets), pa.py_buffer(text)])
