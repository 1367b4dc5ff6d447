"""Choose where compaction finds the rows of some keys in a file that stays.

    many keys                                  all rows of the file, in order
    fewer, of a file looked into seldom        row groups of the data file, which are kept in memory where they have room
    few, of one that was decoded often         its lookup file, which is made then, and kept on disk (`lookup_folder`)
    few, its lookup file is there              its lookup file, whoever had it made

Costs are told in cells, values of rows: what a file takes to decode is its rows times the columns that are read, both of which
are known from metadata. To make a lookup file costs as much as to decode its data file some ten times, so it is made when as
much was spent on decoding: a file that is compacted away soon never has one, and at most twice of what was needed is spent on one
that stays. Blocks in memory cost nothing: where the columns of a file fit there, no lookup file is made. Measured in decision
0104.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from lakelet.cache.lru_cache import LruCache

# A lookup in a data file costs about as much as reading this many of its rows in order.
LOOKUP_ROWS = 16
# A key that is found in a lookup file costs about as much as decoding this many cells of a data file.
KEY_CELLS = 1_000
# To make a lookup file costs about as much as decoding each cell of its data file that often.
MAKING = 12
# One that could not be made is tried again after so many times as much.
_AGAIN = 10
_MOST_COUNTED = 100_000


def looks_up(*, keys: int, rows: int) -> bool:
    """Whether looking keys up in files with that many rows costs less than reading those in order."""
    return keys * LOOKUP_ROWS <= rows


@dataclass(frozen=True, slots=True)
class AskedFile:
    """A file in which keys are looked up: its rows, the columns that are read of it and all that it has, and how many of its
    cells this process has decoded in lookups so far."""

    rows: int
    columns: int
    all_columns: int
    decoded: int
    is_made: bool

    @property
    def making(self) -> int:
        """The cost of its lookup file."""
        return MAKING * self.rows * self.all_columns

    def by_lookup_file(self, keys: int) -> bool:
        """Whether that many keys are to be looked up in its lookup file, which is made if need be."""
        return keys * KEY_CELLS <= self.rows * self.columns and (self.is_made or self.decoded >= self.making)


class DecodedCells:
    """How many cells of data files this process has decoded to look keys up, by the names of the files."""

    def __init__(self) -> None:
        self._counts: LruCache[int] = LruCache()

    def of(self, name: Hashable) -> int:
        """The cells of a file."""
        return self._counts.get(name) or 0

    def add(self, name: Hashable, cells: int) -> None:
        """Count more of them."""
        self._counts.put(name, self.of(name) + cells, limit=_MOST_COUNTED)

    def put_off(self, name: Hashable, making: int) -> None:
        """Begin far below nothing: the lookup file, of that cost, could not be made."""
        self._counts.put(name, -_AGAIN * making, limit=_MOST_COUNTED)


DECODED = DecodedCells()
"""What this process has decoded."""
