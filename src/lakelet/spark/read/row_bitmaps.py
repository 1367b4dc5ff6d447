"""Find the rows of files that a scan must not return: deleted and superseded ones, as one bitmap per file.

    words    ┌ word 0: rows 0 … 63 ┬ word 1: rows 64 … 127 ┬ …       64-bit words, the lowest bit first; a set bit hides the row

Superseded rows are found from the key columns alone, of splits whose merge engine selects a row of each key; deleted rows from
deletion vectors. Files never change, so that the superseded rows that this process found last are cached.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lakelet.cache.lru_cache import LruCache
from lakelet.commit.metadata.schemas import SchemaVersions
from lakelet.errors import NotFoundError
from lakelet.model.split import Split
from lakelet.predicate.row_filter import row_filter
from lakelet.predicate.tree import Predicate, columns
from lakelet.read.merge.merge_reader import MergeReader
from lakelet.read.split_files import SplitFile, deleted_positions, files_of, naming
from lakelet.table.read.table_scan import TableScan

WORD_BITS = 64
_OPEN_FILE_BYTES = 1 << 20
_CACHED_BYTES = 64 << 20

Words: TypeAlias = NDArray[np.int64]
# By the key of a split, the bitmaps of its files by path.
FoundBitmaps: TypeAlias = dict[Hashable, dict[str, Words]]

_cache: LruCache[dict[str, Words]] = LruCache()


@dataclass(frozen=True, slots=True)
class RowBitmaps:
    """Finds the hidden rows of splits of a scan's plan."""

    scan: TableScan
    reader: MergeReader | None

    @staticmethod
    def of(scan: TableScan) -> RowBitmaps:
        """The bitmaps of a scan; those of merged splits only where finding them pays."""
        schema = scan.schema
        where = scan.where
        keyed = isinstance(where, Predicate) and set(columns(where)) & set(schema.trimmed_primary_keys)
        # With a condition on the key, a merge reads the few row groups that may match, which is cheaper than all keys.
        if not schema.primary_keys or keyed:
            return RowBitmaps(scan, None)
        versions = SchemaVersions(scan.home, {schema.id: schema})
        return RowBitmaps(scan, MergeReader(scan.home, schema, (), row_filter(None, schema.fields), versions))

    def cost(self, split: Split) -> int | None:
        """About how many bytes are decoded to find the hidden rows; None where they cannot be found."""
        opened = _OPEN_FILE_BYTES * len(split.files)
        if not split.needs_merge:
            return opened
        if self.reader is None or any(vector is not None for vector in split.deletion_vectors):
            return None
        if _cache.get(self.key(split)) is not None:
            return 0
        decoded = self.reader.outdated_bytes(split)
        return None if decoded is None else decoded + opened

    def find(self, split: Split) -> dict[str, Words]:
        """The bitmaps of a split by file path; a file of which every row is visible has none."""
        if not split.needs_merge:
            return self._deleted(split)
        return _cache.load(self.key(split), lambda: self._superseded(split), _weight, limit=_CACHED_BYTES)

    def key(self, split: Split) -> Hashable:
        """What the superseded rows of a split depend on."""
        # The schema and its options determine which row of a key wins.
        schema = self.scan.schema
        deciding = (schema.id, schema.fields, tuple(sorted(schema.options.items())))
        return self.scan.home.where(""), deciding, split.paths

    def _superseded(self, split: Split) -> dict[str, Words]:
        assert self.reader is not None, "the cost of this split is unknown"
        files = list(files_of([split]))
        with naming(self.scan.home, files):
            gone = self.reader.outdated(split)
        assert gone is not None, "the cost of this split is unknown"
        return {file.path: words_of(gone[file.path], file.data.row_count) for file in files if file.path in gone}

    def _deleted(self, split: Split) -> dict[str, Words]:
        return {file.path: self._vector_words(file) for file in files_of([split]) if file.vector is not None}

    def _vector_words(self, file: SplitFile) -> Words:
        home = self.scan.home
        with naming(home, [file]):
            if home.store.head(file.path) is None:
                raise NotFoundError(f"{home.where(file.path)} is not there")
            positions = deleted_positions(home, file)
        assert positions is not None
        return words_of(np.asarray(positions, np.int64), file.data.row_count)


def keep_found(found: FoundBitmaps) -> None:
    """Cache superseded rows that another process found."""
    for key, words in found.items():
        _cache.put(key, words, _weight(words), limit=_CACHED_BYTES)


def _weight(found: dict[str, Words]) -> int:
    return sum(words.nbytes for words in found.values()) + 1


def words_of(positions: NDArray[np.int64], rows: int) -> Words:
    """The bitmap of a file with this number of rows, the bits at these positions set."""
    flags = np.zeros(-(-rows // WORD_BITS) * WORD_BITS, np.bool_)
    flags[positions[positions < rows]] = True
    return np.packbits(flags, bitorder="little").view("<i8")


def no_bits(rows: int) -> Words:
    """The bitmap of a file of which every row is visible."""
    return np.zeros(-(-rows // WORD_BITS), np.int64)


def count_bits(words: Words) -> int:
    """The number of hidden rows."""
    return int(np.bitwise_count(words.view(np.uint64)).sum())
