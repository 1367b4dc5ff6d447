"""Encode many Roaring bitmaps at once, as `deletion_vectors` lays one out: for indexes with a bitmap for each value.

A value has few rows as a rule, so that what is done for each bitmap alone costs more than its bytes. Here every step is done for
the containers of all bitmaps together; dense containers, of which each has thousands of rows, are packed one by one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lakelet.format.index.deletion_vectors import (
    ARRAY_LIMIT,
    BITMAP_BYTES,
    CONTAINER_SPAN,
    CONTAINERS_WITH_OFFSETS,
    COOKIE,
    RUN_COOKIE,
    Positions,
)

_U16, _U32 = 2, 4
_RUN_BYTES = 4
Bytes = NDArray[np.uint8]


def encode_bitmaps(rows: Positions, starts: Positions) -> tuple[Bytes, Positions]:
    """The bitmaps of groups of ascending numbers of 32 bits, one after the other, and where each ends. A group begins at each of
    `starts`; none is empty."""
    if not len(starts):
        return np.empty(0, np.uint8), np.empty(0, np.int64)
    containers = _Containers(rows, starts)
    groups, own = containers.groups, containers.group
    has_run = np.logical_or.reduceat(containers.is_run, groups)
    counts = _lengths(groups, len(own))
    front = np.where(has_run, _U32 + (counts + 7) // 8, 2 * _U32)
    has_offsets = ~has_run | (counts >= CONTAINERS_WITH_OFFSETS)
    heads = front + 2 * _U16 * counts + np.where(has_offsets, _U32 * counts, 0)
    sizes = heads + np.add.reduceat(containers.sizes, groups)
    ends = np.cumsum(sizes)
    begins = ends - sizes
    out = np.zeros(int(ends[-1]), np.uint8)
    _put(out, begins, np.where(has_run, RUN_COOKIE | (counts - 1) << 16, COOKIE), _U32)
    _put(out, begins[~has_run] + _U32, counts[~has_run], _U32)
    number = np.arange(len(own)) - groups[own]
    with_runs = np.flatnonzero(containers.is_run)
    flags = begins[own[with_runs]] + _U32 + number[with_runs] // 8
    np.bitwise_or.at(out, flags, np.left_shift(1, number[with_runs] % 8).astype(np.uint8))
    at = begins[own] + front[own] + 2 * _U16 * number
    _put(out, at, rows[containers.begins] >> 16, _U16)
    _put(out, at + _U16, containers.counts - 1, _U16)
    before = np.cumsum(containers.sizes) - containers.sizes
    inside = heads[own] + before - before[groups][own]
    listed = has_offsets[own]
    _put(out, (begins + front + 2 * _U16 * counts)[own][listed] + _U32 * number[listed], inside[listed], _U32)
    containers.write(out, begins[own] + inside)
    return out, ends


class _Containers:
    """The containers of all groups: where each begins in the rows, its group, its form and its size."""

    def __init__(self, rows: Positions, starts: Positions) -> None:
        is_first = np.zeros(len(rows), np.bool_)
        is_first[starts] = True
        begins_one = is_first | (np.diff(rows >> 16, prepend=-1) != 0)
        self._rows = rows
        self.begins = np.flatnonzero(begins_one)
        self._runs = np.flatnonzero(begins_one | (np.diff(rows, prepend=-2) != 1))
        self.counts = _lengths(self.begins, len(rows))
        self._first_run = np.searchsorted(self._runs, self.begins)
        self._run_counts = _lengths(self._first_run, len(self._runs))
        plain = np.where(self.counts <= ARRAY_LIMIT, _U16 * self.counts, BITMAP_BYTES)
        by_runs = _U16 + _RUN_BYTES * self._run_counts
        self.is_run = by_runs < plain
        self.sizes = np.where(self.is_run, by_runs, plain)
        # The first container of each group, and the group of each container.
        self.groups = np.searchsorted(self.begins, starts)
        self.group = np.searchsorted(starts, self.begins, side="right") - 1

    def write(self, out: Bytes, at: Positions) -> None:
        """Write the containers to their places."""
        low = self._rows & (CONTAINER_SPAN - 1)
        is_array = ~self.is_run & (self.counts <= ARRAY_LIMIT)
        chosen = np.flatnonzero(np.repeat(is_array, self.counts))
        own = np.repeat(np.arange(len(self.begins)), self.counts)[chosen]
        _put(out, at[own] + _U16 * (chosen - self.begins[own]), low[chosen], _U16)
        lengths = _lengths(self._runs, len(low))
        of_runs = np.repeat(np.arange(len(self.begins)), self._run_counts)
        runs = np.flatnonzero(self.is_run[of_runs])
        own = of_runs[runs]
        _put(out, at[self.is_run], self._run_counts[self.is_run], _U16)
        places = at[own] + _U16 + _RUN_BYTES * (runs - self._first_run[own])
        _put(out, places, low[self._runs[runs]], _U16)
        _put(out, places + _U16, lengths[runs] - 1, _U16)
        for place in np.flatnonzero(~self.is_run & ~is_array).tolist():
            begin = int(self.begins[place])
            bits = np.zeros(CONTAINER_SPAN, np.uint8)
            bits[low[begin : begin + int(self.counts[place])]] = 1
            out[at[place] : at[place] + BITMAP_BYTES] = np.packbits(bits, bitorder="little")


def _lengths(begins: Positions, end: int) -> Positions:
    """From each beginning to the next, and from the last to the end."""
    return np.diff(np.append(begins, end))


def _put(out: Bytes, at: Positions, values: Positions, width: int) -> None:
    """Write numbers of some bytes, the least first, to places."""
    written = values.astype(f"<u{width}").view(np.uint8).reshape(-1, width)
    out[at[:, None] + np.arange(width)] = written
