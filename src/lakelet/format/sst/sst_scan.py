"""Scan an SST file: rows in key order as Arrow columns, many blocks at a time, or those of a few blocks.

    footer ─ meta, index, bloom in one read ─ blocks, some megabytes at a time ─ entries ─ the columns that are asked for

Opening reads and checks all that is behind the data blocks, so that damage anywhere but in the create timestamp and in the
checksum of the whole file is found by whoever reads all rows. Nothing is kept but the places of the blocks.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakelet.errors import CorruptionError
from lakelet.format.sst.bloom_filter import BloomFilter
from lakelet.format.sst.entry_loops import Longs, parse_loop
from lakelet.format.sst.record_columns import Cells, RecordLayout, columns_of
from lakelet.format.sst.scan_loops import INDEX_COLUMNS, index_loop, pick_loop
from lakelet.format.sst.sst_block import decode_block, decode_blocks
from lakelet.format.sst.sst_parts import (
    CHECKSUM_BYTES,
    FOOTER_BYTES,
    HEADER_BYTES,
    BlockPlace,
    SstMeta,
    decode_footer,
    decode_header,
    decode_meta,
)
from lakelet.format.sst.sst_reader import Source
from lakelet.format.sst.sst_writer import value_layout

_READ_BYTES = 1 << 20
_REMOTE_READ_BYTES = 8 << 20
# Blocks are decoded together up to about this many bytes of contents, which bounds memory however well they are compressed.
_DECODED_BYTES = 4 << 20
_FIRST_BLOCKS = 64
_LEAST_ENTRY = 17
"""The bytes of an entry of the index with two empty keys."""


@dataclass(frozen=True, slots=True)
class SstScan:
    """A file that is open for scans."""

    source: Source
    meta: SstMeta
    blocks: Longs
    index: bytes
    bloom: BloomFilter | None
    layout: RecordLayout
    read_bytes: int

    @staticmethod
    def open(source: Source, *, is_remote: bool = False) -> SstScan:
        """Open a file. CorruptionError for what is no SST file, or a damaged one; InvalidError for another version."""
        path, size = source.path, source.size
        compression, _ = decode_header(source.read(0, HEADER_BYTES), path=path)
        if size < HEADER_BYTES + CHECKSUM_BYTES + FOOTER_BYTES:
            raise CorruptionError(f"{path}: an SST file has at least a header and a footer, found {size} bytes")
        footer = decode_footer(source.read(size - FOOTER_BYTES, FOOTER_BYTES), size, path=path)
        places = (footer.meta, footer.index, footer.bloom)
        begin = min(place.offset for place in places)
        tail = source.read(begin, max(place.offset + place.size for place in places) - begin)

        def block(place: BlockPlace) -> bytes:
            at = place.offset - begin
            return decode_block(tail[at : at + place.size], path=path, at=place.offset)

        meta, index = decode_meta(block(footer.meta), path=path), block(footer.index)
        bloom = BloomFilter.decode(block(footer.bloom), path=path)
        if compression != meta.compression or footer.row_count != meta.row_count:
            raise CorruptionError(
                f"{path}: its meta block has {meta.row_count} rows in {meta.compression} blocks, found "
                f"{footer.row_count} in the footer and {compression} in the header"
            )
        blocks = _blocks(index, footer.meta.offset, path)
        layout = value_layout(meta.fields, delta_encoding=meta.delta_encoding)
        return SstScan(source, meta, blocks, index, bloom, layout, _REMOTE_READ_BYTES if is_remote else _READ_BYTES)

    @property
    def nbytes(self) -> int:
        """About the memory of index and filter."""
        return int(self.blocks.nbytes) + len(self.index) + (0 if self.bloom is None else len(self.bloom.bits)) + 4096

    def batches(self, places: Sequence[int]) -> Iterator[pa.RecordBatch]:
        """Columns of all rows by their places among schema id, sequence number, row kind and the fields of the file."""
        names = [str(place) for place in range(len(places))]
        first, last, rows, step = 0, len(self.blocks), 0, _FIRST_BLOCKS
        while first < last:
            end = self._end(first, min(last, first + step))
            contents = self._contents(first, end)
            step = max(1, _DECODED_BYTES * len(contents) // max(1, sum(map(len, contents))))
            columns = self._columns(contents, places)
            rows += len(columns[0])
            # The first is the schema id, by which rows are counted where no column is asked for.
            yield pa.RecordBatch.from_arrays(columns[1:] or columns, names=names or ["rows"])
            first = end
        if rows != self.meta.row_count:
            raise CorruptionError(f"{self.source.path}: expected {self.meta.row_count} rows, found {rows}")

    def columns(self, places: Sequence[int], first: int, behind: int) -> list[pa.Array]:
        """Columns by their places, as for `batches`, of a few neighbouring blocks."""
        return self._columns(self._contents(first, behind), places)[1:]

    def row_counts(self) -> Longs:
        """The number of rows of each block, for which all of them are read."""
        counts: list[int] = []
        state, nothing = np.zeros(3, np.int64), np.empty((0, 5), np.int64)
        for first in range(0, len(self.blocks), _FIRST_BLOCKS):
            for data in self._contents(first, min(first + _FIRST_BLOCKS, len(self.blocks))):
                parse = parse_loop.for_bytes_or_interpreted(len(data))
                parse(np.frombuffer(data, np.uint8), np.array([[0, len(data)]], np.int64), True, nothing, state)
                if state[0]:
                    raise CorruptionError(f"{self.source.path}: an entry of a data block reaches beyond its block")
                counts.append(int(state[1]))
        return np.array(counts, np.int64)

    def block_of(self, key: bytes) -> int:
        """The number of the only block that can hold a key; the number of blocks where none can."""
        return bisect_left(range(len(self.blocks)), key, key=lambda number: self._key(number, 2))

    def _key(self, number: int, column: int) -> bytes:
        return self.index[self.blocks[number, column] : self.blocks[number, column + 1]]

    def _end(self, first: int, most: int) -> int:
        """The block behind the last one of a read."""
        sizes = np.cumsum(self.blocks[first:most, 1])
        return first + max(1, int(np.searchsorted(sizes, self.read_bytes, side="right")))

    def _contents(self, first: int, behind: int) -> list[bytes]:
        """The contents of neighbouring blocks, in one read."""
        begin = int(self.blocks[first, 0])
        ends = self.blocks[first:behind, 0] + self.blocks[first:behind, 1] - begin
        stored = self.source.read(begin, int(ends[-1]))
        return decode_blocks(stored, ends.tolist(), path=self.source.path, at=begin)

    def _columns(self, contents: Sequence[bytes], places: Sequence[int]) -> list[pa.Array]:
        """The schema ids, and the columns at `places`, of the rows of blocks."""
        data = np.frombuffer(b"".join(contents), np.uint8)
        ends = np.cumsum([0, *map(len, contents)])
        spans = np.ascontiguousarray(np.stack([ends[:-1], ends[1:]], axis=1), np.int64)
        parse, state = parse_loop.for_bytes_or_interpreted(len(data)), np.zeros(3, np.int64)
        parse(data, spans, True, np.empty((0, 5), np.int64), state)
        if not state[0]:
            entries = np.empty((int(state[1]), 5), np.int64)
            parse(data, spans, False, entries, state)
            layout, wanted = self.layout, (0, *places)
            slots = np.full(len(layout.types), -1, np.int64)
            slots[list(wanted)] = np.arange(len(wanted))
            cells = Cells.empty(len(wanted), len(entries), data)
            pick = pick_loop.for_bytes_or_interpreted(len(data))
            pick(
                data, entries, layout.widths, layout.deltas, slots, layout.front, cells.numbers, cells.ends, cells.valid, state
            )  # fmt: skip
        if state[0]:
            raise CorruptionError(f"{self.source.path}: an entry of a data block reaches beyond its block")
        if (cells.numbers[0] != np.uint64(self.meta.schema_id)).any():
            raise CorruptionError(f"{self.source.path}: expected rows of schema {self.meta.schema_id}, found another")
        return columns_of(cells, [layout.types[place] for place in wanted], where=self.source.path)


def _blocks(index: bytes, end: int, path: str) -> Longs:
    """The blocks of an index, all of which are before `end` in the file."""
    blocks, state = np.empty((len(index) // _LEAST_ENTRY + 1, INDEX_COLUMNS), np.int64), np.zeros(2, np.int64)
    index_loop.for_bytes_or_interpreted(len(index))(np.frombuffer(index, np.uint8), blocks, state)
    blocks = blocks[: state[1]]
    ends = blocks[:, 0] + blocks[:, 1]
    # Blocks follow one another from the header on, so that every byte of the file is in one of its parts.
    gaps = len(blocks) and ((blocks[1:, 0] != ends[:-1]).any() or blocks[0, 0] != HEADER_BYTES or ends[-1] != end)
    if state[0] or gaps:
        raise CorruptionError(f"{path}: its index cannot be read, or its data blocks do not end at byte {end}")
    return blocks
