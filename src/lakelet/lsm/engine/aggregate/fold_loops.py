"""The compiled loops of aggregate functions: row by row within each key, in the order in which Java would do it.

Sums of floating-point numbers, wrapped products and decimals that overflow depend on that order, and so does every function once
rows are taken back or arrive late in their sequence group. A loop is its own twin without numba.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lakelet.format.compiled.compiled_loop import compiled_loop
from lakelet.lsm.engine.aggregate.row_actions import (
    ADD,
    ADD_OLDER,
    RETRACT,
    RETRACT_OLDER,
    SET,
    SET_RETRACT,
    SKIP,
    Actions,
)

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]
Unsigned = NDArray[np.uint64]
Floats = NDArray[np.float64]

LAST_VALUE, LAST_NON_NULL, FIRST_VALUE, FIRST_NON_NULL, GREATEST, LEAST = range(6)
SUM, PRODUCT = range(2)
DIVIDED_BY_ZERO, OVERFLOWED = range(2)

SAVED = 1000.0
"""Nanoseconds that a byte of actions takes longer in the interpreter, about."""

_PLACES = "Array(int64, 1, 'C', readonly=True)"
_BYTES = "Array(uint8, 1, 'C', readonly=True)"
_GROUPED = f"{_PLACES}, {_PLACES}, {_BYTES}, {_BYTES}"
"""Starts and ends of keys, actions of rows, and which values are not NULL."""
_FEW = 4_000_000_000_000_000_000


@compiled_loop(
    f"void(int64, {_GROUPED}, Array(uint64, 2, 'C', readonly=True), int64[::1])",
    saved_ns_per_byte=SAVED,
)
def select_loop(
    function: int, starts: Integers, ends: Integers, actions: Actions, valid: Bytes, words: Unsigned, found: Integers
) -> None:
    """Of each key the place whose value is the result, -1 for NULL. Only GREATEST and LEAST look at `words`, by which values
    compare."""
    for key in range(starts.shape[0]):
        best = -1
        begun = False
        for row in range(starts[key], ends[key]):
            action = actions[row]
            own = row if valid[row] else -1
            if action == SKIP:
                continue
            if action == SET:
                best = own
            elif action in (RETRACT, RETRACT_OLDER):
                if function == LAST_VALUE or own >= 0:
                    best = -1
            elif action == SET_RETRACT:
                best = -1
            elif function == LAST_VALUE:
                if action == ADD:
                    best = own
            elif function == LAST_NON_NULL:
                if own >= 0 and (action == ADD or best < 0):
                    best = own
            elif function == FIRST_VALUE:
                if not begun:
                    begun = True
                    if action == ADD:
                        best = own
                elif action == ADD_OLDER:
                    best = own
            elif function == FIRST_NON_NULL:
                given = own if action == ADD else best
                if not begun and given >= 0:
                    begun = True
                    best = given
                elif action == ADD_OLDER:
                    best = own
            elif own >= 0:
                if best < 0:
                    best = own
                    continue
                for word in range(words.shape[1]):
                    one, other = words[best, word], words[own, word]
                    if one != other:
                        if (one < other) == (function == GREATEST):
                            best = own
                        break
        found[key] = best


@compiled_loop(
    f"void(boolean, {_PLACES}, {_PLACES}, {_BYTES}, int64[::1])",
    saved_ns_per_byte=SAVED,
)
def present_loop(from_end: bool, starts: Integers, ends: Integers, valid: Bytes, found: Integers) -> None:
    """Of each key the first or the last place whose value is not NULL, -1 where all are."""
    for key in range(starts.shape[0]):
        place, end, step = starts[key], ends[key], 1
        if from_end:
            place, end, step = ends[key] - 1, starts[key] - 1, -1
        while place != end and not valid[place]:
            place += step
        found[key] = -1 if place == end else place


@compiled_loop(
    f"void(int64, int64, {_GROUPED}, {_PLACES}, int64[::1], uint8[::1], uint8[::1])",
    saved_ns_per_byte=SAVED,
)
def integer_loop(
    function: int,
    bits: int,
    starts: Integers,
    ends: Integers,
    actions: Actions,
    valid: Bytes,
    values: Integers,
    results: Integers,
    present: Bytes,
    errors: Bytes,
) -> None:
    """Sums or products of integers of a width, which wrap around as Java's do. `errors` says what went wrong: a division by zero,
    or a number that is no decimal of 18 digits any longer."""
    unused = 64 - bits
    for key in range(starts.shape[0]):
        total = np.int64(0)
        has = False
        for row in range(starts[key], ends[key]):
            action = actions[row]
            if action == SKIP:
                continue
            value = values[row]
            if action in (SET, SET_RETRACT):
                has = valid[row] != 0
                total = value
                if action == SET:
                    continue
            if not valid[row]:
                continue
            adds = action in (ADD, ADD_OLDER)
            if function == SUM:
                if not has:
                    total = value if adds else -value
                elif adds:
                    total = total + value
                else:
                    total = total - value
                has = True
            elif not has:
                if adds:
                    total = value
                    has = True
            elif adds:
                total = total * value
            elif value == 0:
                errors[DIVIDED_BY_ZERO] = 1
            elif value == -1:
                total = -total
            else:
                # Java cuts off, `//` rounds down.
                quotient = total // value
                if quotient < 0 and quotient * value != total:
                    quotient += 1
                total = quotient
            if unused:
                total = (total << unused) >> unused
            if total > _FEW or total < -_FEW:
                errors[OVERFLOWED] = 1
        results[key] = total
        present[key] = 1 if has else 0


@compiled_loop(
    f"void(int64, boolean, {_GROUPED}, Array(float64, 1, 'C', readonly=True), float64[::1], uint8[::1])",
    saved_ns_per_byte=SAVED,
)
def float_loop(
    function: int,
    is_single: bool,
    starts: Integers,
    ends: Integers,
    actions: Actions,
    valid: Bytes,
    values: Floats,
    results: Floats,
    present: Bytes,
) -> None:
    """Sums or products of floating-point numbers; those of single precision are rounded to it at every step."""
    for key in range(starts.shape[0]):
        total = np.float64(0)
        has = False
        for row in range(starts[key], ends[key]):
            action = actions[row]
            if action == SKIP:
                continue
            value = values[row]
            if action in (SET, SET_RETRACT):
                has = valid[row] != 0
                total = value
                if action == SET:
                    continue
            if not valid[row]:
                continue
            adds = action in (ADD, ADD_OLDER)
            if function == SUM:
                if not has:
                    total = value if adds else -value
                elif adds:
                    total = total + value
                else:
                    total = total - value
                has = True
            elif not has:
                if adds:
                    total = value
                    has = True
            elif adds:
                total = total * value
            elif value != 0.0:
                total = total / value
            elif total == 0.0 or np.isnan(total) or np.isnan(value):
                total = np.float64(np.nan)
            else:
                # The signs of both decide, also that of a zero.
                total = np.copysign(np.inf, total) * np.copysign(1.0, value)
            if is_single:
                total = np.float64(np.float32(total))
        results[key] = total
        present[key] = 1 if has else 0


@compiled_loop(
    f"void(uint64, int64, {_GROUPED}, Array(uint64, 2, 'C', readonly=True), uint64[:, ::1], uint8[::1])",
    saved_ns_per_byte=SAVED,
)
def wide_sum_loop(
    limit_low: int,
    limit_high: int,
    starts: Integers,
    ends: Integers,
    actions: Actions,
    valid: Bytes,
    values: Unsigned,
    results: Unsigned,
    present: Bytes,
) -> None:
    """Sums of 128-bit numbers, in words of which the low one comes first. One above the limit, or below its negative, becomes
    NULL, and what follows starts anew."""
    zero, one = np.uint64(0), np.uint64(1)
    for key in range(starts.shape[0]):
        low, high = zero, zero
        has = False
        for row in range(starts[key], ends[key]):
            action = actions[row]
            if action == SKIP:
                continue
            if action in (SET, SET_RETRACT):
                has = valid[row] != 0
                low, high = values[row, 0], values[row, 1]
                if action == SET:
                    continue
            if not valid[row]:
                continue
            other_low, other_high = values[row, 0], values[row, 1]
            if action not in (ADD, ADD_OLDER):
                other_low = ~other_low + one
                other_high = ~other_high + (one if other_low == zero else zero)
            if not has:
                low, high, has = other_low, other_high, True
                continue
            was = np.int64(high)
            low = low + other_low
            high = high + other_high + (one if low < other_low else zero)
            signed = np.int64(high)
            is_outside = (was < 0) == (np.int64(other_high) < 0) and (was < 0) != (signed < 0)
            if not is_outside:
                size_low, size_high = low, high
                if signed < 0:
                    size_low = ~low + one
                    size_high = ~high + (one if size_low == zero else zero)
                is_outside = np.int64(size_high) > limit_high or (
                    np.int64(size_high) == limit_high and size_low > limit_low
                )
            if is_outside:
                has = False
        results[key, 0] = low
        results[key, 1] = high
        present[key] = 1 if has else 0
