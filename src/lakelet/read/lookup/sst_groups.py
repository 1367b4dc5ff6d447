"""Groups of neighbouring data blocks of an SST file: what lookups decode at once and keep, like the row groups of a Parquet file.

    key ─ bloom filter, where its group is not in memory yet ─ index ─ group ─ columns of the group

Index and filter of a file are read when it is first asked for, and kept in the process's cache. A data block of 4 KB is too
little to be kept as Arrow columns by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakelet.errors import CorruptionError
from lakelet.format.data.sst_file import StoredSource, open_scan, stored_place
from lakelet.format.sst.bloom_filter import hash_keys
from lakelet.format.sst.sst_scan import SstScan
from lakelet.model.arrow.arrow_types import to_arrow
from lakelet.model.types import DataType, Field
from lakelet.read.split_files import SplitFile
from lakelet.storage.home import TableHome

_BLOCKS = 16

Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SstGroups:
    """The groups of one file. `starts` is where each begins, and where the last ends, if rows are told by their positions; else
    only their number is right."""

    scan: SstScan
    starts: Places
    key_types: tuple[pa.DataType, ...]

    @staticmethod
    def open(home: TableHome, file: SplitFile, key: Sequence[Field], *, counted: bool) -> SstGroups:
        """The groups of a file; `counted`, with the positions of their rows."""
        source = StoredSource(home.store, file.path, file.data.size)
        scan = open_scan(source, is_remote=home.store.is_remote)
        if scan.meta.row_count != file.data.row_count:
            where, found = home.where(file.path), scan.meta.row_count
            raise CorruptionError(f"{where}: its manifest says {file.data.row_count} rows, found {found}")
        count = -(-len(scan.blocks) // _BLOCKS)
        starts = np.zeros(count + 1, np.int64)
        if counted and count:
            starts[1:] = np.cumsum(np.add.reduceat(scan.row_counts(), np.arange(0, len(scan.blocks), _BLOCKS)))
        return SstGroups(scan, starts, tuple(to_arrow(field.type) for field in key))

    @property
    def nbytes(self) -> int:
        """About the memory this takes."""
        return self.scan.nbytes + int(self.starts.nbytes)

    def finds(self, types: Sequence[DataType]) -> bool:
        """Whether keys of these types are found by the index: the file has keys of the same."""
        return self.key_types == tuple(map(to_arrow, types))

    def of_keys(self, keys: Sequence[bytes], places: Places) -> Iterator[tuple[int, Places]]:
        """The groups that can hold the keys at `places`, and the places of those."""
        found: dict[int, list[int]] = {}
        for place in places.tolist():
            block = self.scan.block_of(keys[place])
            if block < len(self.scan.blocks):
                found.setdefault(block // _BLOCKS, []).append(place)
        for group, several in sorted(found.items()):
            yield group, np.array(several, np.int64)

    def admitted(self, keys: Sequence[bytes], places: Places) -> Places:
        """The places whose keys the bloom filter lets through."""
        bloom = self.scan.bloom
        if bloom is None or not len(places):
            return places
        wanted = [keys[place] for place in places.tolist()]
        hashes = hash_keys(np.frombuffer(b"".join(wanted), np.uint8), np.cumsum([0, *map(len, wanted)]))
        return places[np.asarray(bloom.may_hold_each(hashes))]

    def columns(self, group: int, fields: Sequence[Field], where: str) -> list[pa.Array]:
        """Columns of a group."""
        places = [stored_place(self.scan.meta, field, where) for field in fields]
        first = group * _BLOCKS
        return self.scan.columns(places, first, min(first + _BLOCKS, len(self.scan.blocks)))
