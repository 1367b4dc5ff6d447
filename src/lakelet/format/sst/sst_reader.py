"""Read an SST file: by key through bloom filter, index and block, or a range of blocks at once.

    footer, header, meta, index, bloom     read when the file is opened, and kept
    data blocks                            read when they are asked for; the caller keeps what it wants to keep

A block is decoded as a whole: that takes a compiled loop microseconds, and its rows then are found by binary search among its
keys. Every block is checked against its CRC32. The checksum of the file is only checked by `verify`, since that reads all of it.
"""

from __future__ import annotations

import itertools
import os
import zlib
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakelet.errors import CorruptionError
from lakelet.format.sst.bloom_filter import BloomFilter, hash_keys
from lakelet.format.sst.entry_loops import Longs, key_loop, parse_loop
from lakelet.format.sst.record_columns import Cells, RecordLayout, columns_of, read_records
from lakelet.format.sst.sst_arena import SstArena, joined_keys
from lakelet.format.sst.sst_block import decode_block
from lakelet.format.sst.sst_parts import (
    CHECKSUM_BYTES,
    FOOTER_BYTES,
    HEADER_BYTES,
    BlockPlace,
    SstIndex,
    SstMeta,
    decode_footer,
    decode_header,
    decode_index,
    decode_meta,
)
from lakelet.format.sst.sst_writer import FRONT_TYPES, value_layout
from lakelet.model.types import DataType

_READ_AHEAD_BYTES = 1 << 20
_SEQUENCE, _KIND = 1, 2


class Source(Protocol):
    """A file that ranges are read of, by any number of threads."""

    @property
    def path(self) -> str:
        """Its name for errors."""

    @property
    def size(self) -> int:
        """Its bytes."""

    def read(self, offset: int, size: int) -> bytes:
        """A range; fewer bytes where the file ends before."""


@dataclass(frozen=True, slots=True)
class BytesSource:
    """A file in memory."""

    path: str
    data: bytes

    @property
    def size(self) -> int:
        """Its bytes."""
        return len(self.data)

    def read(self, offset: int, size: int) -> bytes:
        """A range of it."""
        return self.data[offset : offset + size]


class FileSource:
    """A file on this machine's disk, open for reads by any number of threads."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.size = os.fstat(self._descriptor).st_size

    def __del__(self) -> None:
        # A file that could not be opened has no descriptor.
        descriptor = getattr(self, "_descriptor", None)
        if descriptor is not None:
            os.close(descriptor)

    def read(self, offset: int, size: int) -> bytes:
        """A range; fewer bytes where the file ends before."""
        return os.pread(self._descriptor, size, offset)


@dataclass(frozen=True, slots=True)
class DecodedPart:
    """Rows of neighbouring blocks: their keys one behind the other, and their cells, whose heap is the blocks."""

    keys: NDArray[np.uint8]
    key_at: Longs
    cells: Cells


@dataclass(frozen=True, slots=True)
class SstRows:
    """Rows of neighbouring blocks: their keys, and the cells of their values. Columns are made when they are asked for."""

    key_data: bytes
    key_at: Longs
    cells: Cells
    types: tuple[DataType, ...]
    where: str
    _columns: dict[int, pa.Array] = field(default_factory=dict)
    # The keys, once they were asked for: a scan asks for none of them.
    _listed: list[list[bytes]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.key_at) - 1

    @property
    def keys(self) -> list[bytes]:
        """The keys one by one."""
        if not self._listed:
            data = self.key_data
            self._listed.append([data[begin:end] for begin, end in itertools.pairwise(self.key_at.tolist())])
        return self._listed[0]

    @property
    def key_array(self) -> pa.Array:
        """The keys as a `large_binary` column."""
        buffers = [None, pa.py_buffer(self.key_at), pa.py_buffer(self.key_data)]
        return pa.Array.from_buffers(pa.large_binary(), len(self), buffers)

    def position(self, key: bytes) -> int:
        """The first row whose key is not less; their number where all are."""
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if self.key_data[int(self.key_at[middle]) : int(self.key_at[middle + 1])] < key:
                low = middle + 1
            else:
                high = middle
        return low

    @property
    def nbytes(self) -> int:
        """About the memory this takes, with all columns made."""
        cells = self.cells
        parts = cells.numbers.nbytes + cells.ends.nbytes + cells.valid.nbytes + self.key_at.nbytes
        return int(parts + 2 * cells.heap.nbytes + 2 * len(self.key_data) + 48 * len(self) + 1024)

    @property
    def sequences(self) -> NDArray[np.int64]:
        """The sequence number of each row."""
        numbers: NDArray[np.int64] = self.cells.numbers[_SEQUENCE].view(np.int64)
        return numbers

    @property
    def kinds(self) -> NDArray[np.int8]:
        """The row kind of each row."""
        kinds: NDArray[np.int8] = self.cells.numbers[_KIND].astype(np.int8)
        return kinds

    def kind(self, at: int) -> int:
        """The row kind of one row."""
        return int(self.cells.numbers[_KIND, at])

    def find(self, key: bytes) -> int:
        """The row with this key, -1 where there is none."""
        at = bisect_left(self.keys, key)
        return at if at < len(self.keys) and self.keys[at] == key else -1

    def column(self, place: int) -> pa.Array:
        """A column by its place among the fields of the file."""
        found = self._columns.get(place)
        if found is None:
            number = place + len(FRONT_TYPES)
            part = Cells(
                self.cells.numbers[number : number + 1],
                self.cells.ends[number : number + 1],
                self.cells.valid[number : number + 1],
                self.cells.heap,
            )
            (found,) = columns_of(part, self.types[number : number + 1], where=self.where)
            self._columns[place] = found
        return found


class SstReader:
    """An open file. Any number of threads may use it."""

    def __init__(self, source: Source) -> None:
        """Open a file. CorruptionError for what is no SST file, or a damaged one; InvalidError for another version."""
        path, size = source.path, source.size
        self._source = source
        self.path = path
        compression, self.create_ms = decode_header(source.read(0, HEADER_BYTES), path=path)
        if size < HEADER_BYTES + CHECKSUM_BYTES + FOOTER_BYTES:
            raise CorruptionError(f"{path}: an SST file has at least a header and a footer, found {size} bytes")
        self.footer = decode_footer(source.read(size - FOOTER_BYTES, FOOTER_BYTES), size, path=path)
        self.meta: SstMeta = decode_meta(self._block(self.footer.meta), path=path)
        self.index: SstIndex = decode_index(self._block(self.footer.index), path=path)
        self.bloom = BloomFilter.decode(self._block(self.footer.bloom), path=path)
        if compression != self.meta.compression or self.footer.row_count != self.meta.row_count:
            raise CorruptionError(
                f"{path}: its meta block has {self.meta.row_count} rows in {self.meta.compression} blocks, found "
                f"{self.footer.row_count} in the footer and {compression} in the header"
            )
        if any(place.offset + place.size > self.footer.meta.offset for place in self.index.places):
            raise CorruptionError(f"{path}: a data block reaches beyond byte {self.footer.meta.offset}")
        self._layout: RecordLayout = value_layout(self.meta.fields, delta_encoding=self.meta.delta_encoding)

    def __len__(self) -> int:
        return self.meta.row_count

    @property
    def nbytes(self) -> int:
        """About the memory of index and filter."""
        keys = sum(map(len, self.index.separators)) + sum(map(len, self.index.first_keys))
        return keys + 250 * len(self.index.places) + (0 if self.bloom is None else len(self.bloom.bits)) + 4096

    def block_of(self, key: bytes) -> int:
        """The number of the only block that can hold a key; the number of blocks where none can."""
        at = bisect_left(self.index.separators, key)
        if at < len(self.index.places) and self.index.first_keys[at] > key:
            return len(self.index.places)
        return at

    def may_hold(self, key: bytes) -> bool:
        """Whether the bloom filter lets a key through."""
        return self.bloom is None or self.bloom.may_hold(key)

    def may_hold_each(self, keys: Sequence[bytes]) -> list[bool]:
        """The same for many keys."""
        if self.bloom is None or not keys:
            return [True] * len(keys)
        key_at = np.cumsum([0, *map(len, keys)])
        found: list[bool] = self.bloom.may_hold_each(
            hash_keys(np.frombuffer(b"".join(keys), np.uint8), key_at)
        ).tolist()
        return found

    def rows(self, first: int, behind: int) -> SstRows:
        """The rows of neighbouring blocks, in one read."""
        return self._decode(self._contents(first, behind))

    def _contents(self, first: int, behind: int) -> list[bytes]:
        """The contents of neighbouring blocks, in one read."""
        if first >= behind:
            return []
        places = self.index.places[first:behind]
        begin = places[0].offset
        stored = self._source.read(begin, places[-1].offset + places[-1].size - begin)
        return [
            decode_block(
                stored[place.offset - begin : place.offset - begin + place.size], path=self.path, at=place.offset
            )
            for place in places
        ]

    def some_rows(self, first: int, behind: int) -> tuple[SstRows, int]:
        """The rows of as many blocks as are read at a time, and the number of the next one."""
        _, end = next(self._pieces(first, behind))
        return self.rows(first, end), end

    def scan(self, first: int = 0, behind: int | None = None) -> Iterator[SstRows]:
        """The rows of all blocks, or of a range of them, many blocks at a time."""
        for begin, end in self._pieces(first, len(self.index.places) if behind is None else behind):
            yield self.rows(begin, end)

    def _pieces(self, first: int, behind: int) -> Iterator[tuple[int, int]]:
        """Ranges of blocks that are read at a time."""
        while first < behind:
            end, size = first, 0
            while end < behind and size < _READ_AHEAD_BYTES:
                size += self.index.places[end].size
                end += 1
            yield first, end
            first = end

    def arena(self, most_bytes: int) -> SstArena:
        """Room for blocks of the file, to find keys in them by one call each."""
        index = self.index
        return SstArena(
            index.separators,
            self.bloom,
            self._layout,
            self.meta.schema_id,
            lambda number: self._block(index.places[number]),
            path=self.path,
            most_bytes=most_bytes,
        )

    def found_rows(self, keys: Sequence[bytes], cells: Cells) -> SstRows:
        """The rows of keys whose cells an arena of this file has found."""
        data, at = joined_keys(keys)
        return SstRows(data.tobytes(), at, cells, self._layout.types, self.path)

    def get(self, key: bytes) -> tuple[SstRows, int] | None:
        """The block that holds a key, and the place of its row; None where the key is not there."""
        block = self.block_of(key)
        if block == len(self.index.places) or not self.may_hold(key):
            return None
        rows = self.rows(block, block + 1)
        at = rows.find(key)
        return None if at < 0 else (rows, at)

    def verify(self) -> None:
        """Read all of the file. CorruptionError where its checksum or its rows are not what was written."""
        end, crc, at = self._source.size - FOOTER_BYTES - CHECKSUM_BYTES, 0, 0
        while at < end:
            part = self._source.read(at, min(_READ_AHEAD_BYTES, end - at))
            if not part:
                break
            crc = zlib.crc32(part, crc)
            at += len(part)
        tail = self._source.read(end, CHECKSUM_BYTES + FOOTER_BYTES)
        found = zlib.crc32(tail[CHECKSUM_BYTES:], crc)
        expected = int.from_bytes(tail[:CHECKSUM_BYTES], "big")
        if found != expected:
            raise CorruptionError(f"{self.path}: the file has the CRC32 {found:08x}, expected {expected:08x}")
        rows = sum(len(part) for part in self.scan())
        if rows != self.meta.row_count:
            raise CorruptionError(f"{self.path}: expected {self.meta.row_count} rows, found {rows}")

    def _block(self, place: BlockPlace) -> bytes:
        return decode_block(self._source.read(place.offset, place.size), path=self.path, at=place.offset)

    def _decode(self, contents: Sequence[bytes]) -> SstRows:
        part = self._part(contents)
        return SstRows(part.keys.tobytes(), part.key_at, part.cells, self._layout.types, self.path)

    def _part(self, contents: Sequence[bytes]) -> DecodedPart:
        data = contents[0] if len(contents) == 1 else b"".join(contents)
        ends = np.cumsum([0, *(len(one) for one in contents)])
        spans = np.ascontiguousarray(np.stack([ends[:-1], ends[1:]], axis=1), np.int64)
        buffer, state = np.frombuffer(data, np.uint8), np.zeros(3, np.int64)
        parse = parse_loop.for_bytes_or_interpreted(len(data))
        nothing = np.empty((0, 5), np.int64)
        parse(buffer, spans, True, nothing, state)
        if state[0]:
            raise CorruptionError(f"{self.path}: an entry of a data block reaches beyond its block")
        entries = np.empty((int(state[1]), 5), np.int64)
        keys, key_at = np.empty(int(state[2]), np.uint8), np.zeros(len(entries) + 1, np.int64)
        parse(buffer, spans, False, entries, state)
        key_loop.for_bytes_or_interpreted(len(keys))(buffer, entries, keys, key_at)
        begins, ends = entries[:, 2] + entries[:, 1], np.ascontiguousarray(entries[:, 3])
        restarts = entries[:, 4].astype(np.uint8)
        cells = read_records(buffer, begins, ends, restarts, self._layout, len(entries), where=self.path)
        self._check_schema(cells)
        return DecodedPart(keys, key_at, cells)

    def _check_schema(self, cells: Cells) -> None:
        if (cells.numbers[0] != np.uint64(self.meta.schema_id)).any():
            raise CorruptionError(f"{self.path}: expected rows of schema {self.meta.schema_id}, found another")


def first_blocks(reader: SstReader, start: bytes | None, end: bytes | None) -> tuple[int, int]:
    """The range of blocks that can hold keys from `start` on and below `end`."""
    separators, firsts = reader.index.separators, reader.index.first_keys
    first = 0 if start is None else bisect_left(separators, start)
    behind = len(firsts) if end is None else bisect_left(firsts, end)
    return first, max(first, behind)
