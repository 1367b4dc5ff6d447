"""Blocks of data files for lookups, decoded once and kept: row groups of Parquet files, groups of blocks of SST files, others as
a whole.

    footer ─ key ranges of the row groups ─ bloom filters, where a group is not in memory yet ─ columns of a group

A file is opened only for what the cache does not have. Statistics are believed only where their order is beyond doubt: of whole
numbers and of text, in columns that have the type of the key. Others, NaN among them, leave the range of a row group unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyarrow.fs import LocalFileSystem

from lakelet.errors import CorruptionError
from lakelet.format.data.data_file_errors import decoding, open_input
from lakelet.format.data.data_file_formats import format_of_file
from lakelet.format.data.parquet_bloom import HEADER_ROOM, BloomFilter, filter_of, hash_fixed, hash_texts, header_of
from lakelet.format.data.parquet_int96 import metadata_with_raw_int96
from lakelet.format.data.restored_columns import restore_batch
from lakelet.format.index.deletion_vectors import Positions
from lakelet.format.rows.binary_row_columns import encode_rows
from lakelet.model.arrow.arrow_types import to_arrow
from lakelet.model.schema import KEY_PREFIX
from lakelet.model.types import BINARIES, STRINGS, Atomic, DataType, Field, Kind
from lakelet.read.lookup.block_cache import BlockCache
from lakelet.read.lookup.key_bounds import KeyBounds, Places, WantedKeys
from lakelet.read.lookup.key_codes import Codes, KeyCoder, SingleKey
from lakelet.read.lookup.sst_groups import SstGroups
from lakelet.read.split_files import SplitFile, deleted_positions, naming
from lakelet.storage.home import TableHome

_BATCH_ROWS = 131_072
# Arrow's form of a footer takes several times the room of the bytes in the file.
_FOOTER_FACTOR = 4
# Beyond this many rows per key with the same code, comparing them one by one does not pay.
_MOST_CANDIDATES = 16
_SIZES = {"INT32": np.dtype("<i4"), "INT64": np.dtype("<i8")}
_NUMBERS = {
    Kind.TINYINT,
    Kind.SMALLINT,
    Kind.INT,
    Kind.BIGINT,
    Kind.DATE,
    Kind.TIME,
    Kind.TIMESTAMP,
    Kind.TIMESTAMP_LTZ,
}


@dataclass(frozen=True, slots=True)
class Footer:
    """The footer of a file for lookups. `metadata` is None for files that are no Parquet: they are one block, or those of `sst`.

    `starts` is where each row group begins, and where the last ends. `leaves` are Parquet's numbers of columns, `types` the Arrow
    types of top-level ones.
    """

    metadata: pq.FileMetaData | None
    starts: NDArray[np.int64]
    leaves: Mapping[str, int]
    types: Mapping[str, pa.DataType]
    bounds: KeyBounds | None
    sst: SstGroups | None = None

    def groups_of(self, keys: WantedKeys, places: Places) -> Sequence[tuple[int, Places]]:
        """The row groups that may hold the keys at `places`, and the places of these keys."""
        if self.sst is not None and self.sst.finds(keys.types):
            return list(self.sst.of_keys(keys.encoded, places))
        if self.bounds is None:
            return [(group, places) for group in range(len(self.starts) - 1)]
        chosen = np.zeros(len(keys), np.bool_)
        chosen[places] = True
        return [(group, at[chosen[at]]) for group, at in self.bounds.candidates(keys)]

    @property
    def nbytes(self) -> int:
        """About the memory this takes."""
        if self.sst is not None:
            return self.sst.nbytes + 1024
        return 1024 if self.metadata is None else _FOOTER_FACTOR * self.metadata.serialized_size + 1024


@dataclass(frozen=True, slots=True)
class LookupFile:
    """A file of a split, and the key columns as the file's schema has them."""

    file: SplitFile
    key: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class KeyBlock:
    """The keys of a block: codes to search them by, and their columns where codes do not tell them apart."""

    columns: tuple[pa.Array, ...] | None
    coder: KeyCoder
    codes: Codes

    @staticmethod
    def of(columns: Sequence[pa.Array], types: Sequence[DataType]) -> KeyBlock:
        """The keys in these columns."""
        coder = KeyCoder.of(columns, types)
        kept = None if coder.past(columns) is None else tuple(columns)
        return KeyBlock(kept, coder, coder.encode(columns))

    @property
    def nbytes(self) -> int:
        """The memory that the codes take, of which columns may be a part; columns that are kept."""
        kept = sum(int(column.get_total_buffer_size()) for column in self.columns or ())
        return int(self.codes.nbytes) + kept + 256

    def find(self, keys: WantedKeys, places: Places) -> tuple[Places, Places]:
        """Find the keys at `places`: rows of the block, and the place of the key of each."""
        codes = keys.codes(self.coder)[places]
        begins = np.searchsorted(self.codes, codes, side="left")
        last = len(self.codes) - 1
        if last < 0:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        counts = ((self.codes[np.minimum(begins, last)] == codes) & (begins <= last)).astype(np.int64)
        # Few keys share their code with others: only those are searched for again.
        shared = np.flatnonzero(counts)
        shared = shared[self.codes[np.minimum(begins[shared] + 1, last)] == codes[shared]]
        if len(shared):
            counts[shared] = np.searchsorted(self.codes, codes[shared], side="right") - begins[shared]
        total = int(counts.sum())
        if not total:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        if total > _MOST_CANDIDATES * len(places) and self.columns is not None:
            return self._joined(keys, places[counts > 0], begins[counts > 0], counts[counts > 0])
        before = np.cumsum(counts) - counts
        rows = np.arange(total) + np.repeat(begins - before, counts)
        found = np.repeat(places, counts)
        same: NDArray[np.bool_] | None = None
        if self.columns is not None:
            same = same_keys(self.columns, rows, keys.columns, found)
        elif (past := keys.past(self.coder)) is not None:
            # No key of the block is greater than its code says, so that none of these is there.
            same = ~past[found]
        return (rows, found) if same is None else (rows[same], found[same])

    def find_single(self, key: SingleKey) -> Sequence[int]:
        """The rows of one key."""
        code = key.code(self.coder)
        at = int(self.codes.searchsorted(np.array(code, self.codes.dtype)))
        if at == len(self.codes) or self.codes[at] != code:
            return ()
        if self.columns is None and (at + 1 == len(self.codes) or self.codes[at + 1] != code):
            return () if key.is_past(self.coder) else (at,)
        rows, _ = self.find(WantedKeys(key.columns, key.types), np.zeros(1, np.int64))
        found: list[int] = rows.tolist()
        return found

    def _joined(self, keys: WantedKeys, places: Places, begins: Places, counts: Places) -> tuple[Places, Places]:
        """The same where many keys share codes: keys are joined as a whole. A block holds a key once."""
        assert self.columns is not None, "only keys that share codes are joined"
        first, last = int(begins.min()), int((begins + counts).max())
        stored = encode_rows([column.slice(first, last - first) for column in self.columns], keys.types)
        wanted = encode_rows([column.take(pa.array(places)) for column in keys.columns], keys.types)
        at = pc.index_in(wanted, value_set=stored)
        there = at.is_valid().to_numpy(zero_copy_only=False)
        return at.drop_null().to_numpy().astype(np.int64) + first, places[there]


@dataclass(frozen=True, slots=True)
class BlockFiles:
    """Blocks of the files of one table, through the process's cache. `decoded` is told of each file whose values are decoded, and
    of their number."""

    home: TableHome
    cache: BlockCache
    limit_bytes: int
    decoded: Callable[[LookupFile, int], None] | None = None

    def footer(self, lookup: LookupFile, *, counted: bool = False) -> Footer:
        """The file's footer, cached; of an SST file `starts` is right if it is `counted`, or has a deletion vector."""
        if not lookup.file.is_parquet and not lookup.file.is_sst:
            return Footer(None, np.array([0, lookup.file.data.row_count]), {}, {}, None)
        counted = lookup.file.is_sst and (counted or lookup.file.vector is not None)
        found: Footer = self.cache.load(
            self._name(lookup.file, "counted footer" if counted else "footer"),
            lambda: self._read_footer(lookup, counted=counted),
            lambda footer: int(footer.nbytes),
            limit=self.limit_bytes,
        )
        return found

    def key_block(
        self, lookup: LookupFile, group: int, keys: WantedKeys, places: Places
    ) -> tuple[KeyBlock | None, Places]:
        """The keys of a block, and which of those at `places` it can hold; None where a bloom filter says that it has none."""
        name = self._name(lookup.file, "keys", group)
        found: KeyBlock | None = self.cache.get(name)
        if found is None:
            sst = self.footer(lookup).sst
            if sst is not None and sst.finds(keys.types):
                places = sst.admitted(keys.encoded, places)
            for field, column in zip(lookup.key, keys.columns, strict=True):
                if len(places):
                    places = places[self._may_hold(lookup, group, field, column.take(pa.array(places)))]
            if not len(places):
                return None, places
            with naming(self.home, [lookup.file]):
                found = KeyBlock.of(self._read(lookup, group, lookup.key), keys.types)
            self.cache.put(name, found, found.nbytes, limit=self.limit_bytes)
        return found, places

    def single_key_block(self, lookup: LookupFile, group: int, key: SingleKey) -> KeyBlock | None:
        """The keys of a block; None where a bloom filter says that it does not hold this one."""
        found: KeyBlock | None = self.cache.get(self._name(lookup.file, "keys", group))
        if found is not None:
            return found
        return self.key_block(lookup, group, WantedKeys(key.columns, key.types), np.zeros(1, np.int64))[0]

    def columns(self, lookup: LookupFile, group: int, fields: Sequence[Field]) -> list[pa.Array]:
        """Columns of a block in the types of the file's schema."""
        found = [self.cache.get(self._name(lookup.file, "column", group, field.name)) for field in fields]
        missing = [place for place, column in enumerate(found) if column is None]
        if missing:
            wanted = [fields[place] for place in missing]
            with naming(self.home, [lookup.file]):
                read = self._read(lookup, group, wanted)
            for place, field, column in zip(missing, wanted, read, strict=True):
                found[place] = column
                name = self._name(lookup.file, "column", group, field.name)
                self.cache.put(name, column, column.get_total_buffer_size(), limit=self.limit_bytes)
        return found

    def deleted(self, file: SplitFile) -> Positions | None:
        """The rows that the file's deletion vector deletes."""
        if file.vector is None:
            return None
        place = file.vector.place
        name = (self.home.store.location, file.vector.index_path, place.offset, place.length)

        def read() -> Positions:
            with naming(self.home, [file]):
                positions = deleted_positions(self.home, file)
            return np.empty(0, np.int64) if positions is None else positions

        found: Positions = self.cache.load(name, read, lambda rows: int(rows.nbytes) + 64, limit=self.limit_bytes)
        return found

    def _name(self, file: SplitFile, *rest: str | int) -> tuple[str | int, ...]:
        return (self.home.store.location, file.path, *rest)

    def _read_footer(self, lookup: LookupFile, *, counted: bool) -> Footer:
        store, file = self.home.store, lookup.file
        if file.is_sst:
            with naming(self.home, [file]):
                groups = SstGroups.open(self.home, file, lookup.key, counted=counted)
            return Footer(None, groups.starts, {}, {}, None, groups)
        with naming(self.home, [file]), open_input(store, file.path) as source, decoding(store, file.path, "Parquet"):
            metadata = pq.read_metadata(source)
            columns = [metadata.schema.column(number) for number in range(metadata.num_columns)]
            if any(column.physical_type == "INT96" for column in columns):
                metadata = metadata_with_raw_int96(source)
        if metadata.num_rows != file.data.row_count:
            raise CorruptionError(
                f"{self.home.where(file.path)}: its manifest says {file.data.row_count} rows, found {metadata.num_rows}"
            )
        types = {field.name: field.type for field in metadata.schema.to_arrow_schema()}
        paths = [column.path for column in columns]
        # A column named like the path of a nested one cannot be distinguished from it.
        leaves = {path: number for number, path in enumerate(paths) if paths.count(path) == 1}
        counts = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
        starts = np.cumsum([0, *counts])
        return Footer(metadata, starts, leaves, types, _group_bounds(metadata, leaves, types, lookup.key))

    def _read(self, lookup: LookupFile, group: int, fields: Sequence[Field]) -> list[pa.Array]:
        store, file = self.home.store, lookup.file
        names = [field.name for field in fields]
        footer = self.footer(lookup)
        if footer.sst is not None:
            return footer.sst.columns(group, fields, self.home.where(file.path))
        if footer.metadata is None:
            batches = list(format_of_file(file.data.name).read(store, file.path, fields, names, batch_rows=_BATCH_ROWS))
        else:
            schema = pa.schema([(field.name, to_arrow(field.type)) for field in fields])
            remote = not isinstance(store.arrow_path(file.path)[0], LocalFileSystem)
            # A dot separates the levels of a column's path there, so that a name with one cannot be asked for.
            asked = None if any("." in name for name in footer.types) else names
            with open_input(store, file.path) as source, decoding(store, file.path, "Parquet"):
                parquet = pq.ParquetFile(source, metadata=footer.metadata, pre_buffer=remote)
                table = parquet.read_row_group(group, columns=asked, use_threads=len(names) > 1)
                batches = [restore_batch(batch, schema) for batch in table.to_batches()]
        if self.decoded is not None:
            self.decoded(lookup, len(fields) * sum(batch.num_rows for batch in batches))
        return [
            pa.concat_arrays([batch.column(field.name) for batch in batches] or [pa.array([], to_arrow(field.type))])
            for field in fields
        ]

    def _may_hold(self, lookup: LookupFile, group: int, field: Field, values: pa.Array) -> NDArray[np.bool_]:
        """Which of the values a key column of a row group can hold, by its bloom filter if it has one under either name."""
        footer = self.footer(lookup)
        for column in (f"{KEY_PREFIX}{field.name}", field.name):
            leaf = footer.leaves.get(column)
            if footer.metadata is None or leaf is None or footer.types.get(column) != values.type:
                continue
            chunk = footer.metadata.row_group(group).column(leaf)
            # pyarrow tells where filters are since 22.
            offset: int | None = getattr(chunk, "bloom_filter_offset", None)
            hashes = None if offset is None else _hashes(values, chunk.physical_type)
            if offset is None or hashes is None:
                continue
            bloom = self._bloom(lookup.file, self._name(lookup.file, "bloom", group, column), offset)
            if bloom is not None:
                return bloom.may_hold(hashes)
        return np.ones(len(values), np.bool_)

    def _bloom(self, file: SplitFile, name: tuple[str | int, ...], offset: int) -> BloomFilter | None:
        found: BloomFilter | None = self.cache.get(name)
        if found is None:
            where, store = self.home.where(file.path), self.home.store
            with naming(self.home, [file]):
                start = store.get_range(file.path, offset, min(HEADER_ROOM, file.data.size - offset))
                header = header_of(start, where=where)
                if header is None:
                    return None
                found = filter_of(store.get_range(file.path, offset + header[0], header[1]), where=where)
            self.cache.put(name, found, found.nbytes, limit=self.limit_bytes)
        return found


def same_keys(
    columns: Sequence[pa.Array], rows: Places, others: Sequence[pa.Array], places: Places
) -> NDArray[np.bool_]:
    """A mask of the rows whose keys are bitwise equal on both sides."""
    same = np.ones(len(rows), np.bool_)
    for column, other in zip(columns, others, strict=True):
        one, two = column.take(pa.array(rows)), other.take(pa.array(places))
        if pa.types.is_floating(one.type):
            bits = pa.int32() if one.type == pa.float32() else pa.int64()
            both_nan = np.isnan(one.to_numpy(zero_copy_only=False)) & np.isnan(two.to_numpy(zero_copy_only=False))
            same &= both_nan | _equal(one.view(bits), two.view(bits))
        else:
            same &= _equal(one, two)
    return same


def _equal(one: pa.Array, two: pa.Array) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = pc.equal(one, two).to_numpy(zero_copy_only=False)
    return found


def _group_bounds(
    metadata: pq.FileMetaData, leaves: Mapping[str, int], types: Mapping[str, pa.DataType], key: Sequence[Field]
) -> KeyBounds | None:
    """The key ranges of the row groups, as far as statistics bound columns from the first on; None where they do not."""
    lows: list[pa.Array] = []
    highs: list[pa.Array] = []
    bounded: list[DataType] = []
    known = np.ones(metadata.num_row_groups, np.bool_)
    for field in key:
        leaf, target = leaves.get(field.name), to_arrow(field.type)
        if leaf is None or not _orderly(field.type) or types.get(field.name) != target:
            break
        ends = [_ends(metadata.row_group(group).column(leaf), target) for group in range(metadata.num_row_groups)]
        if all(end is None for end in ends):
            break
        known &= np.array([end is not None for end in ends], np.bool_)
        filler: tuple[Any, Any] = (b"", b"") if _plain_type(target) == pa.binary() else (0, 0)
        lows.append(_as_type([(end or filler)[0] for end in ends], target))
        highs.append(_as_type([(end or filler)[1] for end in ends], target))
        bounded.append(field.type)
    return KeyBounds.of(lows, highs, bounded, known) if bounded else None


def _as_type(values: list[Any], target: pa.DataType) -> pa.Array:
    """Values as Parquet stores them in their logical type."""
    plain = pa.array(values, _plain_type(target))
    return plain.cast(target) if pa.types.is_integer(target) else plain.view(target)


def _orderly(data_type: DataType) -> bool:
    return isinstance(data_type, Atomic) and (
        data_type.kind in _NUMBERS or data_type.kind in STRINGS or data_type.kind in BINARIES
    )


def _plain_type(arrow: pa.DataType) -> pa.DataType:
    if pa.types.is_string(arrow) or pa.types.is_binary(arrow):
        return pa.binary()
    return pa.int32() if arrow.bit_width <= 32 else pa.int64()


def _ends(chunk: pq.ColumnChunkMetaData, arrow: pa.DataType) -> tuple[Any, Any] | None:
    """The least and the greatest value of a column chunk as Parquet stores them."""
    statistics = chunk.statistics
    if statistics is None or not statistics.has_min_max:
        return None
    low, high = statistics.min_raw, statistics.max_raw
    wanted = bytes if _plain_type(arrow) == pa.binary() else int
    if not isinstance(low, wanted) or not isinstance(high, wanted):
        return None
    return low, high


def _hashes(values: pa.Array, physical: str) -> NDArray[np.uint64] | None:
    """Hashes of values as a column of this physical type stores them; None where that is not plain to see."""
    arrow = values.type
    if pa.types.is_string(arrow) or pa.types.is_binary(arrow):
        return hash_texts(values) if physical == "BYTE_ARRAY" else None
    size = _SIZES.get(physical)
    if size is None or pa.types.is_floating(arrow) or pa.types.is_boolean(arrow) or pa.types.is_decimal(arrow):
        return None
    plain = values.view(_plain_type(arrow)) if arrow.bit_width >= 32 else values
    return hash_fixed(plain.to_numpy(zero_copy_only=False).astype(size))
