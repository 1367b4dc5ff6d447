"""Find the winning row of each key over sorted runs.

The heart of the merge: keys, versions and sequences of runs go in, row numbers come out. It never touches values, kinds or
files; the caller fetches the winning rows and leaves out the retracts among them.

Runs are united two by two, halved by their rows rather than their number, so that no row moves more often than it must. Where
all sequences of one side are greater than those of the other, that side's rows win without being compared; a newer run may
hold an older row, so where ranges overlap, row sequences are compared. In numpy, all rows are sorted instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from lakelet.errors import CorruptionError
from lakelet.lsm.key_words import Words
from lakelet.lsm.sort_fold import last_of_groups, neighbours, refine, sort_and_fold
from lakelet.lsm.union_kernels import compared_loop, heads_loop, newer_wins_loop

__all__ = ["SortedRun", "sort_and_fold", "winners"]

_WORD = 64
_SIGN = np.uint64(1 << 63)
_MOST_ROWS = 2**31 - 1
_STRETCH_ROWS = 32768
_STRETCH_ROWS_PER_RUN = 2048


@dataclass(frozen=True, slots=True)
class SortedRun:
    """Rows in ascending order of their keys; several rows of a key are adjacent.

    `absent` marks rows that are left out: retracts under ignore-delete, rows that a deletion vector deletes.
    """

    words: Words
    sequences: NDArray[np.int64]
    versions: Words | None = None
    absent: NDArray[np.bool_] | None = None


def winners(runs: Sequence[SortedRun], *, ordered: bool = False) -> NDArray[np.int64]:
    """The row that wins for each key, as numbers into the concatenation of the runs in the order given.

    That of the greatest version, then the greatest sequence, then the latest run, then the latest row. In key order if
    `ordered`, else ascending. CorruptionError for a run that is not sorted.
    """
    total = sum(len(run.words) for run in runs)
    if not total:
        return np.empty(0, np.int64)
    if total > _MOST_ROWS or heads_loop.for_bytes(total * 8) is None:
        rows = _sorted(runs)
        if ordered:
            return rows
        marks = np.zeros(total, np.bool_)
        marks[rows] = True
    elif ordered:
        rows = np.empty(total, np.int64)
        return rows[: _united(runs, rows, None)]
    else:
        marks = np.zeros(total, np.bool_)
        _united(runs, None, marks)
    return np.flatnonzero(marks)


def sequence_words(run: SortedRun) -> Words:
    """Versions and sequence numbers as words that order the rows of a key."""
    sequences = (run.sequences.view(np.uint64) ^ _SIGN).reshape(-1, 1)
    return sequences if run.versions is None else np.hstack([run.versions, sequences])


def _folded(run: SortedRun, first: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The rows of one run that are present and win within it; `first` marks the first row of each key."""
    rows = np.arange(len(run.words))
    if run.absent is not None:
        # The first row of a key may be absent: the remaining rows are identified by the number of their key.
        rows = np.flatnonzero(~run.absent)
        keys = np.cumsum(first)[rows]
        first = np.ones(len(rows), np.bool_)
        np.not_equal(keys[1:], keys[:-1], out=first[1:])
    return rows if first.all() else last_of_groups(rows, first, sequence_words(run))


def require_order(ascending: bool, place: int) -> None:
    """CorruptionError for a run that is not sorted."""
    if not ascending:
        raise CorruptionError(f"rows of sorted run {place} are not in key order")


# ---------------------------------------------------------------- in numpy


def _sorted(runs: Sequence[SortedRun]) -> NDArray[np.int64]:
    rows, at = [], 0
    for place, run in enumerate(runs):
        first, ascending = neighbours(run.words)
        require_order(ascending, place)
        rows.append(_folded(run, first) + at)
        at += len(run.words)
    if len(runs) == 1:
        return rows[0]
    ranges = [sequence_range(run) for run in runs]
    order = sorted(range(len(runs)), key=lambda place: ranges[place])
    present = [ranges[place] for place in order if len(runs[place].words)]
    apart = all(older[1] < newer[0] for older, newer in pairwise(present))
    if apart and not any(run.versions is not None for run in runs):
        # In the order of their sequences, later rows win, and nothing has to be compared.
        all_rows = np.concatenate([rows[place] for place in order])
        ranks = None
    else:
        all_rows = np.concatenate(rows)
        ranks = np.concatenate([sequence_words(run) for run in runs])
    first = np.zeros(len(all_rows), np.bool_)
    first[:1] = True
    all_rows, first = refine(all_rows, first, np.concatenate([run.words for run in runs]))
    return last_of_groups(all_rows, first, ranks)


def sequence_range(run: SortedRun) -> tuple[int, int]:
    """The least and the greatest sequence of a run."""
    return (int(run.sequences.min()), int(run.sequences.max())) if len(run.sequences) else (0, 0)


# ---------------------------------------------------------------- compiled


@dataclass(frozen=True, slots=True)
class _Side:
    """One side of a union: rows in key order with their heads, one per key, and the range of their sequences."""

    heads: NDArray[np.uint64]
    rows: NDArray[np.int32]
    least: int
    greatest: int


@dataclass(frozen=True, slots=True)
class _Source:
    """A run as it enters unions: `rows` are those that take part, None for all, and `at` is the number of its first row."""

    heads: NDArray[np.uint64]
    rows: NDArray[np.int32] | None
    at: int
    least: int
    greatest: int

    def cut(self, begin: int, end: int) -> _Side:
        """The rows from place `begin` to `end`."""
        rows = np.arange(self.at + begin, self.at + end, dtype=np.int32) if self.rows is None else self.rows[begin:end]
        return _Side(self.heads[begin:end], rows, self.least, self.greatest)


@dataclass(frozen=True, slots=True)
class _Head:
    """Where the heads of all keys begin, and one key: if all are like it behind their heads, heads are whole keys."""

    word: int
    shift: int
    example: NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class _Lookup:
    """All rows' keys, versions and sequences, for rows with equal heads.

    Keys differ at the earliest in `word`; there are no `words` if heads are whole keys.
    """

    words: Words
    word: int
    versions: Words | None
    sequences: NDArray[np.int64]


def _united(runs: Sequence[SortedRun], rows: NDArray[np.int64] | None, marks: NDArray[np.bool_] | None) -> int:
    """Writes the winners to `rows`, in key order, or marks them; the number of winners."""
    shared = _shared_bits(runs)
    width = runs[0].words.shape[1]
    word, shift = divmod(min(shared, width * _WORD - 1), _WORD)
    # Equal and lesser rows of the run at hand; whether keys of any run differ behind their heads.
    counts = np.zeros(3, np.int64)
    example = next(run.words for run in runs if len(run.words))[0]
    sources, at = [], 0
    for place, run in enumerate(runs):
        if len(run.words):
            sources.append(_source(run, place, at, _Head(word, shift, example), counts))
        at += len(run.words)
    sources.sort(key=lambda source: (source.least, source.greatest))
    lookup = _lookup(runs, sources, word, exact=not counts[2])
    count = 0
    for begins, ends in pairwise(_cuts(sources)):
        cut = [source.cut(*stretch) for source, *stretch in zip(sources, begins, ends, strict=True)]
        sides = [side for side in cut if len(side.rows)]
        if not sides:
            continue
        won = _union_of(sides, lookup).rows
        if rows is not None:
            rows[count : count + len(won)] = won
        if marks is not None:
            marks[won] = True
        count += len(won)
    return count


def _shared_bits(runs: Sequence[SortedRun]) -> int:
    """How many bits all keys begin with; the runs are sorted, so the first and the last of each tell."""
    ends = [
        int.from_bytes(run.words[row].astype(">u8").tobytes(), "big")
        for run in runs
        if len(run.words)
        for row in (0, -1)
    ]
    shared: int = runs[0].words.shape[1] * _WORD - (min(ends) ^ max(ends)).bit_length()
    return shared


def _source(run: SortedRun, place: int, at: int, head: _Head, counts: NDArray[np.int64]) -> _Source:
    words = np.ascontiguousarray(run.words)
    heads = words[:, 0] if words.shape[1] == 1 else np.empty(len(words), np.uint64)
    scan = heads_loop.for_bytes(0)
    assert scan is not None
    # One word is a head as it is: bits that all keys share do no harm.
    room = heads if words.shape[1] > 1 else np.empty(0, np.uint64)
    scan(words, np.uint64(head.word), np.uint64(head.shift), head.example, room, counts)
    require_order(not counts[1], place)
    rows = None
    if counts[0] or run.absent is not None:
        first = neighbours(words)[0] if counts[0] else np.ones(len(words), np.bool_)
        folded = _folded(run, first)
        heads, rows = heads[folded], (folded + at).astype(np.int32)
    return _Source(heads, rows, at, *sequence_range(run))


def _lookup(runs: Sequence[SortedRun], sources: Sequence[_Source], word: int, *, exact: bool) -> _Lookup:
    versions = [run.versions for run in runs if run.versions is not None]
    apart = all(older.greatest < newer.least for older, newer in pairwise(sources))
    return _Lookup(
        np.empty((0, 0), np.uint64) if exact else _adjacent([run.words for run in runs]),
        0 if exact else word,
        np.concatenate(versions) if versions else None,
        np.empty(0, np.int64) if apart and not versions else np.concatenate([run.sequences for run in runs]),
    )


def _adjacent(parts: Sequence[Words]) -> Words:
    """The parts as one array: a view if they lie behind one another, as `encode_keys` makes them, else a copy."""
    filled = [part for part in parts if len(part)]
    if len(filled) == 1:
        return filled[0]
    base = filled[0].base
    follow = all(
        left.base is base
        and right.base is base
        and left.flags.c_contiguous
        and left.ctypes.data + left.nbytes == right.ctypes.data
        for left, right in pairwise(filled)
    )
    if not isinstance(base, np.ndarray) or not follow:
        return np.concatenate(filled)
    size = sum(len(part) for part in filled)
    return np.lib.stride_tricks.as_strided(filled[0], (size, filled[0].shape[1]), filled[0].strides, writeable=False)


def _cuts(sources: Sequence[_Source]) -> list[list[int]]:
    """Places at which to cut all sources, so that rows between two cuts fit into the processor's cache.

    Rows with equal heads stay together, so that each stretch of keys is merged by itself.
    """
    total = sum(len(source.heads) for source in sources)
    largest = max(sources, key=lambda source: len(source.heads)).heads
    step = len(largest) * max(_STRETCH_ROWS, len(sources) * _STRETCH_ROWS_PER_RUN) // max(total, 1)
    bounds = largest[step :: max(step, 1)] if step else largest[:0]
    places = [np.searchsorted(source.heads, bounds).tolist() for source in sources]
    return [
        [0] * len(sources),
        *(list(cut) for cut in zip(*places, strict=True)),
        [len(source.heads) for source in sources],
    ]


def _union_of(sides: Sequence[_Side], lookup: _Lookup) -> _Side:
    """The union of sides that are in order of their least sequences."""
    if len(sides) == 1:
        return sides[0]
    ends = list(accumulate(len(side.rows) for side in sides))
    middle = min(range(1, len(sides)), key=lambda place: abs(ends[place - 1] * 2 - ends[-1]))
    return _union(_union_of(sides[:middle], lookup), _union_of(sides[middle:], lookup), lookup)


def _union(older: _Side, newer: _Side, lookup: _Lookup) -> _Side:
    least, greatest = min(older.least, newer.least), max(older.greatest, newer.greatest)
    size = len(older.heads) + len(newer.heads)
    heads, rows, counts = np.empty(size, np.uint64), np.empty(size, np.int32), np.zeros(1, np.int64)
    newer_wins = lookup.versions is None and older.greatest < newer.least
    loop = newer_wins_loop if newer_wins and not lookup.words.size else compared_loop
    loop.load()
    run = loop.for_bytes(0)
    assert run is not None
    sides = (newer.heads, newer.rows, older.heads, older.rows, heads, rows, counts)
    if loop is newer_wins_loop:
        run(*sides)
    else:
        versions = np.empty((0, 0), np.uint64) if lookup.versions is None else lookup.versions
        run(lookup.words, np.uint64(lookup.word), versions, lookup.sequences, newer_wins, *sides)
    return _Side(heads[: counts[0]], rows[: counts[0]], least, greatest)
