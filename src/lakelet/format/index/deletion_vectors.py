"""Encode and decode deletion vectors: the deleted rows of a data file, as positions counted from 0.

Bytes to sorted positions and back; which index file holds the vector of a data file is recorded in the index
manifest. An index file is the byte 0x01 and then one vector after the other. The manifest's offset
points at `size`; its length counts magic and bitmap for 32 bits, and the whole vector for 64, so a reader
fetches `length + READ_SLACK` bytes and decodes what it got.

    32 bits:    size u32 BE | magic 1581511376 u32 BE | bitmap | CRC-32 of magic and bitmap, u32 BE
    64 bits:    size u32 BE | magic 1681511377 u32 LE | count u64 LE, count x (key u32 LE, bitmap) | CRC-32 u32 BE

`size` counts magic and what follows up to the checksum. With 64 bits a bitmap's key is the upper half of its positions.
A bitmap is a RoaringBitmap in its portable form, all little-endian: containers of 65,536 positions, each
kept in the smallest of three ways.

    cookie      u32: 12346 and then u32 containers; or, where there are runs, 12347 | containers - 1 << 16
    run flags   a bit per container, (containers + 7) // 8 bytes; only with the second cookie
    header      per container: u16 upper half of its positions, u16 how many it has - 1
    offsets     u32 per container; left out where there are runs and fewer than four containers
    containers  array   u16 per position, up to 4,096 of them
                bitmap  8,192 bytes
                runs    u16 count, then u16 first position and u16 length - 1 per run
"""

from __future__ import annotations

import struct
import zlib

import numpy as np
from numpy.typing import NDArray

from lakelet.errors import CorruptionError, InvalidError

VERSION = 1
MAGIC_32 = 1581511376
MAGIC_64 = 1681511377
READ_SLACK = 8
MAX_POSITION = 2**31 - 1
COOKIE = 12346
RUN_COOKIE = 12347
_MAX_CONTAINERS = 1 << 16
CONTAINERS_WITH_OFFSETS = 4
ARRAY_LIMIT = 4096
BITMAP_BYTES = 8192
CONTAINER_SPAN = 1 << 16
_U32 = 4

Positions = NDArray[np.int64]


def decode(data: bytes, *, path: str, cardinality: int | None = None) -> Positions:
    """The deleted positions, ascending. `data` starts at `size` and may reach beyond the vector.

    `cardinality` is what the manifest says their number is, if it says so. `path` names the index file in errors.
    """
    if len(data) < 3 * _U32:
        raise CorruptionError(f"{path}: a deletion vector cannot be {len(data)} bytes long")
    size, magic = struct.unpack_from(">II", data)
    end = _U32 + size
    if size < _U32 or end + _U32 > len(data):
        raise CorruptionError(f"{path}: a deletion vector of {size} bytes does not fit the {len(data)} that are there")
    payload = memoryview(data)[_U32:end]
    (stored,) = struct.unpack_from(">I", data, end)
    if zlib.crc32(payload) != stored:
        raise CorruptionError(f"{path}: the checksum of a deletion vector is {zlib.crc32(payload)}, expected {stored}")
    reader = _Reader(payload[_U32:], path)
    if magic == MAGIC_32:
        positions = _decode_bitmap(reader)
    elif has_64_bits(data):
        positions = _decode_bitmaps(reader)
    else:
        raise CorruptionError(f"{path}: expected the magic number of a deletion vector, found {magic}")
    if reader.at != len(reader.data):
        raise CorruptionError(f"{path}: {len(reader.data) - reader.at} bytes follow the bitmap of a deletion vector")
    if cardinality is not None and len(positions) != cardinality:
        raise CorruptionError(f"{path}: a deletion vector has {len(positions)} positions, expected {cardinality}")
    return positions


def has_64_bits(data: bytes) -> bool:
    """Whether a vector has the 64-bit form. `data` starts at `size`."""
    return int.from_bytes(data[_U32 : 2 * _U32], "little") == MAGIC_64


class _Reader:
    """A place in a bitmap's bytes; never reads past their end."""

    __slots__ = ("at", "data", "path")

    def __init__(self, data: memoryview, path: str) -> None:
        self.data = data
        self.path = path
        self.at = 0

    def numbers(self, dtype: str, count: int) -> Positions:
        size = np.dtype(dtype).itemsize * count
        if size > len(self.data) - self.at:
            raise self.corrupt(f"ends at {len(self.data)}, {size} more bytes were expected at {self.at}")
        found = np.frombuffer(self.data, dtype, count, self.at)
        self.at += size
        return found.astype(np.int64)

    def number(self, dtype: str) -> int:
        return int(self.numbers(dtype, 1)[0])

    def corrupt(self, what: str) -> CorruptionError:
        return CorruptionError(f"{self.path}: the bitmap of a deletion vector {what}")


def _decode_bitmaps(reader: _Reader) -> Positions:
    count = reader.number("<i8")
    parts: list[Positions] = []
    before = -1
    # A bitmap is 12 bytes at least, so a count that cannot be true ends in a short read, not in a long loop.
    for _ in range(count):
        key = reader.number("<u4")
        if not before < key <= MAX_POSITION:
            raise reader.corrupt(f"has the key {key} after {before}")
        before = key
        parts.append(_decode_bitmap(reader) + (key << 32))
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _decode_bitmap(reader: _Reader) -> Positions:
    cookie = reader.number("<u4")
    if cookie & 0xFFFF == RUN_COOKIE:
        containers = (cookie >> 16) + 1
        flags = reader.numbers("u1", (containers + 7) // 8).astype(np.uint8)
        is_run = np.unpackbits(flags, bitorder="little")[:containers].astype(np.bool_)
    elif cookie == COOKIE:
        containers = reader.number("<u4")
        if containers > _MAX_CONTAINERS:
            raise reader.corrupt(f"claims {containers} containers")
        is_run = np.zeros(containers, np.bool_)
    else:
        raise reader.corrupt(f"begins with {cookie}")
    keys, counts = reader.numbers("<u2", 2 * containers).reshape(-1, 2).T
    if (np.diff(keys) <= 0).any():
        raise reader.corrupt("has its containers out of order")
    if cookie == COOKIE or containers >= CONTAINERS_WITH_OFFSETS:
        reader.numbers("<u4", containers)
    parts = [
        _decode_container(reader, count + 1, run) + (key << 16)
        for key, count, run in zip(keys.tolist(), counts.tolist(), is_run.tolist(), strict=True)
    ]
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _decode_container(reader: _Reader, count: int, is_run: bool) -> Positions:
    if is_run:
        starts, rest = reader.numbers("<u2", 2 * reader.number("<u2")).reshape(-1, 2).T
        lengths = rest + 1
        before = np.cumsum(lengths) - lengths
        positions: Positions = np.arange(int(lengths.sum())) + np.repeat(starts - before, lengths)
    elif count <= ARRAY_LIMIT:
        positions = reader.numbers("<u2", count)
    else:
        bits = np.unpackbits(reader.numbers("u1", BITMAP_BYTES).astype(np.uint8), bitorder="little")
        positions = np.flatnonzero(bits).astype(np.int64)
    if len(positions) != count:
        raise reader.corrupt(f"has a container of {len(positions)} positions, expected {count}")
    if (np.diff(positions) <= 0).any() or positions[-1] >= CONTAINER_SPAN:
        raise reader.corrupt("has positions out of order")
    return positions


def encode(positions: NDArray[np.integer], *, bits64: bool = False) -> bytes:
    """A vector of these positions, in any order, as it is stored in an index file, with 32 bits or with 64.

    The length that the manifest gives is that of the result with 64 bits, and `READ_SLACK` less with 32.
    """
    ordered = np.asarray(positions, np.int64)
    if (np.diff(ordered) <= 0).any():
        ordered = np.unique(ordered)
    if len(ordered) and not 0 <= ordered[0] <= ordered[-1] <= MAX_POSITION:
        raise InvalidError(f"positions in a data file go from 0 to {MAX_POSITION}, found {ordered[0]} to {ordered[-1]}")
    if bits64:
        # Positions of a file fit 31 bits, so that there is one bitmap, of the key 0.
        payload = struct.pack("<IQI", MAGIC_64, 1, 0) + encode_bitmap(ordered)
    else:
        payload = struct.pack(">I", MAGIC_32) + encode_bitmap(ordered)
    return struct.pack(">I", len(payload)) + payload + struct.pack(">I", zlib.crc32(payload))


def decode_bitmap(data: bytes, *, path: str) -> Positions:
    """The numbers of a bitmap without a head, ascending; bytes that follow it are ignored. `path` names it in errors."""
    return _decode_bitmap(_Reader(memoryview(data), path))


def encode_bitmap(ordered: Positions) -> bytes:
    """A bitmap of ascending numbers of 32 bits without sign, without a head."""
    begins = np.flatnonzero(np.diff(ordered >> 16, prepend=-1))
    keys = ordered[begins] >> 16
    containers = [_encode_container(part & 0xFFFF) for part in np.split(ordered, begins[1:])] if len(keys) else []
    counts = np.diff(np.append(begins, len(ordered)))
    header = np.stack([keys, counts - 1], axis=1).astype("<u2").tobytes()
    runs = np.array([is_run for _, is_run in containers], np.bool_)
    if runs.any():
        start = struct.pack("<I", RUN_COOKIE | len(keys) - 1 << 16) + np.packbits(runs, bitorder="little").tobytes()
    else:
        start = struct.pack("<II", COOKIE, len(keys))
    pieces = [start, header]
    if not runs.any() or len(keys) >= CONTAINERS_WITH_OFFSETS:
        sizes = np.array([len(content) for content, _ in containers], np.int64)
        first = len(start) + len(header) + _U32 * len(keys)
        pieces.append((first + np.cumsum(sizes) - sizes).astype("<u4").tobytes())
    return b"".join(pieces + [content for content, _ in containers])


def _encode_container(low: Positions) -> tuple[bytes, bool]:
    """The smallest form of a container, and whether that is runs."""
    run_begins = np.flatnonzero(np.diff(low, prepend=-2) != 1)
    plain_bytes = 2 * len(low) if len(low) <= ARRAY_LIMIT else BITMAP_BYTES
    if 2 + 4 * len(run_begins) < plain_bytes:
        lengths = np.diff(np.append(run_begins, len(low)))
        runs = np.stack([low[run_begins], lengths - 1], axis=1).astype("<u2").tobytes()
        return struct.pack("<H", len(run_begins)) + runs, True
    if len(low) <= ARRAY_LIMIT:
        return low.astype("<u2").tobytes(), False
    bits = np.zeros(CONTAINER_SPAN, np.uint8)
    bits[low] = 1
    return np.packbits(bits, bitorder="little").tobytes(), False
