"""Key ranges of files or row groups, and which of many keys can be in each.

Ranges are conservative: an unknown one may hold all keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakelet.lsm.key_bytes import encode_key_bytes
from lakelet.model.types import DataType
from lakelet.read.lookup.key_codes import Codes, KeyCoder, SingleKey

Places = NDArray[np.int64]


class WantedKeys:
    """The keys of a lookup, by column, and their codes in every width that was used."""

    def __init__(self, columns: Sequence[pa.Array], types: Sequence[DataType]) -> None:
        self.columns = tuple(columns)
        self.types = tuple(types)
        self._encoded: list[bytes] | None = None
        self._codes: dict[KeyCoder, Codes] = {}
        self._past: dict[KeyCoder, NDArray[np.bool_] | None] = {}
        self._sorted: dict[KeyCoder, tuple[Codes, Places]] = {}

    def __len__(self) -> int:
        return len(self.columns[0])

    @property
    def encoded(self) -> list[bytes]:
        """The keys as bytes, for sources that are no files."""
        if self._encoded is None:
            self._encoded = encode_key_bytes(self.columns, self.types).to_pylist()
        return self._encoded

    def codes(self, coder: KeyCoder) -> Codes:
        """The codes of all keys."""
        if coder not in self._codes:
            self._codes[coder] = coder.encode(self.columns)
        return self._codes[coder]

    def past(self, coder: KeyCoder) -> NDArray[np.bool_] | None:
        """Which keys are greater than their codes say; None where none is."""
        if coder not in self._past:
            self._past[coder] = coder.past(self.columns)
        return self._past[coder]

    def in_order(self, coder: KeyCoder) -> tuple[Codes, Places]:
        """The codes in order, and the place of the key of each."""
        if coder not in self._sorted:
            codes = self.codes(coder)
            order = np.argsort(codes, kind="stable")
            self._sorted[coder] = (codes[order], order)
        return self._sorted[coder]


@dataclass(frozen=True, slots=True)
class KeyBounds:
    """The least and the greatest code of each range; `known` says which are."""

    coder: KeyCoder
    lows: Codes
    highs: Codes
    known: NDArray[np.bool_]

    @staticmethod
    def of(
        lows: Sequence[pa.Array], highs: Sequence[pa.Array], types: Sequence[DataType], known: NDArray[np.bool_]
    ) -> KeyBounds:
        """Ranges given by the columns of their ends; where a range is not known its ends are ignored, yet not NULL."""
        count = len(known)
        both = [pa.concat_arrays([low, high]) for low, high in zip(lows, highs, strict=True)]
        coder = KeyCoder.of(both, types)
        codes = coder.encode(both)
        return KeyBounds(coder, codes[:count], codes[count:], known)

    def candidates(self, keys: WantedKeys) -> Iterator[tuple[int, Places]]:
        """Every range that some of the keys can be in, with the places of those keys."""
        codes, order = keys.in_order(self.coder)
        begins = np.where(self.known, np.searchsorted(codes, self.lows, side="left"), 0)
        ends = np.where(self.known, np.searchsorted(codes, self.highs, side="right"), len(codes))
        for number in np.flatnonzero(begins < ends).tolist():
            yield number, order[begins[number] : ends[number]]

    def holding(self, key: SingleKey) -> list[int]:
        """Every range that the key can be in."""
        code = key.code(self.coder)
        inside = ((self.lows <= code) & (self.highs >= code)) | ~self.known
        found: list[int] = inside.nonzero()[0].tolist()
        return found
