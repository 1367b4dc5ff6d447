"""Data blocks of an SST file in memory, decompressed one behind the other: many keys are found by one loop.

Nothing is decoded but the values from the restart point of a key to its own. Blocks that are kept for the next keys are in an
arena (`sst_arena`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lakelet.errors import CorruptionError
from lakelet.format.sst.entry_loops import Bytes, Longs, parse_loop
from lakelet.format.sst.record_columns import Cells, RecordLayout, read_records
from lakelet.format.sst.seek_loops import block_loop, restart_loop, run_loop, seek_loop


@dataclass(frozen=True, slots=True)
class SstImage:
    """Blocks, where each begins and ends, and the separators of the index, none of whose block's keys is greater."""

    data: Bytes
    spans: Longs
    separators: Bytes
    separator_at: Longs
    layout: RecordLayout
    path: str

    @staticmethod
    def of(blocks: Sequence[bytes], separators: Sequence[bytes], layout: RecordLayout, *, path: str) -> SstImage:
        """The image of a file's blocks. CorruptionError where an entry is not within its block."""
        data = np.frombuffer(b"".join(blocks), np.uint8)
        ends = np.cumsum([0, *map(len, blocks)])
        spans = np.ascontiguousarray(np.stack([ends[:-1], ends[1:]], axis=1), np.int64)
        state = np.zeros(3, np.int64)
        parse_loop.for_bytes_or_interpreted(len(data))(data, spans, True, np.empty((0, 5), np.int64), state)
        if state[0]:
            raise CorruptionError(f"{path}: an entry of a data block reaches beyond its block")
        return SstImage(data, spans, *joined_keys(separators), layout, path)

    @property
    def nbytes(self) -> int:
        """The memory this takes."""
        return self.data.nbytes + self.spans.nbytes + self.separators.nbytes + self.separator_at.nbytes + 1024

    def find(self, keys: Sequence[bytes]) -> tuple[Cells, list[int]]:
        """The cells of the values of keys that are there, and the places of these keys."""
        joined, count = joined_keys(keys), len(keys)
        blocks, restarts, counts = np.empty(count, np.int64), np.zeros((count, 2), np.int64), np.empty(count, np.int64)
        block_loop.for_bytes_or_interpreted(count)(self.separators, self.separator_at, *joined, blocks)
        restart_loop.for_bytes_or_interpreted(count)(self.data, self.spans, *joined, blocks, restarts)
        seek_loop.for_bytes_or_interpreted(count)(self.data, *joined, restarts, counts)
        places = np.flatnonzero(counts)
        starts, counts = np.ascontiguousarray(restarts[places, 0]), counts[places]
        last = np.cumsum(counts)
        count = int(last[-1]) if len(last) else 0
        begins, ends, firsts = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.uint8)
        run_loop.for_bytes_or_interpreted(count)(self.data, starts, counts, begins, ends, firsts)
        cells = read_records(self.data, begins, ends, firsts, self.layout, count, where=self.path)
        rows = last - 1
        numbers, spans = np.take(cells.numbers, rows, axis=1), np.take(cells.ends, rows, axis=1)
        return Cells(numbers, spans, np.take(cells.valid, rows, axis=1), self.data), places.tolist()


def joined_keys(texts: Sequence[bytes]) -> tuple[Bytes, Longs]:
    """Keys one behind the other, and where each begins and the last ends."""
    at = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([len(text) for text in texts], out=at[1:])
    return np.frombuffer(b"".join(texts), np.uint8), at
