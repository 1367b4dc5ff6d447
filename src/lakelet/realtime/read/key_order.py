"""Merge streams of rows that are each in key order into one, in bounded memory: a batch of each stream is held.

keys   a  c  f │ h …        all rows up to the least of the last keys (here f) are known:
       b  d  k │ …          they are sorted together and yielded
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

KeysOf = Callable[[pa.RecordBatch], pa.Array]


class _Stream:
    """A stream of rows with its next batch, of which those before a place are taken."""

    def __init__(self, batches: Iterator[pa.RecordBatch], keys_of: KeysOf) -> None:
        self._batches = batches
        self._keys_of = keys_of
        self._rows: pa.RecordBatch | None = None
        self._keys: list[bytes] = []
        self._at = 0
        self._advance()

    @property
    def is_open(self) -> bool:
        """Whether there are further rows."""
        return self._rows is not None

    @property
    def last_key(self) -> bytes:
        """The last key that is known."""
        return self._keys[-1]

    def rest(self) -> Iterator[pa.RecordBatch]:
        """All further rows."""
        if self._rows is not None:
            yield self._rows.slice(self._at)
            yield from self._batches

    def take(self, up_to: bytes) -> pa.RecordBatch | None:
        """The rows with keys up to one, None where there are none."""
        assert self._rows is not None
        begin, self._at = self._at, bisect_right(self._keys, up_to, self._at)
        taken = self._rows.slice(begin, self._at - begin)
        if self._at == len(self._keys):
            self._advance()
        return taken if taken.num_rows else None

    def _advance(self) -> None:
        self._rows = next((batch for batch in self._batches if batch.num_rows), None)
        self._keys = [] if self._rows is None else self._keys_of(self._rows).to_pylist()
        self._at = 0


def merge_in_order(streams: Iterable[Iterator[pa.RecordBatch]], keys_of: KeysOf) -> Iterator[pa.RecordBatch]:
    """All rows in the order of their keys; `keys_of` gives those of a batch as bytes, and no key is in two streams."""
    opened = [stream for stream in (_Stream(one, keys_of) for one in streams) if stream.is_open]
    while len(opened) > 1:
        bound = min(stream.last_key for stream in opened)
        parts = [part for part in (stream.take(bound) for stream in opened) if part is not None]
        (rows,) = pa.Table.from_batches(parts).combine_chunks().to_batches()
        yield rows.take(pc.sort_indices(keys_of(rows)))
        opened = [stream for stream in opened if stream.is_open]
    for stream in opened:
        yield from stream.rest()
