"""The loops of `winners` and `sort_fold` that numba compiles; each has a twin in numpy there.

Rows are numbers into arrays that hold the rows of all runs. A row's head is 64 bits of its key, from the first bit on in
which any two keys differ: rows whose heads differ compare like their heads, and heads travel with the rows, so that a union
reads memory in order and looks at whole keys only where heads are equal. Indices are unsigned: those that may count from
the end cost a branch each.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lakelet.format.compiled.compiled_loop import compiled_loop

Words = NDArray[np.uint64]
Heads = NDArray[np.uint64]
RowNumbers = NDArray[np.int32]
Counts = NDArray[np.int64]

SAVED_BY_UNION = 10.0
SAVED_BY_RADIX = 5.0


_WORDS = "Array(uint64, 2, 'C', readonly=True)"
_HEADS = "Array(uint64, 1, 'C', readonly=True)"
_ROWS = "Array(int32, 1, 'C', readonly=True)"
_SIDES = f"{_HEADS}, {_ROWS}, {_HEADS}, {_ROWS}, uint64[::1], int32[::1], int64[::1]"


@compiled_loop(
    f"void({_WORDS}, uint64, uint64, {_HEADS}, uint64[::1], int64[::1])",
    saved_ns_per_byte=SAVED_BY_UNION,
)
def heads_loop(words: Words, word: int, shift: int, example: Heads, heads: Heads, counts: Counts) -> None:
    """The head of every row, which starts `shift` bits into a word, unless there is no place for heads.

    Counts rows that are equal to and less than the one before, and marks whether a row differs from `example` behind its
    head.
    """
    width = np.uint64(words.shape[1])
    one = np.uint64(1)
    below = (one << (np.uint64(64) - shift)) - one if shift else np.uint64(0)
    equal = less = 0
    behind = False
    for row in range(np.uint64(words.shape[0])):
        if heads.shape[0]:
            head = words[row, word] << shift
            if shift and word + one < width:
                head |= words[row, word + one] >> (np.uint64(64) - shift)
                behind = behind or bool((words[row, word + one] ^ example[word + one]) & below)
            heads[row] = head
            if not behind:
                for place in range(width):
                    if place > word + np.uint64(shift != np.uint64(0)):
                        behind = behind or words[row, place] != example[place]
        if row:
            order = 0
            for place in range(width):
                before, after = words[row - one, place], words[row, place]
                if before != after:
                    order = 1 if before < after else -1
                    break
            equal += order == 0
            less += order < 0
    counts[0] = equal
    counts[1] = less
    if behind:
        counts[2] = 1


@compiled_loop(
    f"void({_SIDES})",
    saved_ns_per_byte=SAVED_BY_UNION,
)
def newer_wins_loop(
    newer: Heads,
    newer_rows: RowNumbers,
    older: Heads,
    older_rows: RowNumbers,
    heads: Heads,
    rows: RowNumbers,
    counts: Counts,
) -> None:
    """The union of two runs whose heads are whole keys, the newer run's row where both have a key. Without branches."""
    i = j = k = np.uint64(0)
    newer_count, older_count = np.uint64(newer.shape[0]), np.uint64(older.shape[0])
    while i < newer_count and j < older_count:
        a, b = newer[i], older[j]
        take = a <= b
        heads[k] = a if take else b
        rows[k] = newer_rows[i] if take else older_rows[j]
        i += np.uint64(take)
        j += np.uint64(b <= a)
        k += np.uint64(1)
    while i < newer_count:
        heads[k] = newer[i]
        rows[k] = newer_rows[i]
        i += np.uint64(1)
        k += np.uint64(1)
    while j < older_count:
        heads[k] = older[j]
        rows[k] = older_rows[j]
        j += np.uint64(1)
        k += np.uint64(1)
    counts[0] = np.int64(k)


@compiled_loop(
    f"void({_WORDS}, uint64, {_WORDS}, Array(int64, 1, 'C', readonly=True), boolean, {_SIDES})",
    saved_ns_per_byte=SAVED_BY_UNION,
)
def compared_loop(
    words: Words,
    word: int,
    versions: Words,
    sequences: NDArray[np.int64],
    newer_wins: bool,
    newer: Heads,
    newer_rows: RowNumbers,
    older: Heads,
    older_rows: RowNumbers,
    heads: Heads,
    rows: RowNumbers,
    counts: Counts,
) -> None:
    """The union of two runs in which rows with equal heads are compared: their keys from `word` on, then their versions,
    sequences and numbers unless the newer run always wins."""
    one = np.uint64(1)
    width, version_width = np.uint64(words.shape[1]), np.uint64(versions.shape[1])
    i = j = k = np.uint64(0)
    newer_count, older_count = np.uint64(newer.shape[0]), np.uint64(older.shape[0])
    while i < newer_count and j < older_count:
        a, b = newer[i], older[j]
        if a != b:
            take = a < b
            heads[k] = a if take else b
            rows[k] = newer_rows[i] if take else older_rows[j]
            i += np.uint64(take)
            j += np.uint64(not take)
            k += one
            continue
        left, right = np.uint64(newer_rows[i]), np.uint64(older_rows[j])
        order = 0
        for place in range(word, width):
            x, y = words[left, place], words[right, place]
            if x != y:
                order = -1 if x < y else 1
                break
        won = order <= 0
        if order == 0 and not newer_wins:
            decided = False
            for place in range(version_width):
                x, y = versions[left, place], versions[right, place]
                if x != y:
                    won = bool(x > y)
                    decided = True
                    break
            if not decided:
                s, t = sequences[left], sequences[right]
                won = bool(s > t or (s == t and left > right))
        heads[k] = a
        rows[k] = newer_rows[i] if won else older_rows[j]
        i += np.uint64(order <= 0)
        j += np.uint64(order >= 0)
        k += one
    while i < newer_count:
        heads[k] = newer[i]
        rows[k] = newer_rows[i]
        i += one
        k += one
    while j < older_count:
        heads[k] = older[j]
        rows[k] = older_rows[j]
        j += one
        k += one
    counts[0] = np.int64(k)


@compiled_loop("void(uint64[::1], uint64[::1], uint64, uint64, uint64)", saved_ns_per_byte=SAVED_BY_RADIX)
def radix_loop(values: Words, scratch: Words, low: int, digit: int, passes: int) -> None:
    """Sorts by `passes` digits of `digit` bits from bit `low` on, stable; the last pass leaves the result in `scratch` if
    their number is odd, else in `values`."""
    size = np.uint64(1) << digit
    mask = size - np.uint64(1)
    count = np.uint64(values.shape[0])
    counts = np.zeros((passes, size), np.uint64)
    for i in range(count):
        value = values[i] >> low
        for turn in range(passes):
            counts[turn, value & mask] += np.uint64(1)
            value >>= digit
    source, target = values, scratch
    for turn in range(passes):
        total = np.uint64(0)
        for bucket in range(size):
            held = counts[turn, bucket]
            counts[turn, bucket] = total
            total += held
        shift = low + turn * digit
        for i in range(count):
            value = source[i]
            bucket = (value >> shift) & mask
            target[counts[turn, bucket]] = value
            counts[turn, bucket] += np.uint64(1)
        source, target = target, source


@compiled_loop(
    f"void({_WORDS}, int64[::1], uint64[::1], uint64[::1], uint64[::1], uint64[::1])",
    saved_ns_per_byte=SAVED_BY_RADIX,
)
def gather_bits_loop(words: Words, places: Counts, rights: Words, masks: Words, lefts: Words, out: Words) -> None:
    """Adds to each of `out` bits of its row: of the word `places[s]`, moved right, masked, and moved left, for every s."""
    block = np.uint64(512)
    held = np.empty(block, np.uint64)
    count = np.uint64(words.shape[0])
    for begin in range(np.uint64(0), count, block):
        size = min(block, count - begin)
        loaded = np.int64(-1)
        for s in range(np.uint64(places.shape[0])):
            place = np.uint64(places[s])
            if places[s] != loaded:
                for i in range(size):
                    held[i] = words[begin + i, place]
                loaded = places[s]
            right, mask, left = rights[s], masks[s], lefts[s]
            for i in range(size):
                out[begin + i] |= ((held[i] >> right) & mask) << left
