"""Blocks of an SST file in memory as they are stored, decompressed: a key is found by one compiled call (`point_loops`).

    heap     filter · separators · block · block · …      in the order in which blocks were first asked for

Nothing is decoded but the value of the key that is asked for, so that a file takes as much memory as its blocks. An arena has two
generations of at most half of its bytes each. Once the younger one is full it becomes the older one, and blocks that are asked
for again are copied from there: what was not used for as long as a generation takes to fill is dropped.

Any number of threads may use an arena. What a thread has of it (`SstHeap`) never changes below what it was told: blocks are added
behind those that are there, and a heap that has no room is replaced by another one.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence

import numpy as np

from lakelet.errors import CorruptionError
from lakelet.format.sst.bloom_filter import BloomFilter
from lakelet.format.sst.entry_loops import parse_loop
from lakelet.format.sst.point_loops import (
    BLOCKS,
    COLUMNS,
    COMMON,
    DELTAS,
    FILTER_BITS,
    FOUND,
    FRONT,
    HASHES,
    HEAD,
    SCHEMA,
    SEPARATORS,
    SPANS,
    WIDTHS,
    WORDS,
    Bytes,
    Longs,
    rows_loop,
)
from lakelet.format.sst.record_columns import Cells, RecordLayout

_LEAST_BYTES = 1 << 16
_DAMAGED = -(1 << 62)


class SstHeap:
    """Blocks, and where they are: what the loops take. `view` is the same bytes for the interpreter."""

    __slots__ = ("data", "state", "used", "view")

    def __init__(self, data: Bytes, state: Longs, used: int) -> None:
        self.data = data
        self.state = state
        self.used = used
        self.view = memoryview(data.data)

    def grown(self, size: int) -> SstHeap:
        """A copy with room for `size` bytes."""
        data = np.empty(size, np.uint8)
        data[: self.used] = self.data[: self.used]
        return SstHeap(data, self.state.copy(), self.used)

    def add(self, number: int, contents: bytes) -> None:
        """Put a block behind the others; it is there once all of it is."""
        end = self.used + len(contents)
        self.data[self.used : end] = np.frombuffer(contents, np.uint8)
        span = int(self.state[SPANS]) + 2 * number
        self.state[span + 1] = end
        self.state[span] = self.used
        self.used = end

    def contents(self, number: int) -> bytes | None:
        """A block, None where it is not here."""
        span = int(self.state[SPANS]) + 2 * number
        begin, end = int(self.state[span]), int(self.state[span + 1])
        return None if begin < 0 else self.view[begin:end].tobytes()


class SstArena:
    """The blocks of a file that were asked for, within `most_bytes`. `read` reads one by its number, and checks it.

    `touched` is for the cache that holds the arena: how many values had been put there when it was used.
    """

    __slots__ = ("__weakref__", "_empty", "_lock", "_most", "_old", "_read", "columns", "heap", "path", "touched")

    def __init__(
        self,
        separators: Sequence[bytes],
        bloom: BloomFilter | None,
        layout: RecordLayout,
        schema_id: int,
        read: Callable[[int], bytes],
        *,
        path: str,
        most_bytes: int,
    ) -> None:
        self.path = path
        self.columns = len(layout.types)
        self.touched = 0
        self._read = read
        self._lock = threading.Lock()
        self._empty = _empty(separators, bloom, layout, schema_id)
        self._most = most_bytes // 2
        self._old: SstHeap | None = None
        self.heap = self._empty.grown(len(self._empty.data) + _LEAST_BYTES)

    @property
    def nbytes(self) -> int:
        """The memory this takes."""
        heaps = [one for one in (self._empty, self.heap, self._old) if one is not None]
        return sum(one.data.nbytes + one.state.nbytes for one in heaps) + 1024

    def limit(self, most_bytes: int) -> None:
        """Lower or raise the limit from now on."""
        self._most = most_bytes // 2

    def load(self, number: int) -> bool:
        """Put a block where the loops find it; False where it has no room."""
        with self._lock:
            if self.heap.state[int(self.heap.state[SPANS]) + 2 * number] >= 0:
                return True
            contents = None if self._old is None else self._old.contents(number)
        if contents is None:
            contents = self._checked(number, self._read(number))
        with self._lock:
            if not self._has_room(len(contents)):
                return False
            if self.heap.state[int(self.heap.state[SPANS]) + 2 * number] < 0:
                self.heap.add(number, contents)
            return True

    def find_many(self, keys: Bytes, key_at: Longs, *, deltas: bool) -> tuple[Longs, Cells] | None:
        """The places of the keys that are there, and the cells of their values; None where their blocks have no room at once.

        Numbers that are stored as differences are only right with `deltas`; without, all is found sooner.
        """
        rows, columns = len(key_at) - 1, self.columns
        out, found = np.empty(3 * columns * rows, np.int64), np.empty(rows, np.int64)
        # Blocks are loaded once; where another generation has begun meanwhile, some are gone again.
        for attempt in range(2):
            heap = self.heap
            rows_loop.for_bytes_or_interpreted(rows)(heap.data, heap.state, keys, key_at, int(deltas), out, found)
            if (found == _DAMAGED).any():
                raise self.damaged()
            missing = found[found < 0]
            if not len(missing):
                break
            if attempt or not all(self.load(number) for number in np.unique(-1 - missing).tolist()):
                return None
        places = np.flatnonzero(found == FOUND)
        cells = out.reshape(3, columns, rows)
        if len(places) < rows:
            cells = np.take(cells, places, axis=2)
        return places, Cells(cells[0].view(np.uint64), cells[1], cells[2].astype(np.uint8), heap.data)

    def damaged(self) -> CorruptionError:
        """The error of a value that is not what its columns say."""
        return CorruptionError(f"{self.path}: a value of a data block is not a row of its schema")

    def _checked(self, number: int, contents: bytes) -> bytes:
        data, state = np.frombuffer(contents, np.uint8), np.zeros(3, np.int64)
        spans = np.array([[0, len(data)]], np.int64)
        parse_loop.for_bytes_or_interpreted(len(data))(data, spans, True, np.empty((0, 5), np.int64), state)
        if state[0]:
            raise CorruptionError(f"{self.path}: an entry of data block {number} reaches beyond its block")
        return contents

    def _has_room(self, size: int) -> bool:
        heap = self.heap
        needed = heap.used + size
        if needed <= len(heap.data):
            return True
        fixed = len(self._empty.data)
        if needed > self._most and heap.used > fixed:
            self._old, needed = heap, fixed + size
            heap = self._empty
        if needed > self._most:
            return False
        self.heap = heap.grown(min(max(2 * needed, fixed + _LEAST_BYTES), max(needed, self._most)))
        return True


def _empty(separators: Sequence[bytes], bloom: BloomFilter | None, layout: RecordLayout, schema_id: int) -> SstHeap:
    """A heap without blocks."""
    bits = b"" if bloom is None else bloom.bits
    columns, blocks = len(layout.types), len(separators)
    widths, deltas = HEAD, HEAD + columns
    separator_at = deltas + columns
    spans = separator_at + blocks + 1
    words = spans + 2 * blocks
    state = np.full(words + blocks, -1, np.int64)
    # They are in order, so that what the first and the last have in common all have.
    pairs = zip(separators[0], separators[-1], strict=False) if separators else ()
    common = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
    state[COMMON], state[WORDS] = common, words
    cut = b"".join(one[common : common + 8].ljust(8, b"\x00") for one in separators)
    state[words:] = (np.frombuffer(cut, ">u8") ^ np.uint64(1 << 63)).astype(np.uint64).view(np.int64)
    state[BLOCKS] = blocks
    state[HASHES], state[FILTER_BITS] = (0, 1) if bloom is None else (bloom.hash_count, bloom.total_bits)
    state[COLUMNS], state[FRONT], state[SCHEMA] = columns, layout.front, schema_id
    state[WIDTHS], state[DELTAS], state[SEPARATORS], state[SPANS] = widths, deltas, separator_at, spans
    state[widths:deltas] = layout.widths
    state[deltas:separator_at] = layout.deltas
    state[separator_at:spans] = np.cumsum([len(bits), *map(len, separators)])
    data = np.frombuffer(b"".join((bits, *separators)), np.uint8).copy()
    return SstHeap(data, state, len(data))


def joined_keys(texts: Sequence[bytes]) -> tuple[Bytes, Longs]:
    """Keys one behind the other, and where each begins and the last ends."""
    at = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([len(text) for text in texts], out=at[1:])
    return np.frombuffer(b"".join(texts), np.uint8), at
