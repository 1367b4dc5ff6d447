"""Encode keys as order-preserving machine words.

Between the columns of a sorted run or a write buffer and the kernels that order and merge them (`winners`, `sort_fold`).
Rows of keys go in, rows of uint64 words come out; two rows compare word by word, as unsigned numbers, like Paimon compares
the keys. It never looks at values that are no keys, and the words are never stored: they only compare with words that the
same call made.

A row is one string of bits, most significant first, cut into words:

    column 1 | column 2 | ... | zero bits up to a whole word

    BOOLEAN, integers, DATE, TIME, TIMESTAMP   value - least value of all parts, in as many bits as the greatest needs
    FLOAT, DOUBLE                              the same over bits that compare like Float.compare: -0.0 < 0.0, NaN greatest
    DECIMAL(p <= 18), DECIMAL(p > 18)          the same over the unscaled value; over its high and its low 64 bits
    CHAR, VARCHAR, BINARY, VARBINARY           bytes, zeros up to the longest, and the length if something else would be equal
    ... all of them UUIDs in lower case        the 128 bits they spell; only compiled, in numpy that takes longer than it saves
    ... some far longer than most              the place of the value among all values, in order

A column of versions that holds a NULL begins with a bit that is 0 for NULL; the bits of its values are inverted if the
order is descending, so that NULL loses either way. A key of one fixed-width column is not narrowed: there is no need.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lakelet.errors import InvalidError
from lakelet.format.compiled.compiled_loop import compiled_loop
from lakelet.model.arrow.arrow_types import to_arrow
from lakelet.model.types import BINARIES, STRINGS, Atomic, DataType, Kind

Words = NDArray[np.uint64]
"""Rows of words, shape (rows, width), C-contiguous."""
Column: TypeAlias = pa.Array | pa.ChunkedArray

RANKED_ABOVE_BYTES = 64
RANKED_ABOVE_PADDING = 2
"""If the longest string has more bytes than that, and padding to it would make all strings this many times as large, they
become ranks: one long string does not widen all rows. Ranks cost a sort of the strings themselves."""

_UUID = re.compile(rb"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_UUID_BYTES = 36
_LONG_BYTES = 1024
_WORD = 64
_SIGN = np.uint64(1 << 63)
_NAN32, _NAN64 = np.uint32(0x7FC00000), np.uint64(0x7FF8000000000000)


@dataclass(frozen=True, slots=True)
class _Bits:
    """A column, or part of one, of which every value takes the same `size` bits of a row."""

    values: NDArray[np.uint64]
    size: int


@dataclass(frozen=True, slots=True)
class _Uuids:
    """A column of which every value takes two whole words."""

    words: Words
    size: int = 2 * _WORD


@dataclass(frozen=True, slots=True)
class _Text:
    """A column of strings of at most `size // 8` bytes: the pieces it came in, without NULLs."""

    pieces: tuple[_Strings, ...]
    size: int
    inverted: bool


@dataclass(frozen=True, slots=True)
class _Strings:
    """The bytes of one piece, and where each of its strings begins and the last ends."""

    offsets: NDArray[np.int64]
    data: NDArray[np.uint8]


_Field = _Bits | _Uuids | _Text


def encode_keys(parts: Sequence[Sequence[Column]], types: Sequence[DataType]) -> list[Words]:
    """The words of each part's rows; the words of all parts compare with one another.

    A part has its key columns in key order. The results are consecutive slices of one array. InvalidError for a NULL.
    """
    for number, part in enumerate(parts):
        for place, column in enumerate(part):
            if column.null_count:
                row = pc.index(pc.is_null(column), True).as_py()
                raise InvalidError(f"key column {place} holds NULL in row {row} of part {number}; keys are never NULL")
    return _encode(parts, types, descending=False)


def encode_versions(parts: Sequence[Sequence[Column]], types: Sequence[DataType], *, descending: bool) -> list[Words]:
    """The words of each part's sequence fields: the greater words win, and NULL loses to everything."""
    return _encode(parts, types, descending=descending)


def _encode(parts: Sequence[Sequence[Column]], types: Sequence[DataType], *, descending: bool) -> list[Words]:
    if not parts:
        return []
    counts = [len(part[0]) if len(part) else 0 for part in parts]
    fields: list[_Field] = []
    for place, data_type in enumerate(types):
        pieces = [piece for part in parts for piece in _pieces(part[place], data_type, place)]
        fields += _fields(pieces, data_type, descending)
    if len(fields) == 1 and isinstance(field := fields[0], _Bits):
        words = np.ascontiguousarray(field.values).reshape(-1, 1)
    elif len(fields) == 1 and isinstance(field, _Uuids):
        words = field.words
    else:
        words = _laid_out([_narrowed(field) if isinstance(field, _Bits) else field for field in fields], sum(counts))
    ends = np.cumsum(counts).tolist()
    return [words[end - count : end] for end, count in zip(ends, counts, strict=True)]


def _pieces(column: Column, data_type: DataType, place: int) -> list[pa.Array]:
    """The chunks of a column in the type of `to_arrow`; strings in any type that has offsets and bytes."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    target = to_arrow(data_type)
    texts = isinstance(data_type, Atomic) and data_type.kind in (*STRINGS, *BINARIES)
    pieces = []
    for chunk in chunks:
        piece = chunk.dictionary_decode() if pa.types.is_dictionary(chunk.type) else chunk
        try:
            if texts and not _has_offsets(piece.type):
                viewed = pa.types.is_string_view(piece.type) or pa.types.is_binary_view(piece.type)
                piece = piece.cast(pa.large_binary() if viewed else target)
            elif not texts and piece.type != target:
                piece = piece.cast(target)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise InvalidError(f"key column {place}: {piece.type} is no {data_type}: {error}") from error
        pieces.append(piece)
    return pieces


def _has_offsets(arrow: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_string(arrow) or types.is_large_string(arrow) or types.is_binary(arrow) or types.is_large_binary(arrow)
    )


def _fields(pieces: list[pa.Array], data_type: DataType, descending: bool) -> list[_Field]:
    if not isinstance(data_type, Atomic):
        raise InvalidError(f"rows are not compared by a column of type {data_type}")
    valid: NDArray[np.uint64] | None = None
    if any(piece.null_count for piece in pieces):
        valid = _joined([piece.is_valid().cast(pa.uint8()).to_numpy() for piece in pieces], np.uint8).astype(np.uint64)
    fields: list[_Field]
    if data_type.kind in (*STRINGS, *BINARIES):
        fields = _text_fields(pieces, descending)
    else:
        columns = _numbers(pieces, data_type)
        if valid is not None:
            # The memory below a NULL is undefined; all NULLs are equal.
            columns = [np.where(valid != 0, column, np.uint64(0)) for column in columns]
        fields = [_Bits(~column if descending else column, _WORD) for column in columns]
    return fields if valid is None else [_Bits(valid, 1), *fields]


def _joined(arrays: list[NDArray[np.generic]], dtype: type[np.generic]) -> NDArray[np.generic]:
    if not arrays:
        return np.empty(0, dtype)
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _numbers(pieces: list[pa.Array], data_type: Atomic) -> list[NDArray[np.uint64]]:
    """The values as unsigned numbers in the order of the values; two columns where 64 bits are not enough."""
    total = sum(len(piece) for piece in pieces)
    outs = [
        np.empty(total, np.uint64) for _ in range(1 + (data_type.kind is Kind.DECIMAL and data_type.precision > 18))
    ]
    at = 0
    for piece in pieces:
        end = at + len(piece)
        if data_type.kind is Kind.DECIMAL:
            halves = np.frombuffer(piece.buffers()[1] or b"", np.uint64)[
                piece.offset * 2 : (piece.offset + len(piece)) * 2
            ]
            if len(outs) == 2:
                np.bitwise_xor(halves[1::2], _SIGN, out=outs[0][at:end])
                outs[1][at:end] = halves[::2]
            else:
                np.bitwise_xor(halves[::2], _SIGN, out=outs[0][at:end])
        elif data_type.kind in (Kind.FLOAT, Kind.DOUBLE):
            outs[0][at:end] = _float_order(_raw(piece))
        elif data_type.kind is Kind.BOOLEAN:
            outs[0][at:end] = piece.cast(pa.uint8()).fill_null(0).to_numpy()
        else:
            np.bitwise_xor(_raw(piece).astype(np.int64, copy=False).view(np.uint64), _SIGN, out=outs[0][at:end])
        at = end
    return outs


def _raw(piece: pa.Array) -> NDArray[np.generic]:
    """The values of a fixed-width piece as they lie in memory, undefined ones below NULLs included."""
    dtype = np.dtype(f"{'f' if pa.types.is_floating(piece.type) else 'i'}{piece.type.bit_width // 8}")
    values: NDArray[np.generic] = np.frombuffer(piece.buffers()[1] or b"", dtype)[
        piece.offset : piece.offset + len(piece)
    ]
    return values


def _float_order(values: NDArray[np.generic]) -> NDArray[np.uint64]:
    small = values.dtype.itemsize == 4
    nan = np.isnan(values.astype(values.dtype, copy=False))
    if small:
        bits = np.where(nan, _NAN32, values.view(np.uint32))
        return np.where(bits >> np.uint32(31), ~bits, bits | np.uint32(1 << 31)).astype(np.uint64)
    wide = np.where(nan, _NAN64, values.view(np.uint64))
    return np.where(wide >> np.uint64(63), ~wide, wide | _SIGN)


def _text_fields(pieces: list[pa.Array], descending: bool) -> list[_Field]:
    strings = tuple(_strings(piece) for piece in pieces)
    lengths = _joined([np.diff(piece.offsets) for piece in strings], np.int64)
    if not len(lengths):
        return []
    longest, shortest = int(lengths.max()), int(lengths.min())
    if longest > RANKED_ABOVE_BYTES and longest * len(lengths) > RANKED_ABOVE_PADDING * int(lengths.sum()):
        ranks = _ranks(pieces)
        return [_Bits(~ranks if descending else ranks, _WORD)]
    if shortest == longest == _UUID_BYTES and (words := _uuid_words(strings, len(lengths))) is not None:
        return [_Uuids(~words if descending else words)]
    fields: list[_Field] = [_Text(strings, longest * 8, descending)]
    # Only zero bytes at the end of a string are ambiguous with padding.
    if shortest < longest and any(_holds_zero(piece) for piece in strings):
        sizes = lengths.astype(np.uint64)
        fields.append(_Bits(~sizes if descending else sizes, _WORD))
    return fields


def _strings(piece: pa.Array) -> _Strings:
    if piece.null_count:
        piece = pc.fill_null(piece, pa.scalar(b"", piece.type))
    large = pa.types.is_large_string(piece.type) or pa.types.is_large_binary(piece.type)
    if not len(piece):
        return _Strings(np.zeros(1, np.int64), np.empty(0, np.uint8))
    _, offsets, data = piece.buffers()
    places = np.frombuffer(offsets, np.int64 if large else np.int32)[piece.offset : piece.offset + len(piece) + 1]
    return _Strings(places.astype(np.int64), np.frombuffer(data or b"", np.uint8))


def _holds_zero(piece: _Strings) -> bool:
    used = piece.data[piece.offsets[0] : piece.offsets[-1]]
    return bool(len(used)) and not used.all()


def _ranks(pieces: list[pa.Array]) -> NDArray[np.uint64]:
    """For every value its place among the distinct values in order."""
    # A dictionary with 64-bit offsets, for all values together may exceed 2 GiB.
    column = pa.chunked_array([piece.cast(pa.large_binary()) for piece in pieces], pa.large_binary())
    encoded = pa.chunked_array(pc.fill_null(column, b"")).combine_chunks().dictionary_encode()
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    places = np.empty(len(order), np.uint64)
    places[order] = np.arange(len(order), dtype=np.uint64)
    ranks: NDArray[np.uint64] = places[encoded.indices.to_numpy()]
    return ranks


def _uuid_words(pieces: tuple[_Strings, ...], count: int) -> Words | None:
    """The numbers that UUIDs spell; None if something is none, or if there is no compiled loop."""
    example = next(piece.data[piece.offsets[0] : piece.offsets[1]] for piece in pieces if len(piece.offsets) > 1)
    if _UUID.fullmatch(example.tobytes()) is None:
        return None
    run = _uuid_loop.for_bytes(count * _UUID_BYTES)
    if run is None:
        return None
    words = np.empty((count, 2), np.uint64)
    others = np.zeros(1, np.int64)
    at = 0
    for piece in pieces:
        end = at + len(piece.offsets) - 1
        run(piece.data[piece.offsets[0] : piece.offsets[-1]], words[at:end], others)
        if others[0]:
            return None
        at = end
    return words


@compiled_loop(
    "void(Array(uint8, 1, 'C', readonly=True), uint64[:, ::1], int64[::1])",
    saved_ns_per_byte=1.0,
)
def _uuid_loop(data: NDArray[np.uint8], words: Words, others: NDArray[np.int64]) -> None:
    """Reads 36 bytes for each row, eight digits at a time, a digit in each byte of a word; tells if there was another."""

    def eight(at: np.uint64) -> np.uint64:
        return (
            np.uint64(data[at]) << np.uint64(56)
            | np.uint64(data[at + np.uint64(1)]) << np.uint64(48)
            | np.uint64(data[at + np.uint64(2)]) << np.uint64(40)
            | np.uint64(data[at + np.uint64(3)]) << np.uint64(32)
            | np.uint64(data[at + np.uint64(4)]) << np.uint64(24)
            | np.uint64(data[at + np.uint64(5)]) << np.uint64(16)
            | np.uint64(data[at + np.uint64(6)]) << np.uint64(8)
            | np.uint64(data[at + np.uint64(7)])
        )

    def other(x: np.uint64) -> np.uint64:
        # A byte's top bit tells that it is at least "0", less than ":", at least "a", less than "g".
        digits = (x + np.uint64(0x5050505050505050)) & ~(x + np.uint64(0x4646464646464646))
        letters = (x + np.uint64(0x1F1F1F1F1F1F1F1F)) & ~(x + np.uint64(0x1919191919191919))
        return (x | ~(digits | letters)) & np.uint64(0x8080808080808080)

    def number(x: np.uint64) -> np.uint64:
        letters = (x >> np.uint64(6)) & np.uint64(0x0101010101010101)
        x = (x & np.uint64(0x0F0F0F0F0F0F0F0F)) + np.uint64(9) * letters
        x = (x | x >> np.uint64(4)) & np.uint64(0x00FF00FF00FF00FF)
        x = (x | x >> np.uint64(8)) & np.uint64(0x0000FFFF0000FFFF)
        return (x | x >> np.uint64(16)) & np.uint64(0xFFFFFFFF)

    upper, half, dash = np.uint64(0xFFFFFFFF00000000), np.uint64(32), np.uint8(0x2D)
    wrong = np.uint64(0)
    for row in range(np.uint64(words.shape[0])):
        at = row * np.uint64(36)
        for place in (8, 13, 18, 23):
            wrong |= np.uint64(data[at + np.uint64(place)] ^ dash)
        a = eight(at)
        b = (eight(at + np.uint64(9)) & upper) | (eight(at + np.uint64(14)) >> half)
        c = (eight(at + np.uint64(19)) & upper) | (eight(at + np.uint64(24)) >> half)
        d = eight(at + np.uint64(28))
        wrong |= other(a) | other(b) | other(c) | other(d)
        words[row, 0] = number(a) << half | number(b)
        words[row, 1] = number(c) << half | number(d)
    if wrong:
        others[0] = 1


def _narrowed(field: _Bits) -> _Bits:
    """The same order in as few bits as the values need."""
    if field.size < _WORD or not len(field.values):
        return field
    least, greatest = field.values.min(), field.values.max()
    return _Bits(field.values - least, int(greatest - least).bit_length())


def _laid_out(fields: list[_Field], count: int) -> Words:
    """The fields of each row behind one another."""
    width = -(-sum(field.size for field in fields) // _WORD)
    words = np.zeros((count, max(width, 1)), np.uint64)
    at = 0
    for field in fields:
        if isinstance(field, _Text):
            _put_texts(words, field, at)
        elif isinstance(field, _Uuids):
            _put_bits(words, field.words[:, 0], _WORD, at)
            _put_bits(words, field.words[:, 1], _WORD, at + _WORD)
        elif field.size:
            _put_bits(words, field.values, field.size, at)
        at += field.size
    return words


def _put_bits(words: Words, values: NDArray[np.uint64], size: int, at: int) -> None:
    """Adds `size` bits of each value at bit `at` of its row, in one word or across two."""
    word, end = at // _WORD, at % _WORD + size
    if end <= _WORD:
        words[:, word] |= values << np.uint64(_WORD - end)
    else:
        words[:, word] |= values >> np.uint64(end - _WORD)
        words[:, word + 1] |= values << np.uint64(2 * _WORD - end)


def _put_texts(words: Words, field: _Text, at: int) -> None:
    row = 0
    length = field.size // 8
    if length > _LONG_BYTES:
        # The twin in numpy takes a step for every byte of the longest text.
        _pack_loop.load_if_enabled()
    for piece in field.pieces:
        count = len(piece.offsets) - 1
        rows = words[row : row + count]
        run = _pack_loop.for_bytes(count * length)
        if run is not None:
            run(piece.offsets, piece.data, length, at, field.inverted, rows)
        elif count and length:
            _pack_numpy(piece.offsets, piece.data, length, at, field.inverted, rows)
        row += count


@compiled_loop(
    "void(int64[::1], Array(uint8, 1, 'C', readonly=True), int64, int64, boolean, uint64[:, ::1])",
    saved_ns_per_byte=1.0,
)
def _pack_loop(
    offsets: NDArray[np.int64], data: NDArray[np.uint8], length: int, at: int, inverted: bool, words: Words
) -> None:
    # Indices are unsigned, so that none can count from the end; eight loads beside one another become one.
    chunks = (length + 7) // 8
    tail = np.uint64(64 - 8 * (length - 8 * (chunks - 1)))
    first, shift = np.uint64(at // 64), np.uint64(at % 64)
    size = np.uint64(data.shape[0])
    eight = np.uint64(8)
    for row in range(np.uint64(words.shape[0])):
        begin, end = np.uint64(offsets[row]), np.uint64(offsets[row + np.uint64(1)])
        for chunk in range(np.uint64(chunks)):
            p = begin + chunk * eight
            value = np.uint64(0)
            if p < end:
                if p + eight <= size:
                    value = (
                        np.uint64(data[p]) << np.uint64(56)
                        | np.uint64(data[p + np.uint64(1)]) << np.uint64(48)
                        | np.uint64(data[p + np.uint64(2)]) << np.uint64(40)
                        | np.uint64(data[p + np.uint64(3)]) << np.uint64(32)
                        | np.uint64(data[p + np.uint64(4)]) << np.uint64(24)
                        | np.uint64(data[p + np.uint64(5)]) << np.uint64(16)
                        | np.uint64(data[p + np.uint64(6)]) << np.uint64(8)
                        | np.uint64(data[p + np.uint64(7)])
                    )
                    if p + eight > end:
                        drop = (p + eight - end) * eight
                        value = value >> drop << drop
                else:
                    for place in range(end - p):
                        if place < eight:
                            value |= np.uint64(data[p + place]) << (np.uint64(56) - place * eight)
            if inverted:
                value = ~value
                if chunk == np.uint64(chunks - 1):
                    value = value >> tail << tail
            words[row, first + chunk] |= value >> shift
            # The last bits of a row may end in the word they began in.
            if shift and first + chunk + np.uint64(1) < np.uint64(words.shape[1]):
                words[row, first + chunk + np.uint64(1)] |= value << (np.uint64(64) - shift)


def _pack_numpy(
    offsets: NDArray[np.int64], data: NDArray[np.uint8], length: int, at: int, inverted: bool, words: Words
) -> None:
    """The same, one byte of every string after the other."""
    count = len(offsets) - 1
    lengths = np.diff(offsets)
    padded = np.zeros((count, -(-length // 8) * 8), np.uint8)
    if int(offsets[-1] - offsets[0]) == count * length and int(lengths.min()) == length:
        padded[:, :length] = data[offsets[0] : offsets[-1]].reshape(count, length)
    else:
        for place in range(length):
            longer = np.flatnonzero(lengths > place)
            padded[longer, place] = data[offsets[longer] + place]
    if inverted:
        padded[:, :length] ^= 0xFF
    texts = padded.view(">u8").astype(np.uint64)
    for chunk in range(texts.shape[1]):
        size = min(length - 8 * chunk, 8) * 8
        _put_bits(words, texts[:, chunk] >> np.uint64(_WORD - size), size, at + chunk * _WORD)
