"""Keys of rows in key order, searched for in one another.

Keys are compared as bytes that sort like them (`lsm.key_bytes`). Up to eight of them are a number, which is found by bisection;
longer ones are hashed, and so are those of texts and bytes, of which numbers of several batches would not sort alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lakelet.lsm.key_bytes import encode_key_bytes
from lakelet.model.types import BINARIES, STRINGS, Atomic, Field

_WIDTH = 8


@dataclass(frozen=True, slots=True)
class SortedKeys:
    """Ascending keys, as bytes and where that is possible as numbers."""

    encoded: pa.Array
    numbers: NDArray[np.uint64] | None

    @staticmethod
    def of(rows: pa.RecordBatch, fields: Sequence[Field]) -> SortedKeys:
        """The keys of rows."""
        encoded = encode_key_bytes([rows.column(field.name) for field in fields], [field.type for field in fields])
        varies = any(isinstance(field.type, Atomic) and field.type.kind in (*STRINGS, *BINARIES) for field in fields)
        return SortedKeys(encoded, None if varies else _numbers(encoded))

    def __len__(self) -> int:
        return len(self.encoded)

    def up_to(self, count: int) -> SortedKeys:
        """The first ones."""
        return SortedKeys(self.encoded.slice(0, count), None if self.numbers is None else self.numbers[:count])

    def after(self, count: int) -> SortedKeys:
        """Those behind the first ones."""
        return SortedKeys(self.encoded.slice(count), None if self.numbers is None else self.numbers[count:])

    def count_up_to(self, other: SortedKeys) -> int:
        """How many of these keys are not greater than the last of others."""
        if self.numbers is not None and other.numbers is not None:
            return int(np.searchsorted(self.numbers, other.numbers[-1], side="right"))
        return int(pc.sum(pc.less_equal(self.encoded, other.encoded[-1])).as_py() or 0)

    def places_in(self, other: SortedKeys) -> NDArray[np.int64]:
        """For each key its place among others, which are distinct, -1 where it is not there."""
        if not len(self) or not len(other):
            return np.full(len(self), -1, np.int64)
        if self.numbers is None or other.numbers is None:
            found = pc.index_in(self.encoded, value_set=other.encoded)
            return np.asarray(pc.fill_null(found, -1).to_numpy(zero_copy_only=False), np.int64)
        places = np.searchsorted(other.numbers, self.numbers)
        places[places == len(other)] = 0
        return np.where(other.numbers[places] == self.numbers, places, -1)


def _numbers(encoded: pa.Array) -> NDArray[np.uint64] | None:
    offsets = np.frombuffer(encoded.buffers()[1], np.int64)[encoded.offset : encoded.offset + len(encoded) + 1]
    widths = np.diff(offsets)
    if not len(widths) or widths.min() != widths.max() or not 0 < widths[0] <= _WIDTH:
        return None
    padded = np.zeros((len(encoded), _WIDTH), np.uint8)
    stored = np.frombuffer(encoded.buffers()[2], np.uint8)[offsets[0] : offsets[-1]]
    padded[:, _WIDTH - int(widths[0]) :] = stored.reshape(len(encoded), int(widths[0]))
    return padded.view(">u8").ravel().astype(np.uint64)
