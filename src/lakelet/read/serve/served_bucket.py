"""The lookup files of one bucket, open for single keys: what a handle keeps between two of them.

    key ─ files whose range admits it, newest first ─ index ─ block cache ─ place of the key in the block ─ the row that wins

A file is read without asking the folder as long as it is not dropped and its reader is in the cache. Whatever is amiss with it
goes the way of every other lookup (`LookupFiles.use`), which opens it, or makes it anew.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from weakref import ref

from lakelet.format.sst.sst_reader import SstReader
from lakelet.model.split import Split
from lakelet.read.lookup.lookup_blocks import LookupFile
from lakelet.read.serve.lookup_file import LookupFiles, OpenLookup
from lakelet.read.serve.lookup_folder import LocalFile
from lakelet.read.serve.served_block import ServedBlock, ServedRow

_Reader = Callable[[], SstReader | None]
_Block = Callable[[], ServedBlock | None]


class ServedFile:
    """A data file by its lookup file. `low` and `high` are its least and greatest key; a current one has the table's schema."""

    __slots__ = (
        "_cache",
        "_files",
        "_folder",
        "_monotonic",
        "_open",
        "has_vector",
        "high",
        "is_current",
        "lookup",
        "low",
        "max_sequence",
    )

    def __init__(self, files: LookupFiles, lookup: LookupFile, low: bytes, high: bytes, *, is_current: bool) -> None:
        self._files = files
        self._folder = files.folder
        self._cache = files.cache
        self._monotonic = files.home.clock.monotonic
        # The cache holds reader and blocks, and its limit is theirs. Threads see all three of one file, or of another.
        self._open: tuple[LocalFile | None, _Reader, list[_Block]] = (None, _nothing, [])
        self.lookup = lookup
        self.low = low
        self.high = high
        self.is_current = is_current
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

    def find(self, key: bytes) -> tuple[ServedRow, ServedBlock] | None:
        """The row of a key and its block; None where the key is not there."""
        local, open_reader, blocks = self._open
        reader = open_reader()
        if reader is None or local is None or local.is_dropped:
            return self._load(key)
        local.used = now = self._monotonic()
        if now >= self._folder.next_sweep:
            self._folder.sweep(now)
        number = bisect_left(reader.index.separators, key)
        block = blocks[number]()
        if block is None:
            # The filter is only worth its time where a block would have to be read.
            return self._load(key) if reader.may_hold(key) else None
        if self._cache.puts != block.touched:
            # As long as nothing is put into the cache, nothing is displaced, and its order need not be looked after.
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

    def _load(self, key: bytes) -> tuple[ServedRow, ServedBlock] | None:
        return self._files.use(self.lookup, lambda opened: self._opened(opened, key))

    def _opened(self, opened: OpenLookup, key: bytes) -> tuple[ServedRow, ServedBlock] | None:
        found = opened.find(key)
        blocks = self._note(opened)
        if found is None:
            return None
        number, block = found
        blocks[number] = ref(block)
        block.touched = self._cache.puts
        row = block.found.get(key)
        if isinstance(row, int):
            row = self._read(opened.file, number, block, key, row)
        return None if row is None else (row, block)

    def _note(self, opened: OpenLookup) -> list[_Block]:
        """Keep what was opened for the next key; its blocks, of which there is one more: keys behind the last are in none."""
        _, before, blocks = self._open
        if before() is not opened.reader:
            blocks = [_nothing] * (len(opened.reader.index.places) + 1)
        self._open = (opened.file, ref(opened.reader), blocks)
        return blocks


Hit = tuple[ServedFile, ServedRow, ServedBlock]
"""A row of a key, its file and its block."""


class ServedBucket:
    """The files of a bucket, oldest first. `is_gone` says whether a deletion vector deletes a row."""

    __slots__ = ("_files", "_is_gone", "_newest_first", "_split")

    def __init__(self, split: Split, files: Sequence[ServedFile], is_gone: Callable[[Hit], bool]) -> None:
        self._split = split
        self._files = tuple(files)
        self._newest_first = tuple(reversed(files))
        self._is_gone = is_gone

    @property
    def is_open(self) -> bool:
        """Whether all of its lookup files were there when they were last used, and are not dropped."""
        return all(file.is_open for file in self._files)

    def open(self) -> None:
        """Open all lookup files, which are made if need be."""
        for file in self._files:
            file.open()

    def newest(self, key: bytes, ignore_delete: bool) -> Hit | None:
        """The row of a key with the greatest sequence number, be it a retract; None where there is none.

        Files are in the order of their greatest sequence numbers: once none of those left can have a greater one, the rest is
        not looked at. Of rows with one sequence number that of the later file wins.
        """
        best: Hit | None = None
        best_sequence = 0
        for file in self._newest_first:
            if best is not None and file.max_sequence <= best_sequence:
                break
            if not file.low <= key <= file.high:
                continue
            found = file.find(key)
            if found is None:
                continue
            row, block = found
            sequence, is_retract, _, _ = row
            if (ignore_delete and is_retract) or (file.has_vector and self._is_gone((file, row, block))):
                continue
            if best is None or sequence > best_sequence:
                best, best_sequence = (file, row, block), sequence
        return best

    def oldest(self, key: bytes, ignore_delete: bool) -> Hit | None:
        """The row of a key with the least sequence number; of rows with one sequence number that of the later file wins."""
        hits = self.every(key, ignore_delete)
        return min(reversed(hits), key=lambda hit: hit[1][0], default=None)

    def every(self, key: bytes, ignore_delete: bool) -> list[Hit]:
        """All rows of a key that are not deleted, oldest file first."""
        hits: list[Hit] = []
        for file in self._files:
            found = file.find(key) if file.low <= key <= file.high else None
            if found is not None:
                hit = (file, *found)
                is_ignored = ignore_delete and found[0][1]
                if not is_ignored and not (file.has_vector and self._is_gone(hit)):
                    hits.append(hit)
        return hits


def _nothing() -> None:
    return None
