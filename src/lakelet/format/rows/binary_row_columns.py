"""BinaryRow, whole columns at a time: buckets of incoming rows, partitions and statistics of all files of a plan.

The layout is drawn in `binary_row`; this is the same bytes without a Python step per row. Rows are
assembled in one buffer of 4-byte words (every part of a row is a multiple of that), so that the same
buffer is hashed without a copy. What has no fixed width goes through `_copy_spans`. Decoding trusts
nothing: each position is checked against its row before it is followed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lakelet.errors import CorruptionError, InvalidError
from lakelet.format.compiled.compiled_loop import compiled_loop
from lakelet.format.rows.binary_row import (
    COMPACT_TIMESTAMP,
    DECIMAL_ROOM,
    INLINE_BYTES,
    PREFIX,
    encode_row,
    header_bytes,
    is_tailed_decimal,
    is_tailed_timestamp,
)
from lakelet.format.rows.few_rows import encode_few_rows
from lakelet.format.rows.murmur import hash_columns, hash_words, murmur3_32
from lakelet.model.arrow.arrow_types import timestamp_unit, to_arrow
from lakelet.model.row_arrays import Mask
from lakelet.model.types import BINARIES, STRINGS, TIMESTAMPS, Atomic, DataType, Kind

Bytes = NDArray[np.uint8]
Longs = NDArray[np.int64]

_SLOT = 8
_WORD = 4
_KIND_BITS = 8
_INLINE_MARK = 0x80
_MAX_BYTES = 2**31 - 1
_NANOS_OF_MILLI = 1_000_000
_DAY_MILLIS = 86_400_000
_HASH_ROWS = 1 << 18
# Longer rows are hashed by the compiled loop, however few they are.
_SHORT_ROW = 256
_UNITS_PER_MILLI = {"ms": 1, "us": 1_000, "ns": 1_000_000}
_NUMPY: dict[Kind, np.dtype[Any]] = {
    Kind.BOOLEAN: np.dtype("<u1"),
    Kind.TINYINT: np.dtype("<i1"),
    Kind.SMALLINT: np.dtype("<i2"),
    Kind.INT: np.dtype("<i4"),
    Kind.DATE: np.dtype("<i4"),
    Kind.TIME: np.dtype("<i4"),
    Kind.BIGINT: np.dtype("<i8"),
    Kind.FLOAT: np.dtype("<f4"),
    Kind.DOUBLE: np.dtype("<f8"),
}
_UNSIGNED: dict[int, np.dtype[Any]] = {1: np.dtype("<u1"), 2: np.dtype("<u2"), 4: np.dtype("<u4"), 8: np.dtype("<u8")}


@dataclass(frozen=True, slots=True)
class _Field:
    """A column split into slots and tails.

    `room` is how many bytes of tail each row takes (one number where all take the same). A slot gets
    the offset of its tail in the upper half wherever `tailed` says so. `spans` are bytes still to be
    copied: the buffer, where each begins in it, how long it is. Spans of rows without a tail go into the slot.
    """

    slots: Longs
    nulls: Mask | None
    room: Longs | int = 0
    tailed: Mask | bool = False
    spans: tuple[Bytes, Longs, Longs] | None = None
    tail_words: Longs | None = None

    @property
    def is_flat(self) -> bool:
        """Whether the slots are all there is."""
        return isinstance(self.room, int) and self.room == 0 and self.spans is None


def encode_rows(columns: Sequence[pa.Array | pa.ChunkedArray], types: Sequence[DataType]) -> pa.Array:
    """The rows these columns make, each with its arity in front, as a binary array."""
    few = encode_few_rows(columns, types)
    if few is not None:
        return pa.array(few, pa.binary())
    fields = _take_apart(columns, types)
    count = len(fields[0].slots) if fields else 0
    words, starts = _assemble(fields, count, prefix_words=PREFIX // _WORD)
    if words.nbytes > _MAX_BYTES:
        raise InvalidError(f"{count} rows make {words.nbytes} bytes, more than one array of them can hold")
    words[starts[:-1]] = np.uint32(int.from_bytes(len(types).to_bytes(PREFIX, "big"), "little"))
    offsets = (starts * _WORD).astype(np.int32)
    return pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(words)])


def hash_rows(columns: Sequence[pa.Array | pa.ChunkedArray], types: Sequence[DataType]) -> NDArray[np.int32]:
    """Paimon's hash of the rows these columns make (of their bodies, without the arity)."""
    few = encode_few_rows(columns, types)
    if few is not None and max(map(len, few), default=0) <= _SHORT_ROW:
        return np.array([murmur3_32(row[PREFIX:]) for row in few], np.int32)
    total = len(columns[0]) if columns else 0
    parts: list[NDArray[np.int32]] = []
    # In pieces, so that the assembled rows stay small however many there are.
    for begin in range(0, total, _HASH_ROWS):
        fields = _take_apart([column.slice(begin, _HASH_ROWS) for column in columns], types)
        if all(field.is_flat for field in fields):
            # Rows of one length need not be assembled to be hashed.
            parts.append(hash_columns(_flat_words(fields)))
            continue
        words, starts = _assemble(fields, len(fields[0].slots), prefix_words=0)
        parts.append(hash_words(words, starts[:-1], np.diff(starts)))
    return np.concatenate(parts) if parts else np.empty(0, np.int32)


def bucket_of(hashes: NDArray[np.int32], buckets: int) -> NDArray[np.int32]:
    """The bucket of each hash: the remainder truncated towards zero as in Java, without its sign."""
    if buckets < 1:
        raise InvalidError(f"a table has at least one bucket, not {buckets}")
    return np.abs(np.fmod(hashes.astype(np.int64), buckets)).astype(np.int32)


def _take_apart(columns: Sequence[pa.Array | pa.ChunkedArray], types: Sequence[DataType]) -> list[_Field]:
    if len(columns) != len(types):
        raise InvalidError(f"rows of {len(types)} fields were given {len(columns)} columns")
    if len({len(column) for column in columns}) > 1:
        raise InvalidError(f"columns of one row differ in length: {[len(column) for column in columns]}")
    return [_field(_one_array(column, data_type), data_type) for column, data_type in zip(columns, types, strict=True)]


def _one_array(column: pa.Array | pa.ChunkedArray, data_type: DataType) -> pa.Array:
    wanted = to_arrow(data_type)
    if not isinstance(data_type, Atomic):
        if column.null_count != len(column):
            raise InvalidError(f"{data_type} has no place in metadata rows or keys")
        return pa.nulls(len(column), pa.int64())
    if column.type != wanted:
        try:
            column = pc.cast(column, wanted)
        except pa.ArrowException as error:
            raise InvalidError(f"a column of {column.type} cannot be taken as {data_type}: {error}") from error
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks or [pa.array([], wanted)])
    return column


def _fixed(array: pa.Array, dtype: np.dtype[Any]) -> NDArray[Any]:
    data = array.buffers()[1]
    if data is None or not len(array):
        return np.zeros(len(array), dtype)
    return np.frombuffer(data, dtype, len(array), array.offset * dtype.itemsize)


def _field(array: pa.Array, data_type: DataType) -> _Field:
    nulls = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    if not isinstance(data_type, Atomic):
        return _Field(np.zeros(len(array), np.int64), nulls)
    kind = data_type.kind
    if kind in STRINGS or kind in BINARIES:
        return _text_field(array, nulls)
    if kind is Kind.DECIMAL:
        return _decimal_field(array, nulls, tailed=is_tailed_decimal(data_type))
    if kind in TIMESTAMPS:
        return _timestamp_field(array, nulls, data_type)
    if kind is Kind.BOOLEAN:
        array = array.cast(pa.uint8())
    values = _fixed(array, _NUMPY[kind])
    # A slot is filled up with zeros, not with the sign.
    slots = values.view(_UNSIGNED[values.dtype.itemsize]).astype(np.uint64).view(np.int64)
    return _Field(_without_nulls(slots, nulls), nulls)


def _without_nulls(values: Longs, nulls: Mask | None) -> Longs:
    return values if nulls is None else np.where(nulls, 0, values)


def _text_field(array: pa.Array, nulls: Mask | None) -> _Field:
    _, offset_buffer, data_buffer = array.buffers()
    count = len(array)
    if offset_buffer is None or not count:
        return _Field(np.zeros(count, np.int64), nulls)
    offsets = np.frombuffer(offset_buffer, "<i4", count + 1, array.offset * 4).astype(np.int64)
    data = np.frombuffer(data_buffer, np.uint8) if data_buffer is not None else np.empty(0, np.uint8)
    lengths = _without_nulls(np.diff(offsets), nulls)
    long = lengths > INLINE_BYTES
    marks = (lengths | _INLINE_MARK) << 56
    slots = _without_nulls(np.where(long, lengths, marks), nulls)
    room = np.where(long, lengths + (_SLOT - 1) & ~np.int64(_SLOT - 1), 0)
    return _Field(slots, nulls, room, long, (data, offsets[:-1], lengths))


def _decimal_field(array: pa.Array, nulls: Mask | None, *, tailed: bool) -> _Field:
    if not len(array):
        return _Field(np.zeros(0, np.int64), nulls)
    pairs = np.frombuffer(array.buffers()[1], "<i8", 2 * len(array), array.offset * 16).reshape(-1, 2)
    if not tailed:
        return _Field(_without_nulls(np.ascontiguousarray(pairs[:, 0]), nulls), nulls)
    big = np.ascontiguousarray(np.ascontiguousarray(pairs).view(np.uint8).reshape(-1, DECIMAL_ROOM)[:, ::-1])
    negative = pairs[:, 1] < 0
    # The shortest form drops leading bytes that only repeat the sign, and keeps one bit that shows it.
    differs = big != np.where(negative, 0xFF, 0).astype(np.uint8)[:, None]
    first = np.where(differs.any(axis=1), differs.argmax(axis=1), DECIMAL_ROOM - 1)
    shows_sign = (big[np.arange(len(big)), first] >= _INLINE_MARK) == negative
    first = first - (~shows_sign)
    lengths = _without_nulls(DECIMAL_ROOM - first, nulls)
    starts = np.arange(len(big), dtype=np.int64) * DECIMAL_ROOM + first
    return _Field(lengths, nulls, DECIMAL_ROOM, True, (big.reshape(-1), starts, lengths))


def _timestamp_field(array: pa.Array, nulls: Mask | None, data_type: Atomic) -> _Field:
    values = _without_nulls(_fixed(array, np.dtype("<i8")).astype(np.int64, copy=False), nulls)
    if data_type.precision <= COMPACT_TIMESTAMP:
        return _Field(values, nulls)
    per_milli = _UNITS_PER_MILLI[timestamp_unit(data_type.precision)]
    millis = values // per_milli
    nanos = (values - millis * per_milli) * (_NANOS_OF_MILLI // per_milli)
    return _Field(nanos, nulls, _SLOT, True, tail_words=millis)


def _assemble(fields: Sequence[_Field], count: int, *, prefix_words: int) -> tuple[NDArray[np.uint32], Longs]:
    """All rows in one buffer of words, and where each begins (and the last ends); the prefix is left zero."""
    arity = len(fields)
    header = header_bytes(arity)
    tail_at = header + _SLOT * arity
    body_bytes = np.full(count, tail_at, np.int64)
    for field in fields:
        body_bytes += field.room
    starts = np.zeros(count + 1, np.int64)
    np.cumsum(body_bytes // _WORD + prefix_words, out=starts[1:])
    words = np.zeros(int(starts[-1]), np.uint32)
    bodies = starts[:-1] + prefix_words
    cursor = np.full(count, tail_at, np.int64)
    for index, field in enumerate(fields):
        slot_bytes = header + _SLOT * index
        if field.nulls is not None:
            bit = index + _KIND_BITS
            words[bodies + bit // 32] |= field.nulls.astype(np.uint32) << np.uint32(bit % 32)
        slots = field.slots
        if field.tailed is not False:
            slots = slots | np.where(field.tailed, cursor << 32, 0)
        _put_longs(words, bodies + slot_bytes // _WORD, slots)
        if field.tail_words is not None:
            _put_longs(words, bodies + cursor // _WORD, field.tail_words)
        if field.spans is not None:
            data, begins, lengths = field.spans
            targets = bodies * _WORD + np.where(field.tailed, cursor, slot_bytes)
            _copy_spans(words.view(np.uint8), targets, data, begins, lengths)
        cursor += field.room
    return words, starts


def _flat_words(fields: Sequence[_Field]) -> list[NDArray[np.uint32]]:
    """The words of rows that are nothing but slots: the header with the bits of NULLs, then two for each slot."""
    header = [np.zeros(1, np.uint32) for _ in range(header_bytes(len(fields)) // _WORD)]
    for index, field in enumerate(fields):
        if field.nulls is not None:
            bit = index + _KIND_BITS
            header[bit // 32] = header[bit // 32] | field.nulls.astype(np.uint32) << np.uint32(bit % 32)
    pairs = [np.ascontiguousarray(field.slots).view(np.uint32).reshape(-1, 2) for field in fields]
    return [*header, *(pair[:, half] for pair in pairs for half in (0, 1))]


def _put_longs(words: NDArray[np.uint32], at: Longs, values: Longs) -> None:
    words[at] = values.astype(np.uint32)
    words[at + 1] = (values >> 32).astype(np.uint32)


def _copy_spans(target: Bytes, at: Longs, source: Bytes, begins: Longs, lengths: Longs) -> None:
    """Copies `lengths[i]` bytes from `source[begins[i]]` to `target[at[i]]`; all bounds are the caller's duty."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    run = _copy_loop.for_bytes(total)
    if run is not None:
        run(target, at, source, begins, lengths)
        return
    running = np.arange(total)
    before = ends - lengths
    target[running + np.repeat(at - before, lengths)] = source[running + np.repeat(begins - before, lengths)]


@compiled_loop(
    "void(uint8[::1], int64[::1], Array(uint8, 1, 'C', readonly=True), int64[::1], int64[::1])", saved_ns_per_byte=6.0
)
def _copy_loop(target: Bytes, at: Longs, source: Bytes, begins: Longs, lengths: Longs) -> None:
    # Unsigned, so that no index can count from the end: with that check the copy is ten times slower.
    for i in range(at.shape[0]):
        to = np.uint64(at[i])
        begin = np.uint64(begins[i])
        for j in range(np.uint64(lengths[i])):
            target[to + j] = source[begin + j]


def decode_rows(rows: pa.Array | pa.ChunkedArray, types: Sequence[DataType], *, where: str = "") -> list[pa.Array]:
    """The columns of rows that start with their arity, in the Arrow types of `to_arrow`.

    A NULL in place of a row gives a NULL in every column. `where` names the place in errors.
    """
    place = f"{where}: " if where else ""
    reader = _RowReader.over(rows, types, place)
    return [reader.column(index, data_type) for index, data_type in enumerate(types)]


def decode_bounds(rows: pa.Array | pa.ChunkedArray, types: Sequence[DataType]) -> list[pa.Array]:
    """The columns of rows that hold statistics, NULL in place of every value that cannot be decoded: it is unknown."""
    if isinstance(rows, pa.ChunkedArray):
        rows = pa.concat_arrays(rows.chunks or [pa.array([], rows.type)])
    try:
        return decode_rows(rows, types)
    except (CorruptionError, InvalidError):
        if len(rows) == 1:
            return [_bound(rows, types, index) for index in range(len(types))]
        # Few rows are damaged where any are: they are found by halving.
        middle = len(rows) // 2
        halves = [decode_bounds(part, types) for part in (rows.slice(0, middle), rows.slice(middle))]
        return [pa.concat_arrays(parts) for parts in zip(*halves, strict=True)]


def _bound(row: pa.Array, types: Sequence[DataType], index: int) -> pa.Array:
    """One column of one row, NULL where it cannot be decoded."""
    try:
        return _RowReader.over(row, types, "").column(index, types[index])
    except (CorruptionError, InvalidError):
        return pa.nulls(1, to_arrow(types[index]))


@dataclass(frozen=True, slots=True)
class _RowReader:
    """Rows whose arity and least length were checked: the bytes, and where each body begins and ends."""

    data: Bytes
    begins: Longs
    ends: Longs
    header: int
    place: str

    @classmethod
    def over(cls, rows: pa.Array | pa.ChunkedArray, types: Sequence[DataType], place: str) -> _RowReader:
        arity = len(types)
        if isinstance(rows, pa.ChunkedArray):
            rows = pa.concat_arrays(rows.chunks or [pa.array([], rows.type)])
        if rows.null_count:
            rows = pc.fill_null(rows, pa.scalar(encode_row([None] * arity, types), rows.type))
        if not pa.types.is_binary(rows.type):
            rows = rows.cast(pa.binary())
        count = len(rows)
        if not count:
            empty = np.empty(0, np.int64)
            return cls(np.zeros(_SLOT, np.uint8), empty, empty, header_bytes(arity), place)
        _, offset_buffer, data_buffer = rows.buffers()
        offsets = np.frombuffer(offset_buffer, "<i4", count + 1, rows.offset * 4).astype(np.int64)
        data = np.frombuffer(data_buffer, np.uint8) if data_buffer is not None else np.empty(0, np.uint8)
        begins, ends = offsets[:-1] + PREFIX, offsets[1:]
        header = header_bytes(arity)
        short = ends - begins < header + _SLOT * arity
        if short.any():
            first = int(short.argmax())
            size = ends[first] - offsets[first]
            raise CorruptionError(f"{place}row {first}: a row of {arity} fields cannot be {size} bytes long")
        found = _gather(data, offsets[:-1], np.dtype(">i4"))
        if (found != arity).any():
            first = int((found != arity).argmax())
            raise CorruptionError(f"{place}row {first}: expected a row of {arity} fields, found {found[first]}")
        return cls(data, begins, ends, header, place)

    def column(self, index: int, data_type: DataType) -> pa.Array:
        bit = index + _KIND_BITS
        nulls = (self.data[self.begins + bit // 8] >> np.uint8(bit % 8) & 1).astype(np.bool_)
        arrow = to_arrow(data_type)
        if not isinstance(data_type, Atomic):
            self.refuse(~nulls, index, data_type, "holds a nested value")
            return pa.nulls(len(nulls), arrow)
        at = self.begins + (self.header + _SLOT * index)
        validity = _validity(nulls)
        kind = data_type.kind
        if kind in STRINGS or kind in BINARIES:
            return self._text(index, data_type, at, nulls, validity)
        if kind is Kind.BOOLEAN:
            bits = pa.py_buffer(np.packbits(self.data[at] != 0, bitorder="little"))
            return pa.Array.from_buffers(arrow, len(at), [validity, bits])
        if kind is Kind.DECIMAL:
            return self._decimal(index, data_type, at, nulls, validity)
        if kind in TIMESTAMPS:
            values = self._timestamps(index, data_type, at, nulls)
        else:
            values = _gather(self.data, at, _NUMPY[kind])
        if kind is Kind.TIME:
            values = np.where(nulls, 0, values)
            self.refuse((values < 0) | (values >= _DAY_MILLIS), index, data_type, "is no time of a day")
        return pa.Array.from_buffers(arrow, len(at), [validity, pa.py_buffer(values)])

    def refuse(self, wrong: Mask, index: int, data_type: DataType, what: str) -> None:
        if wrong.any():
            raise CorruptionError(f"{self.place}row {int(wrong.argmax())}: field {index}, {data_type}, {what}")

    def _tail(self, index: int, data_type: DataType, slots: Longs, lengths: Longs, used: Mask) -> Longs:
        """Where the tails of a field begin in the buffer, checked to lie inside their rows; 0 where none is used."""
        offsets = slots >> 32
        begins = self.begins + offsets
        self.refuse(used & ((offsets < 0) | (begins + lengths > self.ends)), index, data_type, "reaches beyond the row")
        return np.where(used, begins, 0)

    def _text(self, index: int, data_type: Atomic, at: Longs, nulls: Mask, validity: pa.Buffer | None) -> pa.Array:
        slots = _gather(self.data, at, np.dtype("<i8"))
        inline = slots < 0
        inline_lengths = slots >> 56 & ~np.int64(_INLINE_MARK) & 0xFF
        self.refuse(~nulls & inline & (inline_lengths > INLINE_BYTES), index, data_type, "does not fit its slot")
        lengths = np.where(nulls, 0, np.where(inline, inline_lengths, slots & 0xFFFFFFFF))
        tails = self._tail(index, data_type, slots, lengths, ~nulls & ~inline)
        ends = np.cumsum(lengths)
        total = int(ends[-1]) if len(ends) else 0
        if total > _MAX_BYTES:
            raise InvalidError(f"{self.place}field {index} of these rows makes {total} bytes, too many for one array")
        offsets = np.zeros(len(at) + 1, np.int32)
        offsets[1:] = ends
        text = np.empty(total, np.uint8)
        _copy_spans(text, ends - lengths, self.data, np.where(inline, at, tails), lengths)
        array = pa.Array.from_buffers(
            to_arrow(data_type), len(at), [validity, pa.py_buffer(offsets), pa.py_buffer(text)]
        )
        return self._validated(array, index, data_type)

    def _decimal(self, index: int, data_type: Atomic, at: Longs, nulls: Mask, validity: pa.Buffer | None) -> pa.Array:
        slots = _gather(self.data, at, np.dtype("<i8"))
        count = len(at)
        if not is_tailed_decimal(data_type):
            values = np.empty((count, 2), np.int64)
            values[:, 0] = slots
            values[:, 1] = slots >> 63
            buffer = pa.py_buffer(values)
        else:
            lengths = np.where(nulls, 0, slots & 0xFFFFFFFF)
            wrong = ~nulls & ((lengths < 1) | (lengths > DECIMAL_ROOM))
            self.refuse(wrong, index, data_type, "has no digits or too many")
            begins = self._tail(index, data_type, slots, lengths, ~nulls)
            big = np.zeros((count, DECIMAL_ROOM), np.uint8)
            first = np.minimum(DECIMAL_ROOM - lengths, DECIMAL_ROOM - 1)
            row = np.arange(count, dtype=np.int64)
            _copy_spans(big.reshape(-1), row * DECIMAL_ROOM + DECIMAL_ROOM - lengths, self.data, begins, lengths)
            negative = big[row, first] >= _INLINE_MARK
            big[(np.arange(DECIMAL_ROOM) < first[:, None]) & negative[:, None]] = 0xFF
            buffer = pa.py_buffer(np.ascontiguousarray(big[:, ::-1]))
        array = pa.Array.from_buffers(to_arrow(data_type), count, [validity, buffer])
        return self._validated(array, index, data_type)

    def _timestamps(self, index: int, data_type: Atomic, at: Longs, nulls: Mask) -> Longs:
        slots = _gather(self.data, at, np.dtype("<i8"))
        if not is_tailed_timestamp(data_type):
            return slots
        begins = self._tail(index, data_type, slots, np.full(len(at), _SLOT, np.int64), ~nulls)
        nanos = np.where(nulls, 0, slots & 0xFFFFFFFF)
        self.refuse(nanos >= _NANOS_OF_MILLI, index, data_type, "has a millisecond too long")
        millis = np.where(nulls, 0, _gather(self.data, begins, np.dtype("<i8")))
        unit = timestamp_unit(data_type.precision)
        per_milli = _UNITS_PER_MILLI[unit]
        within = nanos // (_NANOS_OF_MILLI // per_milli)
        # The first and the last millisecond are only partly representable.
        most, left = divmod(2**63 - 1, per_milli)
        least, first = divmod(-(2**63), per_milli)
        beyond = (
            (millis > most)
            | (millis < least)
            | (millis == most) & (within > left)
            | (millis == least) & (within < first)
        )
        self.refuse(beyond, index, data_type, f"is beyond what timestamp({unit}) holds")
        with np.errstate(over="ignore"):
            # In its first millisecond the product alone overflows; with what is added it is right again.
            values: Longs = millis * per_milli + within
        return values

    def _validated(self, array: pa.Array, index: int, data_type: DataType) -> pa.Array:
        try:
            array.validate(full=True)
        except pa.ArrowException as error:
            raise CorruptionError(f"{self.place}field {index}, {data_type}: {error}") from error
        return array


def _gather(data: Bytes, at: Longs, dtype: np.dtype[Any]) -> Longs:
    """Numbers that begin at any byte, aligned or not, in native order."""
    if len(data) < dtype.itemsize:
        return np.zeros(len(at), dtype.newbyteorder("="))
    everywhere = np.ndarray((len(data) - dtype.itemsize + 1,), dtype, data, strides=(1,))
    return everywhere[at].astype(dtype.newbyteorder("="), copy=False)


def _validity(nulls: Mask) -> pa.Buffer | None:
    return pa.py_buffer(np.packbits(~nulls, bitorder="little")) if nulls.any() else None
