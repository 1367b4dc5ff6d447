"""Rows grouped by key: the input of a fold engine.

    place in `order`    0  1  2  3  4  5        rows of a key are neighbours, oldest first: by `sequence.field`,
    key                 a  a  b  c  c  c        by sequence number, by arrival
    starts              ^     ^  ^
    ends                      ^  ^        ^

The rows stay where they are until a column is requested. `column` gathers all values of it in this order, once, for engines
that compute (`ufunc.reduceat` over `starts`); `pick` fetches one value for each key, for engines that choose: they work on
`valid` and `retracts` alone and move nothing but the results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lakelet.lsm.key_value_columns import VALUE_KIND
from lakelet.lsm.ordered_rows import fits_one_piece, rows_in_order
from lakelet.model.row_arrays import Kinds, Mask

Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class KeyGroups:
    """`order` are the numbers of rows in `source`, `starts` the places in `order` at which keys begin."""

    source: pa.RecordBatch
    order: Places
    starts: Places
    _gathered: dict[str, pa.Array] = field(default_factory=dict, compare=False)
    _of_source: dict[object, NDArray[np.generic]] = field(default_factory=dict, compare=False)

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def ends(self) -> Places:
        """The end (exclusive) of each key's rows."""
        return np.append(self.starts[1:], len(self.order))

    def column(self, name: str) -> pa.Array:
        """All values of a column, key by key."""
        if name not in self._gathered:
            self._gathered[name] = self.source.column(name).take(pa.array(self.order))
        return self._gathered[name]

    def pick(self, name: str, places: Places) -> pa.Array:
        """The values of a column at these places in the order, NULL where a place is negative."""
        absent = places < 0
        rows = self.order[np.where(absent, 0, places)] if absent.any() else self.order[places]
        return self.source.column(name).take(pa.array(rows, mask=absent if absent.any() else None))

    def newest(self, name: str) -> pa.Array:
        """The value of a column in the newest row of each key."""
        return self.pick(name, self.ends - 1)

    def valid(self, name: str) -> Mask:
        """Which values of a column are not NULL, key by key."""
        column = self.source.column(name)
        if not column.null_count:
            return np.ones(len(self.order), np.bool_)
        flags: Mask = self.of_source(("valid", name), lambda: pc.is_valid(column).to_numpy(zero_copy_only=False))[
            self.order
        ]
        return flags

    def of_source(self, name: object, make: Callable[[], NDArray[Any]]) -> NDArray[Any]:
        """An array with an element for each row of the source, made once for all parts that share it."""
        found = self._of_source.get(name)
        if found is None:
            found = self._of_source[name] = make()
        return found

    def last_places(self, flags: Mask) -> Places:
        """Of each key the last place that is flagged, -1 where none is."""
        places = np.maximum.accumulate(np.where(flags, np.arange(len(flags)), -1))[self.ends - 1]
        return np.where(places >= self.starts, places, -1)

    def kinds(self) -> Kinds:
        """The row kind of each row, key by key."""
        if VALUE_KIND not in self.source.schema.names:
            return np.zeros(len(self.order), np.int8)
        kinds: Kinds = self.source.column(VALUE_KIND).to_numpy()[self.order]
        return kinds

    def retracts(self) -> Mask | None:
        """Which rows are retracts, key by key; None where none is."""
        flags = (self.kinds() & 1).astype(np.bool_)
        return flags if flags.any() else None


def key_groups(rows: pa.Table, order: Places, starts: Places, batch_rows: int) -> Iterator[KeyGroups]:
    """Split the groups into parts of about a number of rows, no key in two parts."""
    cuts = _cuts(starts, len(order), batch_rows)
    if fits_one_piece(rows):
        source = pa.concat_batches(rows.to_batches()) if rows.num_rows else rows.schema.empty_table().to_batches()[0]
        shared: dict[object, NDArray[np.generic]] = {}
        for begin, end, first, last in cuts:
            yield KeyGroups(source, order[begin:end], starts[first:last] - begin, _of_source=shared)
        return
    for begin, end, first, last in cuts:
        part = pa.Table.from_batches(rows_in_order(rows, order[begin:end], batch_rows), rows.schema)
        own = np.arange(end - begin)
        yield KeyGroups(pa.concat_batches(part.to_batches()), own, starts[first:last] - begin)


def _cuts(starts: Places, total: int, batch_rows: int) -> Iterator[tuple[int, int, int, int]]:
    """Parts as ranges of places (end exclusive), and as ranges of key numbers (end exclusive)."""
    bounds = np.append(starts, total)
    first = 0
    while first < len(starts):
        begin = int(bounds[first])
        last = max(first + 1, int(np.searchsorted(bounds, begin + batch_rows, side="right")) - 1)
        yield begin, int(bounds[last]), first, last
        first = last
