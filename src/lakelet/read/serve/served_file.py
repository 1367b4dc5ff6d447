"""A data file by its lookup file, open for single keys: what a handle keeps between two of them.

    key ─ arena: filter, index, block, value in one compiled call ─ row
          where that is not compiled: index ─ block cache ─ place of the key in the decoded block ─ row

A file is read without asking the folder as long as it is not dropped and its arena is in the cache. Whatever is amiss with it
goes the way of every other lookup (`LookupFiles.use`), which opens it, or makes it anew.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Any, Protocol
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from lakelet.format.sst.point_loops import ABSENT as ABSENT_KEY
from lakelet.format.sst.point_loops import DAMAGED, FOUND, MISSING, row_loop, text_loop
from lakelet.format.sst.record_columns import is_delta
from lakelet.format.sst.sst_arena import SstArena, SstHeap
from lakelet.format.sst.sst_reader import SstReader, SstRows
from lakelet.format.sst.sst_writer import FRONT_TYPES
from lakelet.model.types import Atomic, Field
from lakelet.read.lookup.lookup_blocks import LookupFile
from lakelet.read.serve.kept_rows import ABSENT, LEAST_BYTES, KeptRows
from lakelet.read.serve.lookup_file import LookupFiles, OpenLookup
from lakelet.read.serve.lookup_folder import LocalFile
from lakelet.read.serve.served_block import ServedBlock, ServedRow
from lakelet.read.serve.served_row import CellMaker, cell_makers, row_cells

_SEQUENCE, _KIND = 1, 2
_FRONT = len(FRONT_TYPES)
_TRIES = 8
# Rows of a table's files that were found take at most this part of the block cache.
_ROWS_SHARE = 0.2
_NOT_HERE = (MISSING, DAMAGED)

_Reader = Callable[[], SstReader | None]
_Arena = Callable[[], SstArena | None]
_Block = Callable[[], ServedBlock | None]
_Rows = Callable[[], KeptRows | None]


class RowHolder(Protocol):
    """What has the rows that a found row is one of."""

    @property
    def rows(self) -> SstRows:
        """The rows."""


class ArenaRow:
    """One row by its cells."""

    __slots__ = ("_cells", "_heap", "_key", "_reader")

    def __init__(self, reader: SstReader, key: bytes, cells: list[int], heap: SstHeap) -> None:
        self._reader = reader
        self._key = key
        self._cells = cells
        self._heap = heap

    @property
    def rows(self) -> SstRows:
        """The row, for those who need arrays."""
        return self._reader.found_rows([self._key], row_cells(self._cells, self._heap.data))


Found = tuple[ServedRow, RowHolder]


class ServedFile:
    """A data file by its lookup file. `low` and `high` are its least and greatest key; a current one has the table's schema.

    `wanted` are the columns that are asked for, with their places in the table's schema. A file `is_plain` where it is current
    and none of them is nested.
    """

    __slots__ = (
        "_cache",
        "_deltas",
        "_files",
        "_folder",
        "_makers",
        "_monotonic",
        "_named",
        "_names",
        "_open",
        "_rows",
        "_spare",
        "_values",
        "_wanted",
        "has_vector",
        "high",
        "is_current",
        "is_plain",
        "lookup",
        "low",
        "max_sequence",
    )

    def __init__(
        self,
        files: LookupFiles,
        lookup: LookupFile,
        low: bytes,
        high: bytes,
        *,
        is_current: bool,
        wanted: Sequence[tuple[Field, int]],
    ) -> None:
        self._files = files
        self._folder = files.folder
        self._cache = files.cache
        self._monotonic = files.home.clock.monotonic
        # The cache holds reader, arena and blocks, and its limit is theirs. Threads see all of one file, or of another.
        self._open: tuple[LocalFile | None, _Reader, _Arena, list[_Block]] = (None, _nothing, _nothing, [])
        # Those of a file with another schema are evolved by columns.
        self._wanted = tuple(wanted) if is_current else ()
        self._makers: tuple[CellMaker | None, ...] = ()
        self._named: tuple[tuple[str, CellMaker], ...] = ()
        self._names = tuple(field.name for field, _ in wanted)
        self._deltas = int(any(is_delta(field.type) for field, _ in wanted))
        # Rows, and values of a column, that were found. The cache holds them, too.
        self._rows: _Rows = _nothing
        self._values: _Rows = _nothing
        # Room for the cells of a row, for the thread that takes it.
        self._spare: list[NDArray[np.int64]] = []
        self.lookup = lookup
        self.low = low
        self.high = high
        self.is_current = is_current
        self.is_plain = is_current and all(isinstance(field.type, Atomic) for field, _ in wanted)
        self.has_vector = lookup.file.vector is not None
        self.max_sequence = lookup.file.data.max_sequence

    @property
    def is_open(self) -> bool:
        """Whether its lookup file was there when it was last used, and is not dropped."""
        local = self._open[0]
        return local is not None and not local.is_dropped

    def open(self) -> None:
        """Open its lookup file, which is made if need be."""
        self._files.use(self.lookup, self._note)

    def find_bytes(self, key: bytes, column: int) -> bytes | None:
        """The bytes of a key in a column of text or bytes, the same at every call; None for no row, a retract, or NULL."""
        local, kept = self._open[0], self._values()
        if kept is not None and not local.is_dropped:  # type: ignore[union-attr]
            local.used = now = self._monotonic()  # type: ignore[union-attr]
            if now < self._folder.next_sweep and kept.touched == self._cache.puts:
                value = kept.young.get(key)
                if value is not None:
                    return None if value is ABSENT else value
        kept = self._kept(kept, column)
        value = None if kept is None else kept.find(key)
        if value is None:
            value = self._found_bytes(key, column)
            self._keep(kept, key, value, column)
        return None if value is ABSENT else value

    def find_row(self, key: bytes) -> dict[str, Any] | None:
        """The row of a key, of a plain file whose every row is current; None where there is none, and for a retract."""
        local, kept = self._open[0], self._rows()
        if kept is not None and not local.is_dropped:  # type: ignore[union-attr]
            local.used = now = self._monotonic()  # type: ignore[union-attr]
            if now < self._folder.next_sweep and kept.touched == self._cache.puts:
                row = kept.young.get(key)
                if row is not None:
                    # Its values cannot be changed, the dict is the caller's.
                    return row.copy() if row else None
        kept = self._kept(kept, None)
        row = None if kept is None else kept.find(key)
        if row is None:
            row = self._found_row(key)
            self._keep(kept, key, row, None)
        return row.copy() if row else None

    def find_rows(self, keys: Sequence[bytes]) -> list[dict[str, Any] | None] | None:
        """The rows of keys, of a plain file whose every row is current, where all of them were found before; else None."""
        kept = self._kept(self._rows(), None)
        return None if kept is None else kept.find_all(keys)

    @property
    def keeps_more(self) -> bool:
        """Whether there is room to keep more rows."""
        kept = self._kept(self._rows(), None)
        return kept is not None and kept.has_room

    def keep_rows(self, keys: Sequence[bytes], rows: Sequence[dict[str, Any] | None]) -> None:
        """Keep what was found of keys, if there is room."""
        kept = self._kept(self._rows(), None)
        if kept is None:
            return
        for key, row in zip(keys, rows, strict=True):
            kept.add(key, ABSENT if row is None else row.copy())
        self._weigh(kept, None)

    def _kept(self, kept: KeptRows | None, column: int | None) -> KeptRows | None:
        """What has the rows that were found; None where the file is to be opened first, or there is no room."""
        local = self._open[0]
        if local is None or local.is_dropped:
            return None
        now = self._monotonic()
        if now >= self._folder.next_sweep:
            local.used = now
            self._folder.sweep(now)
        name = self._name_of_kept(local, column)
        found: KeptRows | None = self._cache.get(name)
        if found is None:
            most = int(self._files.settings.memory_bytes * _ROWS_SHARE * self._files.share(local))
            if most < LEAST_BYTES:
                return None
            found = KeptRows(most)
            self._cache.put(name, found, LEAST_BYTES, limit=self._files.settings.memory_bytes)
        if found is not kept:
            if column is None:
                self._rows = ref(found)
            else:
                self._values = ref(found)
        found.touched = self._cache.puts
        return found

    def _keep(self, kept: KeptRows | None, key: bytes, value: Any, column: int | None) -> None:
        if kept is not None:
            kept.add(key, ABSENT if value is None else value)
            self._weigh(kept, column)

    def _weigh(self, kept: KeptRows, column: int | None) -> None:
        local, weight = self._open[0], kept.weigh()
        if weight is not None and local is not None:
            name = self._name_of_kept(local, column)
            self._cache.put(name, kept, weight, limit=self._files.settings.memory_bytes)

    def _name_of_kept(self, local: LocalFile, column: int | None) -> tuple[object, ...]:
        return (local.path, "rows", self._names if column is None else column)

    def _found_bytes(self, key: bytes, column: int) -> bytes | None:
        local, _, open_arena, _ = self._open
        arena, run = open_arena(), text_loop.compiled
        if arena is not None and run is not None and not local.is_dropped:  # type: ignore[union-attr]
            local.used = now = self._monotonic()  # type: ignore[union-attr]
            if now < self._folder.next_sweep and arena.touched == self._cache.puts:
                heap = arena.heap
                begin, end = run(heap.data, heap.state, key, column + _FRONT)
                if begin > 0:
                    return heap.view[begin:end].tobytes()
                if begin not in _NOT_HERE:
                    return None
        return self._bytes_slowly(key, column)

    def _found_row(self, key: bytes) -> dict[str, Any] | None:
        local, _, open_arena, _ = self._open
        arena, run = open_arena(), row_loop.compiled
        if arena is not None and run is not None and not local.is_dropped:  # type: ignore[union-attr]
            local.used = now = self._monotonic()  # type: ignore[union-attr]
            if now < self._folder.next_sweep and arena.touched == self._cache.puts:
                heap, spare = arena.heap, self._spare
                try:
                    out = spare.pop()
                except IndexError:
                    out = np.empty(3 * arena.columns, np.int64)
                code, _ = run(heap.data, heap.state, key, self._deltas, out)
                if code == FOUND:
                    cells, view = out.tolist(), heap.view
                    spare.append(out)
                    if cells[_KIND] & 1:
                        return None
                    return {name: make(cells, view) for name, make in self._named}
                spare.append(out)
                if code == ABSENT_KEY:
                    return None
        found = self.find(key)
        if found is None or found[0][1]:
            return None
        values = found[0][3]
        return {field.name: values[place] for field, place in self._wanted}

    def find(self, key: bytes) -> Found | None:
        """The row of a key, and what has it; None where the key is not there."""
        local, open_reader, open_arena, blocks = self._open
        reader = open_reader()
        if reader is None or local is None or local.is_dropped:
            return self._load(key)
        local.used = now = self._monotonic()
        if now >= self._folder.next_sweep:
            self._folder.sweep(now)
        run = row_loop.for_bytes(1)
        if run is None:
            return self._find_in_block(local, reader, blocks, key)
        arena = open_arena()
        if arena is None:
            return self._load(key)
        if self._cache.puts != arena.touched:
            self._touch(local, arena)
        heap = arena.heap
        out = np.empty(3 * arena.columns, np.int64)
        code, _ = run(heap.data, heap.state, key, 1, out)
        if code == FOUND:
            return self._row(reader, key, out, heap)
        return None if code == ABSENT else self._load(key)

    def _touch(self, local: LocalFile, arena: SstArena) -> None:
        # As long as nothing is put into the cache, nothing is displaced, and its order need not be looked after.
        self._cache.get((local.path, "reader"))
        self._cache.get((local.path, "arena"))
        arena.touched = self._cache.puts

    def _row(self, reader: SstReader, key: bytes, out: Any, heap: SstHeap) -> Found:
        cells, view = out.tolist(), heap.view
        values = tuple([None if make is None else make(cells, view) for make in self._makers])
        return (cells[_SEQUENCE], cells[_KIND] & 1 == 1, 0, values), ArenaRow(reader, key, cells, heap)

    def _bytes_slowly(self, key: bytes, column: int) -> bytes | None:
        found = self.find(key)
        text_loop.for_bytes(1)
        if found is None or found[0][1]:
            return None
        value = found[0][3][column]
        return value.encode() if type(value) is str else value

    def _load(self, key: bytes) -> Found | None:
        return self._files.use(self.lookup, lambda opened: self._opened(opened, key))

    def _opened(self, opened: OpenLookup, key: bytes) -> Found | None:
        local, reader, blocks = opened.file, opened.reader, self._note(opened)
        run = row_loop.for_bytes(0)
        if run is None:
            return self._find_by_block(opened, blocks, key)
        arena = opened.arena()
        self._open = (local, ref(reader), ref(arena), blocks)
        # Another thread may begin a generation between our load and our look.
        for _ in range(_TRIES):
            self._touch(local, arena)
            heap = arena.heap
            out = np.empty(3 * arena.columns, np.int64)
            code, block = run(heap.data, heap.state, key, 1, out)
            if code == FOUND:
                return self._row(reader, key, out, heap)
            if code == ABSENT_KEY:
                return None
            if code == DAMAGED:
                raise arena.damaged()
            if not opened.load(arena, block):
                break
        return self._find_by_block(opened, blocks, key)

    def _find_by_block(self, opened: OpenLookup, blocks: list[_Block], key: bytes) -> Found | None:
        found = opened.find(key)
        if found is None:
            return None
        number, block = found
        blocks[number] = ref(block)
        block.touched = self._cache.puts
        row = block.found.get(key)
        if isinstance(row, int):
            row = self._read(opened.file, number, block, key, row)
        return None if row is None else (row, block)

    def _find_in_block(self, local: LocalFile, reader: SstReader, blocks: list[_Block], key: bytes) -> Found | None:
        number = bisect_left(reader.index.separators, key)
        block = blocks[number]()
        if block is None:
            # The filter is only worth its time where a block would have to be read.
            return self._load(key) if reader.may_hold(key) else None
        if self._cache.puts != block.touched:
            self._cache.get((local.path, number))
            block.touched = self._cache.puts
        row = block.found.get(key)
        if isinstance(row, int):
            row = self._read(local, number, block, key, row)
        return None if row is None else (row, block)

    def _read(self, local: LocalFile, number: int, block: ServedBlock, key: bytes, at: int) -> ServedRow:
        row = block.read(key, at)
        if block.is_heavier:
            self._cache.put((local.path, number), block, block.weigh(), limit=self._files.settings.memory_bytes)
        return row

    def _note(self, opened: OpenLookup) -> list[_Block]:
        """Keep what was opened for the next key; its blocks, of which there is one more: keys behind the last are in none."""
        _, before, arena, blocks = self._open
        reader = opened.reader
        if before() is not reader:
            blocks, arena = [_nothing] * (len(reader.index.places) + 1), _nothing
            if not self._makers:
                types = [field.type for field in reader.meta.fields]
                places = [place for _, place in self._wanted]
                makers = cell_makers(types, places, where=self.lookup.file.path)
                named = [(field.name, makers[place]) for field, place in self._wanted]
                self._named = tuple((name, make) for name, make in named if make is not None)
                self._makers = makers
        self._open = (opened.file, ref(reader), arena, blocks)
        return blocks


def _nothing() -> None:
    return None
