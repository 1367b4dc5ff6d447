"""Encode columns as records and decode them: Arrow arrays on one side, bytes on the other.

    atomic values     as `record_loops` draws them; the width of a type is the number of its bytes, 0 for text and bytes
    ROW               bytes: a record of its fields
    ARRAY             bytes: varint count, then a record with one column for each element
    MAP, MULTISET     bytes: varint count, then a record of key and value for each pair

Records inside of a value have no columns in front and no delta encoding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakelet.errors import CorruptionError
from lakelet.format.sst.record_loops import (
    Bytes,
    Longs,
    Words,
    count_loop,
    gather_loop,
    read_loop,
    size_loop,
    write_loop,
)
from lakelet.model.arrow.arrow_types import to_arrow
from lakelet.model.types import BINARIES, FLOATS, STRINGS, Array, Atomic, DataType, Kind, Map, Multiset, Row

_WIDE_DECIMAL = 18
_WIDE = 16
_WIDTHS = {Kind.BOOLEAN: 1, Kind.TINYINT: 1, Kind.SMALLINT: 2, Kind.INT: 4, Kind.DATE: 4, Kind.TIME: 4, Kind.FLOAT: 4}
_NO_DELTA = (Kind.BOOLEAN, Kind.DECIMAL, *FLOATS, *STRINGS, *BINARIES)
_COUNT = Atomic(Kind.INT, nullable=False)


@dataclass(frozen=True, slots=True)
class RecordLayout:
    """The columns of records: their types, how many of them come before the null bitmap, widths and which are differences."""

    types: tuple[DataType, ...]
    front: int
    widths: Longs
    deltas: Bytes

    @staticmethod
    def of(
        types: Sequence[DataType], *, front: int = 0, delta_encoding: bool = False, plain: Sequence[int] = ()
    ) -> RecordLayout:
        """The layout of these columns; those at `plain` are no differences whatever their type."""
        deltas = [delta_encoding and place not in plain and is_delta(one) for place, one in enumerate(types)]
        return RecordLayout(
            tuple(types), front, np.array([_width(one) for one in types], np.int64), np.array(deltas, np.uint8)
        )


@dataclass(frozen=True, slots=True)
class Cells:
    """The values of columns by (column, row): numbers, or the begin and the end of bytes in the heap. A NULL is not valid."""

    numbers: Words
    ends: Longs
    valid: Bytes
    heap: Bytes

    @staticmethod
    def empty(columns: int, rows: int, heap: Bytes) -> Cells:
        """Cells that are all NULL."""
        shape = (columns, rows)
        return Cells(np.zeros(shape, np.uint64), np.zeros(shape, np.int64), np.zeros(shape, np.uint8), heap)

    def first(self, rows: int) -> Cells:
        """The cells of the first rows."""
        cut = np.ascontiguousarray
        return Cells(cut(self.numbers[:, :rows]), cut(self.ends[:, :rows]), cut(self.valid[:, :rows]), self.heap)


def is_delta(data_type: DataType) -> bool:
    """Whether delta encoding stores values of a type as differences."""
    return isinstance(data_type, Atomic) and data_type.kind not in _NO_DELTA


def cells_of(columns: Sequence[pa.Array], types: Sequence[DataType]) -> Cells:
    """The cells of columns."""
    rows = len(columns[0]) if columns else 0
    cells = Cells.empty(len(columns), rows, np.empty(0, np.uint8))
    heaps: list[Bytes] = []
    base = 0
    for place, (column, data_type) in enumerate(zip(columns, types, strict=True)):
        arrow = to_arrow(data_type)
        column = column if column.type == arrow else column.cast(arrow)  # noqa: PLW2901
        valid = np.ones(rows, np.uint8) if not column.null_count else _numpy(column.is_valid().cast(pa.uint8()))
        cells.valid[place] = valid
        width = _width(data_type)
        if width not in (0, _WIDE):
            cells.numbers[place] = np.where(valid != 0, _words(column, data_type), np.uint64(0))
            continue
        heap, begins, ends = _wide(column) if width == _WIDE else _spans(_texts(column, data_type))
        cells.numbers[place] = np.where(valid != 0, begins + base, 0).astype(np.uint64)
        cells.ends[place] = np.where(valid != 0, ends + base, 0)
        heaps.append(heap)
        base += len(heap)
    return Cells(cells.numbers, cells.ends, cells.valid, np.concatenate(heaps) if heaps else np.empty(0, np.uint8))


def columns_of(cells: Cells, types: Sequence[DataType], *, where: str) -> list[pa.Array]:
    """The columns of cells. CorruptionError where a nested value is not what its type says."""
    return [_column(cells, place, data_type, where) for place, data_type in enumerate(types)]


def encode_records(columns: Sequence[pa.Array], types: Sequence[DataType]) -> tuple[Bytes, Longs]:
    """The records of rows one behind the other, and where each begins and the last ends."""
    layout, cells = RecordLayout.of(types), cells_of(columns, types)
    rows = cells.numbers.shape[1]
    sizes = record_sizes(cells, layout)
    at = np.append(0, np.cumsum(sizes[1])).astype(np.int64)
    out = np.empty(int(at[-1]), np.uint8)
    write_records(cells, layout, np.ones(rows, np.uint8), at[:-1], out)
    return out, at


def record_sizes(cells: Cells, layout: RecordLayout) -> Longs:
    """The bytes of each record, behind another one and at a restart point."""
    sizes = np.empty((2, cells.numbers.shape[1]), np.int64)
    run = size_loop.for_bytes_or_interpreted(cells.numbers.size)
    run(cells.numbers, cells.ends, cells.valid, layout.widths, layout.deltas, layout.front, sizes)
    return sizes


def write_records(cells: Cells, layout: RecordLayout, restarts: Bytes, record_at: Longs, out: Bytes) -> None:
    """Write records to their places."""
    run = write_loop.for_bytes_or_interpreted(len(out))
    run(
        cells.numbers,
        cells.ends,
        cells.valid,
        cells.heap,
        layout.widths,
        layout.deltas,
        layout.front,
        restarts,
        np.ascontiguousarray(record_at),
        out,
    )


def read_records(
    data: Bytes, begins: Longs, limits: Longs, restarts: Bytes, layout: RecordLayout, rows: int, *, where: str
) -> Cells:
    """The cells of the records in spans of the data. CorruptionError where they are other than `rows`."""
    cells = Cells.empty(len(layout.types), rows, data)
    state = np.zeros(2, np.int64)
    run = read_loop.for_bytes_or_interpreted(int((limits - begins).sum()))
    run(
        data,
        begins,
        limits,
        restarts,
        layout.widths,
        layout.deltas,
        layout.front,
        cells.numbers,
        cells.ends,
        cells.valid,
        state,
    )
    if state[0] or state[1] != rows:
        raise CorruptionError(f"{where}: expected {rows} records, found {int(state[1])} and one that ends too late")
    return cells


def _width(data_type: DataType) -> int:
    if not isinstance(data_type, Atomic) or data_type.kind in (*STRINGS, *BINARIES):
        return 0
    if data_type.kind is Kind.DECIMAL:
        return 8 if data_type.precision <= _WIDE_DECIMAL else _WIDE
    return _WIDTHS.get(data_type.kind, 8)


def _numpy(column: pa.Array) -> Bytes:
    found: Bytes = column.to_numpy(zero_copy_only=False)
    return found


def _words(column: pa.Array, data_type: DataType) -> Words:
    """The values of a column that has a number for each; those below NULLs are undefined."""
    assert isinstance(data_type, Atomic), "a nested value is no number"
    if data_type.kind is Kind.BOOLEAN:
        return _numpy(column.cast(pa.uint8()).fill_null(0)).astype(np.uint64)
    buffer = column.buffers()[1] or b""
    if data_type.kind is Kind.DECIMAL:
        halves: Words = np.frombuffer(buffer, "<u8")[column.offset * 2 : (column.offset + len(column)) * 2 : 2]
        return halves
    size = column.type.bit_width // 8
    values = np.frombuffer(buffer, f"<{'u' if data_type.kind in FLOATS else 'i'}{size}")
    chosen: Words = values[column.offset : column.offset + len(column)].astype(np.int64).view(np.uint64)
    return chosen


def _wide(column: pa.Array) -> tuple[Bytes, Longs, Longs]:
    """The bytes of wide decimals, big-endian."""
    stored = np.frombuffer(column.buffers()[1] or b"", np.uint8)
    stored = stored[column.offset * _WIDE : (column.offset + len(column)) * _WIDE].reshape(-1, _WIDE)[:, ::-1]
    begins = np.arange(len(column), dtype=np.int64) * _WIDE
    return np.ascontiguousarray(stored).reshape(-1), begins, begins + _WIDE


def _spans(texts: pa.Array) -> tuple[Bytes, Longs, Longs]:
    """The bytes of a `large_binary` column."""
    if not len(texts):
        nothing = np.empty(0, np.int64)
        return np.empty(0, np.uint8), nothing, nothing
    offsets = np.frombuffer(texts.buffers()[1], np.int64, len(texts) + 1, texts.offset * 8)
    data = np.frombuffer(texts.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
    return data, offsets[:-1] - offsets[0], offsets[1:] - offsets[0]


def _texts(column: pa.Array, data_type: DataType) -> pa.Array:
    """The bytes of each value of a column whose values differ in length."""
    if isinstance(data_type, Atomic):
        return column.cast(pa.large_binary())
    # Children are those of whole arrays only.
    whole = pa.concat_arrays([column, column.slice(0, 0)]) if column.offset else column
    if isinstance(data_type, Row):
        if not data_type.fields:
            return pa.array([b""] * len(column), pa.large_binary())
        children = [whole.field(place) for place in range(len(data_type.fields))]
        data, at = encode_records(children, [field.type for field in data_type.fields])
        return _binary(data, at, pa.large_binary())
    offsets = np.asarray(whole.offsets.to_numpy(zero_copy_only=False), np.int64)
    first, count = int(offsets[0]), int(offsets[-1] - offsets[0])
    children = [whole.values] if isinstance(data_type, Array) else [whole.keys, whole.items]
    data, at = encode_records([child.slice(first, count) for child in children], _child_types(data_type))
    return _counted(data, at[offsets - first], np.diff(offsets))


def _counted(data: Bytes, at: Longs, counts: Longs) -> pa.Array:
    """Spans of records, each with the varint of its count in front."""
    bounds = np.array([1 << 7 * step for step in range(1, 6)], np.int64)
    heads = np.searchsorted(bounds, counts, side="right").astype(np.int64) + 1
    begins, ends = np.ascontiguousarray(at[:-1]), np.ascontiguousarray(at[1:])
    out_at = np.append(0, np.cumsum(heads + ends - begins)).astype(np.int64)
    out = np.empty(int(out_at[-1]), np.uint8)
    for step in range(int(heads.max()) if len(heads) else 0):
        rows = np.flatnonzero(heads > step)
        more = np.where(heads[rows] > step + 1, 128, 0)
        out[out_at[rows] + step] = (counts[rows] >> 7 * step & 127) | more
    gather_loop.for_bytes_or_interpreted(len(out))(data, begins, ends, out_at[:-1] + heads, out)
    return _binary(out, out_at, pa.large_binary())


def _child_types(data_type: Array | Map | Multiset) -> list[DataType]:
    match data_type:
        case Array(element):
            return [element]
        case Map(key, value):
            return [key, value]
        case Multiset(element):
            return [element, _COUNT]


def _binary(data: Bytes, at: Longs, arrow: pa.DataType) -> pa.Array:
    return pa.Array.from_buffers(arrow, len(at) - 1, [None, pa.py_buffer(at), pa.py_buffer(data)])


def _column(cells: Cells, place: int, data_type: DataType, where: str) -> pa.Array:
    valid = cells.valid[place]
    rows = len(valid)
    arrow, width = to_arrow(data_type), _width(data_type)
    mask = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    if not isinstance(data_type, Atomic):
        begins, ends = cells.numbers[place].view(np.int64), cells.ends[place]
        return _nested(cells.heap, begins, ends, valid, data_type, where)
    if width == 0:
        begins, ends = cells.numbers[place].view(np.int64), cells.ends[place]
        at = np.append(0, np.cumsum(ends - begins))
        if at[-1] >= 2**31:
            raise CorruptionError(f"{where}: {int(at[-1])} bytes of one column are more than a batch holds")
        out = np.empty(int(at[-1]), np.uint8)
        gather_loop.for_bytes_or_interpreted(len(out))(cells.heap, begins, ends, at[:-1], out)
        return pa.Array.from_buffers(arrow, rows, [mask, pa.py_buffer(at.astype(np.int32)), pa.py_buffer(out)])
    if width == _WIDE:
        # A NULL begins at 0, where there may be fewer bytes than a value has.
        here = np.flatnonzero(valid)
        wide = np.zeros((rows, _WIDE), np.uint8)
        begins = cells.numbers[place].view(np.int64)[here]
        wide[here] = cells.heap[begins[:, None] + np.arange(_WIDE - 1, -1, -1)]
        return pa.Array.from_buffers(arrow, rows, [mask, pa.py_buffer(wide)])
    if data_type.kind is Kind.BOOLEAN:
        packed = np.packbits(cells.numbers[place].astype(np.uint8), bitorder="little")
        return pa.Array.from_buffers(arrow, rows, [mask, pa.py_buffer(packed)])
    signed = cells.numbers[place].view(np.int64)
    if data_type.kind is Kind.DECIMAL:
        halves = np.stack([signed, signed >> 63], axis=1)
        return pa.Array.from_buffers(arrow, rows, [mask, pa.py_buffer(np.ascontiguousarray(halves))])
    return pa.Array.from_buffers(arrow, rows, [mask, pa.py_buffer(signed.astype(f"<i{width}"))])


def _nested(
    heap: Bytes, begins: Longs, ends: Longs, valid: Bytes, data_type: Array | Map | Multiset | Row, where: str
) -> pa.Array:
    arrow, mask = to_arrow(data_type), None if valid.all() else pa.array(valid == 0)
    if isinstance(data_type, Row):
        here = np.flatnonzero(valid)
        types = [field.type for field in data_type.fields]
        if not types:
            return pa.array([{} if one else None for one in valid], arrow)
        children = _children(heap, begins[here], ends[here], types, len(here), where)
        if mask is not None:
            places = np.zeros(len(valid), np.int64)
            places[here] = np.arange(len(here))
            at = pa.array(places, mask=valid == 0)
            children = [child.take(at) for child in children]
        return pa.StructArray.from_arrays(children, fields=list(arrow), mask=mask)
    begins, counts, state = begins.copy(), np.zeros(len(begins), np.int64), np.zeros(1, np.int64)
    count_loop.for_bytes_or_interpreted(len(begins))(heap, begins, ends, counts, state)
    if state[0] or (counts > ends - begins).any():
        raise CorruptionError(f"{where}: a value of type {data_type} has more elements than bytes")
    children = _children(heap, begins, ends, _child_types(data_type), int(counts.sum()), where)
    offsets = pa.array(np.append(0, np.cumsum(counts)).astype(np.int32))
    if isinstance(data_type, Array):
        return pa.ListArray.from_arrays(offsets, children[0], type=arrow, mask=mask)
    return pa.MapArray.from_arrays(offsets, children[0], children[1], type=arrow, mask=mask)


def _children(
    heap: Bytes, begins: Longs, ends: Longs, types: Sequence[DataType], rows: int, where: str
) -> list[pa.Array]:
    restarts = np.ones(len(begins), np.uint8)
    cells = read_records(heap, begins, ends, restarts, RecordLayout.of(types), rows, where=where)
    return columns_of(cells, types, where=where)
