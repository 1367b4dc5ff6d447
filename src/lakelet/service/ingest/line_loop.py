"""Parse plain NDJSON: one compiled loop over the bytes, which knows the fields of a table and takes only what it is sure of.

    {"id":"user-1","timestamp":"2026-01-31T10:00:00Z","payload":{"age":25,"score":0.5,"name":"Ann","active":true}}

It takes lines of one object each, keys in any order, texts with short escapes, integers of up to 18 digits, numbers whose
decimal digits make a double without rounding twice, and timestamps in the form above. Longer numbers are left to the caller, by
their places. Everything else ends it: an unknown or repeated key, a value of another kind, an integer that the field does not
take, `-0`, `\\u0041`, what is no JSON. Bytes are those of UTF-8, which the caller has checked.

    in    names   the bytes of all names, which end at `name_at`: those of the fields, then id, timestamp and payload
          kinds   of the fields
    out   cells   a row of numbers for each field, and one for ids: integers, the bits of doubles, 0 and 1, or where a text begins
          sizes   the bytes of texts
          valid   1 where there is a value
          moments microseconds since 1970
          hard    field, row, begin and end of a number that is left
          state   the lines, and the numbers that are left; -1 lines where the loop has ended early

Escapes are decoded where they stand: a text never becomes longer. So `data` is a copy, with a newline behind the last line.
Each step is called from one place alone, for it is inlined there, and the compiler takes its time for every copy.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lakelet.format.compiled.compiled_loop import CompiledLoop

Bytes = NDArray[np.uint8]
Longs = NDArray[np.int64]
Doubles = NDArray[np.float64]

LARGE_INTEGER, INTEGER, DOUBLE, BOOLEAN, TEXT, MOMENT, OBJECT, OTHER = range(8)
NO_MOMENT = -(1 << 63)
_EXACT = 1 << 53
_LEAST_US, _MOST_US = -62_135_596_800_000_000, 253_402_300_799_999_999
# What scanning the same bytes by Arrow, and checking what comes of it, takes longer.
_SAVED_NS = 5.0
POWERS: Doubles = np.array([10.0**power for power in range(23)])


def _text(data: Bytes, at: int, escapes: Bytes) -> tuple[int, int]:
    """Where a text that begins behind its quote ends, and the place behind its quote, -1 for no text."""
    while data[at] >= 32 and data[at] != 34 and data[at] != 92:
        at += 1
    to = at
    while data[at] != 34:
        byte, step = data[at], 1
        if byte == 92:
            byte, step = escapes[data[at + 1]], 2
        # A byte of control, or an escape that is left to others.
        if byte == 0 or (step == 1 and byte < 32):
            return to, -1
        data[to] = byte
        at, to = at + step, to + 1
    return to, at + 1


def _two(data: Bytes, at: int) -> int:
    """The value of two digits, a large negative number where they are none."""
    high, low = data[at] - 48, data[at + 1] - 48
    return high * 10 + low if 0 <= high <= 9 and 0 <= low <= 9 else -1_000_000


def _days(year: int, month: int, day: int) -> int:
    """Days since 1970 of a date."""
    year -= month <= 2
    era = year // 400
    of_era = year - era * 400
    of_year = (153 * (month + (9 if month <= 2 else -3)) + 2) // 5 + day - 1
    return era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468


def _moment(data: Bytes, at: int, end: int) -> int:
    """The microseconds of YYYY-MM-DDTHH:MM:SS[.ffffff](Z|±HH:MM); the least number of all for anything else."""
    if end - at < 20 or data[at + 4] != 45 or data[at + 7] != 45 or data[at + 10] != 84:
        return NO_MOMENT
    if data[at + 13] != 58 or data[at + 16] != 58:
        return NO_MOMENT
    year, month, day = _two(data, at) * 100 + _two(data, at + 2), _two(data, at + 5), _two(data, at + 8)
    hour, minute, second = _two(data, at + 11), _two(data, at + 14), _two(data, at + 17)
    if year < 1 or not 1 <= month <= 12 or not 0 <= hour <= 23 or not 0 <= minute <= 59 or not 0 <= second <= 59:
        return NO_MOMENT
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    longest = 29 if month == 2 and is_leap else 28 if month == 2 else 30 + (month + (month > 7)) % 2
    if not 1 <= day <= longest:
        return NO_MOMENT
    place, micros, digits = at + 19, 0, 0
    if data[place] == 46:
        place += 1
        while 48 <= data[place] <= 57 and digits < 6:
            micros = micros * 10 + data[place] - 48
            place, digits = place + 1, digits + 1
        if digits == 0:
            return NO_MOMENT
        for _ in range(6 - digits):
            micros *= 10
    ahead = 0
    if data[place] == 90 and place + 1 == end:
        ahead = 0
    elif (data[place] == 43 or data[place] == 45) and place + 6 == end and data[place + 3] == 58:
        hours, minutes = _two(data, place + 1), _two(data, place + 4)
        if not 0 <= hours <= 23 or not 0 <= minutes <= 59:
            return NO_MOMENT
        ahead = hours * 60 + minutes
        if data[place] == 45:
            ahead = -ahead
    else:
        return NO_MOMENT
    seconds = (_days(year, month, day) * 24 + hour) * 3600 + (minute - ahead) * 60 + second
    found = seconds * 1_000_000 + micros
    return found if _LEAST_US <= found <= _MOST_US else NO_MOMENT


def _number(data: Bytes, at: int, powers: Doubles) -> tuple[int, int, int, float]:
    """A number: the place behind it (-1 for none), the integer (for whole ones), its form (0 an integer, 1 another number, 2 one
    that is left, 3 one that is taken by nobody), and its value as a double."""
    negative = data[at] == 45
    at += negative
    begin, mantissa, digits, whole = at, 0, 0, True
    while 48 <= data[at] <= 57:
        if digits < 18:
            mantissa = mantissa * 10 + data[at] - 48
        digits += mantissa > 0
        at += 1
    if at == begin or (data[begin] == 48 and at - begin > 1):
        return -1, 0, 3, 0.0
    exponent = 0
    if data[at] == 46:
        whole, begin = False, at + 1
        at += 1
        while 48 <= data[at] <= 57:
            if digits < 18:
                mantissa = mantissa * 10 + data[at] - 48
            digits += mantissa > 0
            at += 1
        if at == begin:
            return -1, 0, 3, 0.0
        exponent = begin - at
    if data[at] == 101 or data[at] == 69:
        whole = False
        at += 1
        minus = data[at] == 45
        at += minus or data[at] == 43
        begin, given = at, 0
        while 48 <= data[at] <= 57:
            given = min(given * 10 + data[at] - 48, 100_000)
            at += 1
        if at == begin:
            return -1, 0, 3, 0.0
        exponent += -given if minus else given
    if mantissa == 0 and negative:
        return at, 0, 3, 0.0
    if whole:
        integer = -mantissa if negative else mantissa
        # More digits may be more than a double, or a BIGINT, holds.
        return at, integer, 0 if digits <= 18 else 3, np.float64(integer)
    if mantissa == 0:
        return at, 0, 1, 0.0
    if digits > 15 or not -22 <= exponent <= 22:
        return at, 0, 2, 0.0
    value = np.float64(mantissa)
    value = value / powers[-exponent] if exponent < 0 else value * powers[exponent]
    return at, 0, 1, -value if negative else value


def _name(data: Bytes, begin: int, end: int, names: Bytes, name_at: Longs, first: int, last: int, guess: int) -> int:
    """The name among some of all, looked for from the guess on; -1 for an unknown one."""
    found = guess
    for _ in range(last - first):
        if found >= last:
            found = first
        begins = name_at[found]
        if name_at[found + 1] - begins == end - begin:
            same = True
            for place in range(end - begin):
                same &= data[begin + place] == names[begins + place]
            if same:
                return found
        found += 1
    return -1


def _word(data: Bytes, at: int) -> int:
    """What stands at a place: 0 false, 1 true, 2 null, -1 something else."""
    if data[at] == 116:
        return 1 if data[at + 1] == 114 and data[at + 2] == 117 and data[at + 3] == 101 else -1
    if data[at] == 110:
        return 2 if data[at + 1] == 117 and data[at + 2] == 108 and data[at + 3] == 108 else -1
    if data[at] != 102 or data[at + 1] != 97 or data[at + 2] != 108 or data[at + 3] != 115 or data[at + 4] != 101:
        return -1
    return 0


def _value(
    data: Bytes, at: int, row: int, field: int, kind: int, escapes: Bytes, powers: Doubles,
    cells: Longs, sizes: Longs, valid: Bytes, moments: Longs, hard: Longs, state: Longs,
) -> int:  # fmt: skip
    """Take a value of a field; the place behind it, -1 where it is not of its kind."""
    if data[at] == 34:
        begin = at + 1
        end, at = _text(data, begin, escapes)
        if at >= 0 and kind == TEXT:
            cells[field, row], sizes[field, row], valid[field, row] = begin, end - begin, 1
            return at
        if at < 0 or kind != MOMENT:
            return -1
        moments[row] = _moment(data, begin, end)
        return -1 if moments[row] == NO_MOMENT else at
    if data[at] == 45 or 48 <= data[at] <= 57:
        begin = at
        at, integer, form, value = _number(data, at, powers)
        is_exact = form == 0 and -_EXACT <= integer <= _EXACT
        if at < 0 or form == 3:
            return -1
        if kind == DOUBLE and (form > 0 or is_exact):
            cells.view(np.float64)[field, row] = value
            if form == 2:
                left = state[1]
                hard[left, 0], hard[left, 1], hard[left, 2], hard[left, 3] = field, row, begin, at
                state[1] = left + 1
        elif (is_exact and kind == INTEGER) or (form == 0 and kind == LARGE_INTEGER):
            cells[field, row] = integer
        else:
            return -1
        valid[field, row] = 1
        return at
    word = _word(data, at)
    # The last of the rows is that of ids, which are not NULL.
    if word == 2 and field < cells.shape[0] - 1:
        return at + 4
    if word < 0 or word == 2 or kind != BOOLEAN:
        return -1
    cells[field, row], valid[field, row] = word, 1
    return at + 5 - word


def _lines(
    data: Bytes, size: int, names: Bytes, name_at: Longs, kinds: Longs, escapes: Bytes, powers: Doubles,
    cells: Longs, sizes: Longs, valid: Bytes, moments: Longs, hard: Longs, state: Longs, seen: Longs,
) -> None:  # fmt: skip
    count = kinds.shape[0]
    at, row, depth, guess, members = 0, -1, 0, 0, 0
    state[0] = -1
    while True:
        # What stands between two members, or two lines.
        byte = data[at]
        at += 1
        if byte == 32 or byte == 9 or byte == 13:  # noqa: PLR1714 - no set is compiled.
            continue
        if depth == 0 and byte == 10:
            if at > size:
                state[0] = row + 1
                return
            members = 0
            continue
        if depth == 0:
            # One object on a line.
            if byte != 123 or members != 0:
                return
            row, depth, guess, members = row + 1, 1, count, 0
            continue
        if byte == 125:
            # A comma has a member behind it, and a line all three of its own.
            if members < 0 or (depth == 1 and not (seen[count] == seen[count + 1] == seen[count + 2] == row)):
                return
            depth, members = depth - 1, 1
            guess = count
            continue
        if byte == 44:
            if members != 1:
                return
            members = -1
            continue
        if byte != 34 or members == 1:
            return
        members = 1
        # The name, and all that its value may be.
        begin = at
        end, at = _text(data, at, escapes)
        if at < 0:
            return
        field = _name(
            data, begin, end, names, name_at, 0 if depth == 2 else count, count + 3 if depth == 1 else count, guess
        )
        if field < 0 or seen[field] == row:
            return
        seen[field] = row
        guess = field + 1
        while data[at] == 32 or data[at] == 9:
            at += 1
        if data[at] != 58:
            return
        at += 1
        while data[at] == 32 or data[at] == 9:
            at += 1
        kind = TEXT if field == count else MOMENT if field == count + 1 else OBJECT if field > count else kinds[field]
        if data[at] == 123 and kind == OBJECT:
            at, depth, guess, members = at + 1, 2, 0, 0
            continue
        at = _value(data, at, row, field, kind, escapes, powers, cells, sizes, valid, moments, hard, state)
        if at < 0:
            return


def _gathered(data: Bytes, begins: Longs, sizes: Longs, out: Bytes) -> None:
    to = np.uint64(0)
    for i in range(begins.shape[0]):
        first = np.uint64(begins[i])
        for j in range(np.uint64(sizes[i])):
            out[to + j] = data[first + j]
        to += np.uint64(sizes[i])


_IN = "Array(uint8, 1, 'C', readonly=True)"
_PLACES = "Array(int64, 1, 'C', readonly=True)"
line_loop = CompiledLoop(
    _lines,
    f"void(uint8[::1], int64, {_IN}, {_PLACES}, {_PLACES}, {_IN}, float64[::1], int64[:, ::1], int64[:, ::1], "
    "uint8[:, ::1], int64[::1], int64[:, ::1], int64[::1], int64[::1])",
    _SAVED_NS,
    inner=(_text, _two, _days, _moment, _number, _name, _word, _value),
)
gather_loop = CompiledLoop(_gathered, "void(uint8[::1], int64[::1], int64[::1], uint8[::1])", _SAVED_NS)
