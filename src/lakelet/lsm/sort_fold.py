"""Sort encoded keys and pick the winning row per key.

Used by the write buffer before it is flushed, and by `winners` as a fallback. Rows are numbers: only their words are compared,
and nothing else of a row is touched.

Bits that are the same in all rows decide nothing. The others are taken from the front, as many as fit into one uint64
beside the row's number, so that sorting those numbers sorts the rows, and equal rows stay in order of arrival:

    bits of the key | row number

Rows that are equal so far are sorted again by the bits that follow, behind the number of their group; there are few,
or they are one key:

    group | bits of the key | place
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lakelet.lsm.key_words import Words
from lakelet.lsm.union_kernels import gather_bits_loop, radix_loop

Rows = NDArray[np.int64]
Flags = NDArray[np.bool_]

_WORD = 64
_BLOCK = 8192
_DIGIT_BITS = 11
_LEXSORT_BELOW = 4096
"""So few rows are sorted by all words at once."""


def sort_and_fold(words: Words, versions: Words | None, *, first: bool = False) -> Rows:
    """The winning row of each key, in key order: the greatest version, then the last arrival; with `first` the first arrival."""
    rows = np.arange(len(words))
    begins, ascending = neighbours(words)
    if not ascending:
        begins = np.zeros(len(words), np.bool_)
        begins[:1] = True
        rows, begins = refine(rows, begins, words)
    return rows[begins] if first else last_of_groups(rows, begins, versions)


def sort_groups(words: Words, versions: Words | None) -> tuple[Rows, Flags]:
    """All rows in key order, those of a key by version and arrival, and which of them begin a key."""
    rows = np.arange(len(words))
    begins, ascending = neighbours(words)
    if not ascending:
        begins = np.zeros(len(words), np.bool_)
        begins[:1] = True
        rows, begins = refine(rows, begins, words)
    if versions is not None and versions.shape[1]:
        rows, _ = refine(rows, begins, versions)
    return rows, begins


def last_of_groups(rows: Rows, first: Flags, versions: Words | None) -> Rows:
    """Of each group of rows the one with the greatest version, ties to the later one.

    `first` marks where groups begin; `versions` are found by row number.
    """
    if first.all():
        return rows
    if versions is not None and versions.shape[1]:
        rows, _ = refine(rows, first, versions)
    ends = np.append(first[1:], True)
    won: Rows = rows[ends]
    return won


def neighbours(words: Words) -> tuple[Flags, bool]:
    """Which rows differ from the row before, and whether none is less than it; if one is, the first result is nothing."""
    first = np.ones(len(words), np.bool_)
    if len(words) < 2:
        return first, True
    before, after = words[:-1, 0], words[1:, 0]
    if (after < before).any():
        return first, False
    equal = np.flatnonzero(after == before)
    for word in range(1, words.shape[1]):
        before, after = words[equal, word], words[equal + 1, word]
        if (after < before).any():
            return first, False
        equal = equal[after == before]
    first[equal + 1] = False
    return first, True


def refine(rows: Rows, first: Flags, words: Words) -> tuple[Rows, Flags]:
    """The rows sorted by words within their groups, equal ones in the order they had, and the groups that makes."""
    if len(rows) < 2:
        return rows, first
    word, left = 0, None
    # Of as many rows as there are words, in ascending order, none is left out: there is nothing to fetch.
    if len(words) == len(rows) and not first[1:].any() and bool((rows[1:] > rows[:-1]).all()):
        segments, word, left = _next_segments(words, word, left, _WORD - (len(rows) - 1).bit_length())
        rows, first = _sorted_groups(None, words, segments)
    else:
        rows, first = rows.copy(), first.copy()
    while word < words.shape[1]:
        tied = ~first
        tied[:-1] |= tied[1:]
        places = np.flatnonzero(tied)
        places, part = _unequal(places, words[rows[places]], first)
        if not len(places):
            break
        groups = np.cumsum(first[places]) - 1
        room = _WORD - (len(places) - 1).bit_length() - int(groups[-1]).bit_length()
        if len(places) <= _LEXSORT_BELOW or room < 1:
            order = np.lexsort((*part.T[::-1], groups))
            ordered = part[order]
            fresh = first[places]
            fresh[1:] |= (ordered[1:] != ordered[:-1]).any(axis=1)
            word = words.shape[1]
        else:
            segments, word, left = _next_segments(part, word, left, room)
            order, fresh = _sorted_groups(groups, part, segments)
        rows[places], first[places] = rows[places][order], fresh
    return rows, first


def _unequal(places: Rows, part: Words, first: Flags) -> tuple[Rows, Words]:
    """Drop the groups of which all rows are equal: they are in order."""
    if not len(places):
        return places, part
    begins = first[places]
    differs = np.zeros(len(places), np.bool_)
    differs[1:] = (part[1:] != part[:-1]).any(axis=1)
    differs &= ~begins
    groups = np.cumsum(begins) - 1
    wanted = np.zeros(int(groups[-1]) + 1, np.bool_)
    wanted[groups[differs]] = True
    if wanted.all():
        return places, part
    keep = wanted[groups]
    return places[keep], part[keep]


@dataclass(frozen=True, slots=True)
class _Segment:
    """A range of bits in a word: shifted right and masked they are a number."""

    word: int
    right: int
    size: int


def _next_segments(part: Words, word: int, left: int | None, room: int) -> tuple[list[_Segment], int, int | None]:
    """The bits that follow in which rows differ, at most `room`, and where to go on.

    `left` are the bits of the current word that are still to be taken, None for all of them.
    """
    segments: list[_Segment] = []
    while word < part.shape[1] and room:
        values = part[:, word]
        varying = int(np.bitwise_or.reduce(values) ^ np.bitwise_and.reduce(values))
        if left is not None:
            varying &= left
        while varying and room:
            top = varying.bit_length()
            # The run of ones at the top, cut to what there is room for.
            size = min(top - (~varying & ((1 << top) - 1)).bit_length(), room)
            segments.append(_Segment(word, top - size, size))
            left = (1 << (top - size)) - 1
            varying &= left
            room -= size
        if varying:
            return segments, word, left
        word, left = word + 1, None
    return segments, word, left


def _sorted_groups(groups: Rows | None, part: Words, segments: list[_Segment]) -> tuple[Rows, Flags]:
    """The order of rows by group, if there are several, and bits, stable, and where a new group or other bits begin."""
    count = len(part)
    low = (count - 1).bit_length()
    size = sum(segment.size for segment in segments)
    packed = np.arange(count, dtype=np.uint64)
    if groups is not None:
        packed |= groups.astype(np.uint64) << np.uint64(low + size)
    _add_bits(packed, part, segments, low + size)
    packed = _sorted_above(packed, low, size + (0 if groups is None else int(groups[-1]).bit_length()))
    order = (packed & np.uint64((1 << low) - 1)).view(np.int64)
    packed >>= np.uint64(low)
    first = np.ones(count, np.bool_)
    np.not_equal(packed[1:], packed[:-1], out=first[1:])
    return order, first


def _add_bits(packed: NDArray[np.uint64], part: Words, segments: list[_Segment], end: int) -> None:
    """Concatenate the segments' bits, the first one just below bit `end`."""
    masks = [np.uint64((1 << segment.size) - 1) for segment in segments]
    lefts = end - np.cumsum([segment.size for segment in segments], dtype=np.int64)
    run = gather_bits_loop.for_bytes(packed.nbytes)
    if run is not None:
        words = np.array([segment.word for segment in segments], np.int64)
        rights = np.array([segment.right for segment in segments], np.uint64)
        run(part, words, rights, np.array(masks, np.uint64), lefts.astype(np.uint64), packed)
        return
    # Blocks stay in the cache.
    for at in range(0, len(packed), _BLOCK):
        block = packed[at : at + _BLOCK]
        for segment, mask, left in zip(segments, masks, lefts, strict=True):
            block |= ((part[at : at + _BLOCK, segment.word] >> np.uint64(segment.right)) & mask) << np.uint64(left)


def _sorted_above(packed: NDArray[np.uint64], low: int, size: int) -> NDArray[np.uint64]:
    """Sort values by the `size` bits from bit `low` on; the bits below ascend already."""
    run = radix_loop.for_bytes(packed.nbytes) if size else None
    if run is None:
        packed.sort()
        return packed
    passes = -(-size // _DIGIT_BITS)
    scratch = np.empty_like(packed)
    run(packed, scratch, np.uint64(low), np.uint64(-(-size // passes)), np.uint64(passes))
    return scratch if passes % 2 else packed
