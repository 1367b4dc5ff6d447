"""Lookup files: SST files made of data files, and their blocks through the process's cache.

    data file ─ all its rows, in order ─ SST with key, sequence number, row kind, columns and the row's position in the file
    key ─ bloom filter ─ index ─ block cache ─ block

The position is what deletion vectors speak of. A lookup file that is gone or damaged is made anew from its data file.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import pyarrow as pa

from lakelet.errors import CorruptionError, InvalidError
from lakelet.format.data.data_file_formats import format_of_file
from lakelet.format.sst.entry_loops import Bytes, Longs
from lakelet.format.sst.record_columns import Cells
from lakelet.format.sst.sst_arena import SstArena, joined_keys
from lakelet.format.sst.sst_reader import FileSource, SstReader, SstRows
from lakelet.format.sst.sst_writer import SstWriter
from lakelet.lsm.key_bytes import encode_key_bytes
from lakelet.lsm.key_value_columns import KIND_FIELD, SEQUENCE_FIELD
from lakelet.model.schema import TableSchema
from lakelet.model.types import Atomic, Field, Kind
from lakelet.read.evolve import evolve_array
from lakelet.read.lookup.block_cache import BLOCKS, BlockCache
from lakelet.read.lookup.lookup_blocks import LookupFile
from lakelet.read.serve.lookup_folder import DiskLimits, LocalFile, LookupFolder, lookup_folder
from lakelet.read.serve.lookup_settings import LookupSettings
from lakelet.read.serve.served_block import ServedBlock, cell_readers
from lakelet.read.split_files import naming
from lakelet.storage.home import TableHome

POSITION_FIELD = Field(2**31 - 4, "_ROW_POSITION", Atomic(Kind.BIGINT, nullable=False))
"""The column behind those of the table: the row's position in its data file."""
_BATCH_ROWS = 65536
_TRIES = 3
_DROPS = 50
# Blocks of a table's files take at most this part of the block cache.
_ARENA_SHARE = 0.75
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class LookupFiles:
    """Makes and reads the lookup files of one table."""

    home: TableHome
    schema_of: Callable[[int], TableSchema]
    key: tuple[Field, ...]
    settings: LookupSettings
    limits: DiskLimits
    folder: LookupFolder
    # The key types and the layout, which a file is made for.
    form: str
    cache: BlockCache = BLOCKS

    @staticmethod
    def of(
        home: TableHome,
        schema_of: Callable[[int], TableSchema],
        key: tuple[Field, ...],
        settings: LookupSettings,
        cache: BlockCache,
    ) -> LookupFiles:
        """The lookup files of a table with this key."""
        form = f"{[str(field.type) for field in key]} {settings.sst}"
        limits = replace(settings.disk, owner=(home.store.location, home.paths.root))
        return LookupFiles(home, schema_of, key, settings, limits, lookup_folder(settings.root), form, cache)

    def use(self, lookup: LookupFile, read: Callable[[OpenLookup], Result]) -> Result:
        """What `read` finds in the lookup file of a data file, which is made if need be; a damaged one is replaced."""
        name = self.name(lookup)
        damaged = dropped = 0
        while True:
            file = self._file(name, lookup)
            try:
                return read(OpenLookup(self._reader(file), file, self.folder, self.cache, self.settings.memory_bytes))
            except (CorruptionError, OSError):
                if file.is_dropped:
                    # Others needed the disk before we had opened it; that is no damage.
                    dropped += 1
                else:
                    damaged += 1
                    self.folder.forget(name, file)
                if damaged == _TRIES or dropped == _DROPS:
                    raise

    def share(self, file: LocalFile) -> float:
        """The part of a file in the room of its table: files share memory as they share the disk."""
        return file.size / max(self.folder.bytes_of(file.owner), file.size, 1)

    def is_made(self, lookup: LookupFile) -> bool:
        """Whether the lookup file of a data file is there."""
        return self.folder.holds(self.name(lookup))

    def name(self, lookup: LookupFile) -> tuple[object, ...]:
        """The name of the lookup file of a data file."""
        return (self.home.store.location, lookup.file.path, self.form)

    def _file(self, name: tuple[object, ...], lookup: LookupFile) -> LocalFile:
        return self.folder.file(
            name,
            lookup.file.data.level,
            lambda path: self._make(lookup, path),
            self.limits,
            self.home.clock,
            self.home.ids,
        )

    def _reader(self, file: LocalFile) -> SstReader:
        name = (file.path, "reader")
        found = self.cache.get(name)
        if found is None:
            found, _ = self.folder.loads.load(name, lambda: self._opened(name, file))
        assert isinstance(found, SstReader), "the cache holds what was put under a name"
        return found

    def _opened(self, name: tuple[object, ...], file: LocalFile) -> SstReader:
        # Another thread may have opened it since: there is one reader of a file, which counts what it was asked for.
        found = self.cache.get(name)
        if isinstance(found, SstReader):
            return found
        reader = _open(file.path)
        self.cache.put(name, reader, reader.nbytes, limit=self.settings.memory_bytes)
        return reader

    def _make(self, lookup: LookupFile, path: str) -> int:
        data, store = lookup.file.data, self.home.store
        stored = self.schema_of(data.schema_id).fields
        asked = (SEQUENCE_FIELD, KIND_FIELD, *stored)
        names = [field.name for field in asked]
        fields = (*stored, POSITION_FIELD)
        rows = 0
        with open(path, "wb") as sink, naming(self.home, [lookup.file]):
            writer = SstWriter(sink, data.schema_id, fields, self.settings.sst, create_ms=self.home.clock.now_ms())
            for batch in format_of_file(data.name).read(store, lookup.file.path, asked, names, batch_rows=_BATCH_ROWS):
                columns = [batch.column(name) for name in names]
                position = pa.array(np.arange(rows, rows + batch.num_rows))
                try:
                    writer.write(self._keys(lookup, batch), columns[0], columns[1], [*columns[2:], position])
                except InvalidError as error:
                    raise CorruptionError(
                        f"{self.home.where(lookup.file.path)} cannot be looked up: {error}"
                    ) from error
                rows += batch.num_rows
            size = writer.close()
        if rows != data.row_count:
            raise CorruptionError(
                f"{self.home.where(lookup.file.path)}: its manifest says {data.row_count} rows, found {rows}"
            )
        return size

    def _keys(self, lookup: LookupFile, batch: pa.RecordBatch) -> pa.Array:
        """The keys of rows in the types of the table now."""
        columns = [
            evolve_array(batch.column(old.name), old.type, new.type, new.name)
            for old, new in zip(lookup.key, self.key, strict=True)
        ]
        return encode_key_bytes(columns, [field.type for field in self.key])


@dataclass(frozen=True, slots=True)
class OpenLookup:
    """An open lookup file, with its blocks in the cache."""

    reader: SstReader
    file: LocalFile
    folder: LookupFolder
    cache: BlockCache
    limit_bytes: int

    def find(self, key: bytes) -> tuple[int, ServedBlock] | None:
        """The number of the only block that can hold a key, and the block; None where the key is not there."""
        reader = self.reader
        number = reader.block_of(key)
        if number == len(reader.index.places):
            return None
        name = (self.file.path, number)
        block = self.cache.get(name)
        if block is None:
            # The filter is only worth its time where a block would have to be read.
            if not reader.may_hold(key):
                return None
            block, _ = self.folder.loads.load(name, lambda: self._block(number))
            self.cache.put(name, block, block.weigh(), limit=self.limit_bytes)
        assert isinstance(block, ServedBlock), "the cache holds what was put under a name"
        return number, block

    def _block(self, number: int) -> ServedBlock:
        name = (self.file.path, "readers")
        readers = self.cache.get(name)
        if readers is None:
            readers = cell_readers([field.type for field in self.reader.meta.fields])
            self.cache.put(name, readers, 256 * len(readers), limit=self.limit_bytes)
        return ServedBlock(self.reader.rows(number, number + 1), readers)

    def find_many(self, keys: Sequence[bytes], places: Sequence[int]) -> list[tuple[SstRows, list[int], list[int]]]:
        """Blocks that hold some of the keys at `places`, with the rows found in each and the places of their keys."""
        reader = self.reader
        asked = [keys[place] for place in places]
        joined = joined_keys(asked)
        found = self.find_kept(*joined)
        if found is None:
            # Their blocks have no room at once: they are read together, and not kept.
            found = reader.arena(sys.maxsize).find_many(*joined, deltas=True)
        assert found is not None, "an arena without a limit has room"
        at = found[0].tolist()
        rows = reader.found_rows([asked[one] for one in at], found[1])
        return [(rows, list(range(len(at))), [places[one] for one in at])] if at else []

    def find_kept(self, keys: Bytes, key_at: Longs, *, deltas: bool = True) -> tuple[Longs, Cells] | None:
        """The places of the keys that are there, and the cells of their values, by blocks that are kept; None where these
        have no room at once. `deltas` as by `SstArena.find_many`."""
        arena = self.arena()
        before = arena.heap
        found = arena.find_many(keys, key_at, deltas=deltas)
        if arena.heap is not before:
            self._weigh(arena)
        return found

    def arena(self) -> SstArena:
        """The file's blocks in memory, as many of them as were asked for and have room."""
        name = (self.file.path, "arena")
        # Files of a table share the room as they share the disk.
        share = self.file.size / max(self.folder.bytes_of(self.file.owner), self.file.size, 1)
        most = int(self.limit_bytes * _ARENA_SHARE * share)
        found = self.cache.get(name)
        if found is None:
            found, _ = self.folder.loads.load(name, lambda: self._new_arena(name, most))
        assert isinstance(found, SstArena), "the cache holds what was put under a name"
        found.limit(most)
        return found

    def load(self, arena: SstArena, block: int) -> bool:
        """Put a block into the arena; False where it has no room."""
        before = arena.heap
        has_room = arena.load(block)
        if arena.heap is not before:
            self._weigh(arena)
        return has_room

    def _new_arena(self, name: tuple[object, ...], most: int) -> SstArena:
        # Another thread may have made it since.
        found = self.cache.get(name)
        if isinstance(found, SstArena):
            return found
        made = self.reader.arena(most)
        self._weigh(made)
        return made

    def _weigh(self, arena: SstArena) -> None:
        self.cache.put((self.file.path, "arena"), arena, arena.nbytes, limit=self.limit_bytes)


def _open(path: str) -> SstReader:
    try:
        return SstReader(FileSource(path))
    except InvalidError as error:
        # This process wrote the file, and knows but one version.
        raise CorruptionError(str(error)) from error
