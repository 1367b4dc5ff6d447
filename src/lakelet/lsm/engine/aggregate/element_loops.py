"""The compiled loop of functions whose values are lists of elements: arrays, maps, tokens of text.

A value is the list of the numbers of its elements in the column's flattened child, so that a function moves numbers and the
elements are fetched once, for the results. Which elements are equal is decided before: equal ones have the same code.

    COLLECT          arrays, one behind the other
    DISTINCT         the same, each element once
    DISTINCT_AS_IS   the same, where the first array may hold an element several times
    TEXTS            texts, one behind the other, the older first
    TOKENS           the same, of each newer text the tokens that the older one lacks; those that are empty have a negative code
    ENTRIES          maps: of each key the newest entry
    TIMED            maps: of each key the entry with the greatest rank, NO_TIME never, NO_VALUE removes the key
    ROWS             arrays of rows, one behind the other, up to a limit; rows that are NULL have a negative code
    KEYED_ROWS       the same, of each key the newest row
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lakelet.format.compiled.compiled_loop import CompiledLoop
from lakelet.lsm.engine.aggregate.row_actions import ADD, ADD_OLDER, SET, SET_RETRACT, SKIP, Actions

Integers = NDArray[np.int64]
Bytes = NDArray[np.uint8]
# Integers of the interpreter and of machine code alike.
Number = Any

COLLECT, DISTINCT, DISTINCT_AS_IS, TEXTS, TOKENS, ENTRIES, TIMED, ROWS, KEYED_ROWS = range(9)
NO_TIME, NO_VALUE = -1, -2


def _appended(held: Integers, count: Number, given: Integers, extra: Number, codes: Integers, limit: Number) -> Number:
    """Append up to `limit` elements whose code is not negative, and return the number of all."""
    for place in range(extra):
        if limit == 0:
            break
        if codes[given[place]] >= 0:
            held[count] = given[place]
            count += 1
            limit -= 1
    return count


def _noted(
    function: Number, held: Integers, count: Number, codes: Integers, slots: Integers, stamps: Integers, epoch: Number
) -> Number:
    """Note where each code is held, keep it once as the function demands, and return the number of elements that are left."""
    kept = 0
    for place in range(count):
        element = held[place]
        code = codes[element]
        if code < 0 and function != TOKENS:
            continue
        if code >= 0 and function not in (TOKENS, DISTINCT_AS_IS) and stamps[code] == epoch:
            if function != DISTINCT:
                held[slots[code]] = element
            continue
        if code >= 0:
            stamps[code] = epoch
            slots[code] = kept
        held[kept] = element
        kept += 1
    return kept


def _replaces(function: Number, known: Number, element: Number, before: Number, ranks: Integers) -> Number:
    """Whether an element is held from now on, in place of the one that was before if its code is known."""
    if function in (DISTINCT, DISTINCT_AS_IS, TOKENS):
        return not known
    if function != TIMED:
        return True
    return ranks[element] != NO_TIME and (not known or ranks[element] > ranks[before])


def _added(
    function: Number,
    limit: Number,
    held: Integers,
    count: Number,
    given: Integers,
    extra: Number,
    codes: Integers,
    ranks: Integers,
    slots: Integers,
    stamps: Integers,
    epoch: Number,
) -> Number:
    """Add the elements of a newer value to those that are held, and return the number of all."""
    if function in (COLLECT, TEXTS):
        for place in range(extra):
            held[count + place] = given[place]
        return count + extra
    if function in (ROWS, KEYED_ROWS):
        if count >= limit:
            return count
        limit -= count
        extra = _appended(given, 0, given, extra, codes, limit)
    if function == ROWS:
        return _appended(held, _appended(held, 0, held, count, codes, count), given, extra, codes, extra)
    count = _noted(function, held, count, codes, slots, stamps, epoch)
    holes = False
    for place in range(extra):
        element = given[place]
        code = codes[element]
        if code < 0:
            continue
        known = stamps[code] == epoch
        if function == TIMED and ranks[element] == NO_VALUE:
            if known:
                held[slots[code]] = -1
                stamps[code] = 0
                holes = True
        elif _replaces(function, known, element, held[slots[code]] if known else element, ranks):
            if not known:
                stamps[code] = epoch
                slots[code] = count
                count += 1
            held[slots[code]] = element
    if not holes:
        return count
    kept = 0
    for place in range(count):
        if held[place] >= 0:
            held[kept] = held[place]
            kept += 1
    return kept


def _retracted(
    function: Number,
    held: Integers,
    count: Number,
    given: Integers,
    extra: Number,
    codes: Integers,
    slots: Integers,
    stamps: Integers,
    epoch: Number,
) -> Number:
    """Take the elements of a value back from those that are held, and return the number that is left."""
    is_array = function in (COLLECT, DISTINCT, DISTINCT_AS_IS)
    if function == ROWS:
        count = _appended(held, 0, held, count, codes, count)
    elif not is_array:
        count = _noted(function, held, count, codes, slots, stamps, epoch)
    # The next epoch counts what is taken back: one element of an array for each, else all that are equal.
    epoch += 1
    for place in range(extra):
        code = codes[given[place]]
        if code < 0:
            continue
        if stamps[code] != epoch:
            stamps[code] = epoch
            slots[code] = 0
        slots[code] += 1
    kept = 0
    for place in range(count):
        code = codes[held[place]]
        if stamps[code] == epoch and slots[code] > 0:
            slots[code] -= 1 if is_array else 0
            continue
        held[kept] = held[place]
        kept += 1
    return kept


def _elements(
    function: int,
    limit: int,
    starts: Integers,
    ends: Integers,
    actions: Actions,
    valid: Bytes,
    begins: Integers,
    codes: Integers,
    ranks: Integers,
    found: Integers,
    sizes: Integers,
    present: Bytes,
) -> None:
    """The elements of each key's value, one key behind the other in `found`, and their numbers. The elements of row r are those
    from `begins[r]` to `begins[r + 1]`."""
    spare, older = np.empty(len(codes), np.int64), np.empty(len(codes), np.int64)
    stamps, slots = np.zeros(len(codes) + 1, np.int64), np.zeros(len(codes) + 1, np.int64)
    unites = function in (DISTINCT, DISTINCT_AS_IS)
    epoch, at = 1, 0
    for key in range(starts.shape[0]):
        held = found[at:]
        count, has = 0, False
        for row in range(starts[key], ends[key]):
            action = actions[row]
            if action == SKIP:
                continue
            epoch += 2
            begin = begins[row]
            extra = begins[row + 1] - begin if valid[row] else 0
            replaces = action in (SET, SET_RETRACT)
            adds = action in (ADD, ADD_OLDER)
            if adds and not valid[row] and not (unites and has):
                continue
            if replaces or (adds and ((not has and not unites) or (function == TOKENS and count == 0))):
                has = valid[row] != 0
                count = extra
                for place in range(extra):
                    held[place] = begin + place
                if action != SET_RETRACT:
                    continue
            for place in range(extra):
                spare[place] = begin + place
            if not adds:
                if has and valid[row] and (extra > 0 or function in (ROWS, KEYED_ROWS)):
                    count = _retracted(function, held, count, spare, extra, codes, slots, stamps, epoch)
                continue
            has = True
            if action == ADD_OLDER and function not in (COLLECT, DISTINCT, DISTINCT_AS_IS):
                if function == TOKENS and extra == 0:
                    continue
                for place in range(count):
                    older[place] = held[place]
                for place in range(extra):
                    held[place] = spare[place]
                count = _added(function, limit, held, extra, older, count, codes, ranks, slots, stamps, epoch)
            else:
                count = _added(function, limit, held, count, spare, extra, codes, ranks, slots, stamps, epoch)
        sizes[key] = count
        present[key] = 1 if has else 0
        at += count


_LONGS = "Array(int64, 1, 'C', readonly=True)"
_BYTES = "Array(uint8, 1, 'C', readonly=True)"
_SAVED_NS = 2000.0
_INNER: tuple[Callable[..., Any], ...] = (_appended, _noted, _replaces, _added, _retracted)

element_loop = CompiledLoop(
    _elements,
    f"void(int64, int64, {_LONGS}, {_LONGS}, {_BYTES}, {_BYTES}, {_LONGS}, {_LONGS}, {_LONGS}, "
    "int64[::1], int64[::1], uint8[::1])",
    _SAVED_NS,
    inner=_INNER,
)


def _merged_rows(
    starts: Integers,
    ends: Integers,
    actions: Actions,
    valid: Bytes,
    begins: Integers,
    codes: Integers,
    members: Bytes,
    found: NDArray[np.int64],
    sizes: Integers,
    present: Bytes,
) -> None:
    """Arrays of rows of which those of one key are merged, member by member: the newest that is not NULL.

    `members[f, e]` says whether element e has a value for the member f. `found[:, f]` gets the element from which each row of
    a result has the member f, and in a last column one element of it that says whether the row is NULL.
    """
    width = members.shape[0]
    older = np.empty((len(codes), width + 1), np.int64)
    stamps, slots = np.zeros(len(codes) + 1, np.int64), np.zeros(len(codes) + 1, np.int64)
    epoch, at = 0, 0
    for key in range(starts.shape[0]):
        count, has = 0, False
        for row in range(starts[key], ends[key]):
            action = actions[row]
            if action == SKIP or not (valid[row] or action == SET):
                continue
            begin = begins[row]
            extra = begins[row + 1] - begin if valid[row] else 0
            replaces = action == SET or not has
            # The rows of the older value first, then those of the newer one.
            held = 0 if replaces else count
            for place in range(held):
                for member in range(width + 1):
                    older[place, member] = found[at + place, member]
            has = has or valid[row] != 0
            if action == SET:
                has = valid[row] != 0
            first = held if action == ADD else extra
            epoch += 1
            count = 0
            for place in range(held + extra):
                is_held = (place < first) == (action == ADD)
                own = place if place < first else place - first
                whole = older[own, width] if is_held else begin + own
                code = codes[whole]
                if code < 0 and not replaces:
                    continue
                is_new = replaces or stamps[code] != epoch
                if is_new and not replaces:
                    stamps[code] = epoch
                    slots[code] = count
                slot = at + (count if is_new else slots[code])
                for member in range(width + 1):
                    source = older[own, member] if is_held else whole
                    if is_new or (member < width and members[member, source]):
                        found[slot, member] = source
                count += 1 if is_new else 0
        sizes[key] = count
        present[key] = 1 if has else 0
        at += count


row_loop = CompiledLoop(
    _merged_rows,
    f"void({_LONGS}, {_LONGS}, {_BYTES}, {_BYTES}, {_LONGS}, {_LONGS}, Array(uint8, 2, 'C', readonly=True), "
    "int64[:, ::1], int64[::1], uint8[::1])",
    _SAVED_NS,
)
