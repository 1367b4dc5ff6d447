"""The loop over rows of events: the values of their columns, as numbers or as the places of texts.

A row is JSON that `event_kernel` has read: an object of texts, numbers and words, in which no name has an escape. A value that is
none of its column's spelling, or of which it is not sure what expressions would make, makes its row `unsure`. Compiled like
`event_kernel`.

    code            low                       high
    TEXT, FLOATING  begin of the text         its end
    BASE64          begin of the text         its end
    INTEGER         the number
    BOOLEAN         0, 1
    DECIMAL         its last eighteen digits  those before
    PACKED          the number
    DAY             days since 1970
    LOCAL, ZONED    microseconds since 1970
    CLOCK           milliseconds since midnight
"""

from __future__ import annotations

from typing import Any

TEXT, FLOATING, BASE64, INTEGER, BOOLEAN, DECIMAL, PACKED, DAY, LOCAL, ZONED, CLOCK = range(11)
NONE, PLAIN, ESCAPED = range(3)
# The columns of a plan's numbers: code, least and greatest value or size, divisor, whether placeholders may be there.
CODE, LEAST, MOST, MULTIPLE, HOLDERS = range(5)
_DIGITS = 18
# What the first of eighteen digits counts: it goes to those before when another is put behind, since nineteen may not fit.
_PIECE = 10 ** (_DIGITS - 1)
_LONGEST = 38


def same(data: Any, at: int, size: int, names: Any, begin: int) -> bool:
    """Whether bytes are those of a name."""
    place = 0
    while place < size and data[at + place] == names[begin + place]:
        place += 1
    return place == size


def column_of(data: Any, at: int, size: int, guess: int, names: Any, offsets: Any) -> int:
    """The column of a name, `guess` first; -1 for none."""
    count = len(offsets) - 1
    for step in range(count):
        column = guess + step
        if column >= count:
            column -= count
        if offsets[column + 1] - offsets[column] == size and same(data, at, size, names, offsets[column]):
            return column
    return -1


def whole(data: Any, at: int, end: int) -> tuple[bool, int]:
    """A whole number of up to eighteen digits, with a sign or none."""
    negative = at < end and data[at] == 45
    if at < end and (data[at] == 45 or data[at] == 43):
        at += 1
    if at >= end or end - at > _DIGITS:
        return False, 0
    value = 0
    while at < end:
        c = data[at]
        if c < 48 or c > 57:
            return False, 0
        value = value * 10 + (c - 48)
        at += 1
    return True, -value if negative else value


def decimal(data: Any, at: int, end: int, scale: int, precision: int) -> tuple[bool, int, int]:
    """A decimal as its last eighteen digits and those before; nothing is rounded."""
    negative = data[at] == 45
    if data[at] == 45 or data[at] == 43:
        at += 1
    if at >= end or data[at] == 46 or data[end - 1] == 46:
        return False, 0, 0
    low, high, digits, point = 0, 0, 0, -1
    while at < end:
        c = data[at]
        if c == 46 and point < 0:
            point = 0
        elif c < 48 or c > 57 or (point >= scale and c != 48):
            return False, 0, 0
        elif point < scale:
            high = high * 10 + low // _PIECE
            low = low % _PIECE * 10 + (c - 48)
            digits = digits + 1 if digits > 0 or c != 48 else 0
            point = point + 1 if point >= 0 else point
        at += 1
    point = max(point, 0)
    if digits > 0:
        digits += scale - point
    if digits > precision or digits > 2 * _DIGITS:
        return False, 0, 0
    while point < scale:
        high = high * 10 + low // _PIECE
        low = low % _PIECE * 10
        point += 1
    return True, -low if negative else low, -high if negative else high


def floating(data: Any, at: int, end: int) -> bool:
    """Whether text is a number that every parser takes for the same double; -0 is none."""
    if end - at > _LONGEST:
        return False
    negative = data[at] == 45
    if negative:
        at += 1
    begin, is_zero = at, True
    while at < end and 48 <= data[at] <= 57:
        is_zero = is_zero and data[at] == 48
        at += 1
    if at == begin:
        return False
    if at < end and data[at] == 46:
        at += 1
        begin = at
        while at < end and 48 <= data[at] <= 57:
            is_zero = is_zero and data[at] == 48
            at += 1
        if at == begin:
            return False
    if is_zero and negative:
        return False
    if at < end and (data[at] == 101 or data[at] == 69):
        at += 1
        if at < end and (data[at] == 43 or data[at] == 45):
            at += 1
        begin = at
        while at < end and 48 <= data[at] <= 57:
            at += 1
        if at == begin or at - begin > 2:
            return False
    return at == end


def sextet(c: int) -> int:
    """The six bits of a character of base64; -1 for another."""
    if 97 <= c <= 122:
        return c - 71
    if 65 <= c <= 90:
        return c - 65
    if 48 <= c <= 57:
        return c + 4
    return 62 if c == 43 else 63 if c == 47 else -1


def base64_size(data: Any, at: int, end: int) -> int:
    """How many bytes text means as base64, padded and without bits too many; -1 where it is none."""
    size = end - at
    if size % 4 != 0:
        return -1
    if size == 0:
        return 0
    padding = 2 if data[end - 2] == 61 else 1 if data[end - 1] == 61 else 0
    if padding == 2 and data[end - 1] != 61:
        return -1
    for place in range(at, end - padding):
        if sextet(data[place]) < 0:
            return -1
    last = sextet(data[end - padding - 1])
    if (padding == 2 and last & 15 != 0) or (padding == 1 and last & 3 != 0):
        return -1
    return size // 4 * 3 - padding


def packed(data: Any, at: int, end: int) -> tuple[bool, int]:
    """The big-endian number of up to eight bytes that text means as base64."""
    size = base64_size(data, at, end)
    if size < 1 or size > 8:
        return False, 0
    value = -1 if sextet(data[at]) >= 32 else 0
    bits, count = 0, 0
    for place in range(at, end):
        if data[place] == 61:
            break
        bits = bits << 6 | sextet(data[place])
        count += 6
        if count >= 8:
            count -= 8
            value = value * 256 + (bits >> count & 255)
            bits = bits & ((1 << count) - 1)
    return True, value


def two(data: Any, at: int) -> int:
    """Two digits as a number; a large one where they are none."""
    high, low = data[at] - 48, data[at + 1] - 48
    return high * 10 + low if 0 <= high <= 9 and 0 <= low <= 9 else 1000


def day(data: Any, at: int, end: int) -> tuple[bool, int]:
    """Days since 1970 of yyyy-mm-dd."""
    if end - at < 10 or data[at + 4] != 45 or data[at + 7] != 45:
        return False, 0
    high, low, month, date = two(data, at), two(data, at + 2), two(data, at + 5), two(data, at + 8)
    year = high * 100 + low
    if high > 99 or low > 99 or year < 2 or year > 9998 or month < 1 or month > 12 or date < 1 or date > 31:
        return False, 0
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    longest = 31 if month in (1, 3, 5, 7, 8, 10, 12) else 30 if month != 2 else 29 if is_leap else 28
    if date > longest:
        return False, 0
    # Years begin in March here, so that a leap day is the last of its year.
    shifted = year if month > 2 else year - 1
    era, rest = shifted // 400, shifted % 400
    of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + date - 1
    return True, era * 146097 + rest * 365 + rest // 4 - rest // 100 + of_year - 719468


def clock(data: Any, at: int, end: int, digits: int) -> tuple[bool, int]:
    """Microseconds since midnight of hh:mm:ss, with a fraction of up to so many digits that are not zero."""
    if end - at < 8 or data[at + 2] != 58 or data[at + 5] != 58:
        return False, 0
    hour, minute, second = two(data, at), two(data, at + 3), two(data, at + 6)
    if hour > 23 or minute > 59 or second > 59:
        return False, 0
    micros, place = 0, 100_000
    at += 8
    if at < end:
        if data[at] != 46 or at + 1 == end or end - at > 7:
            return False, 0
        at += 1
        while at < end:
            c = data[at]
            if c < 48 or c > 57 or (digits <= 0 and c != 48):
                return False, 0
            micros += (c - 48) * place
            place //= 10
            digits -= 1
            at += 1
    return True, ((hour * 60 + minute) * 60 + second) * 1_000_000 + micros


def moment(data: Any, at: int, end: int, digits: int, zoned: bool) -> tuple[bool, int]:
    """Microseconds since 1970 of a day and a time, with a zone behind them or none."""
    shift = 0
    if zoned:
        if end > at and data[end - 1] == 90:
            end -= 1
        elif end - at > 6 and data[end - 3] == 58 and (data[end - 6] == 43 or data[end - 6] == 45):
            hour, minute = two(data, end - 5), two(data, end - 2)
            if hour > 14 or minute > 59:
                return False, 0
            shift = hour * 60 + minute if data[end - 6] == 43 else -(hour * 60 + minute)
            end -= 6
        else:
            return False, 0
    if end - at < 19 or (data[at + 10] != 32 and data[at + 10] != 84):
        return False, 0
    is_day, days = day(data, at, at + 10)
    is_clock, micros = clock(data, at + 11, end, digits)
    return is_day and is_clock, days * 86_400_000_000 + micros - shift * 60_000_000


def may_hold_place(data: Any, at: int, end: int) -> bool:
    """Whether text may be what stands for a value that was not sent (`debezium.UNAVAILABLE`)."""
    for place in range(at, min(at + 10, end - 1)):
        if data[place] == 92 and data[place + 1] == 117:
            return True
    if at < end and (data[at] == 91 or data[at] == 123):
        at += 1
        if at + 2 < end and data[at] == 57 and data[at + 1] == 53 and data[at + 2] == 44:
            return True
        if at + 1 < end and data[at] == 92:
            at += 2
    if end - at < 5:
        return False
    if data[at] == 95 and data[at + 1] == 95 and data[at + 2] == 100 and data[at + 3] == 101:
        return True
    return bool(data[at] == 88 and data[at + 1] == 49 and data[at + 2] == 57 and data[at + 3] == 107)


def text_end(data: Any, at: int, end: int, quoted: bool, escaped: bool, most: int) -> int:
    """The end of the text of a value; -1 where it has more characters than `most`, or a number that VARIANT spells otherwise."""
    if not quoted and data[at] != 116 and data[at] != 102:
        point = -1
        for place in range(at, end):
            if data[place] == 46:
                point = place
            elif data[place] == 101 or data[place] == 69:
                return -1
        if point < 0 and end - at > _DIGITS:
            return -1
        first = at + 1 if data[at] == 45 else at
        # Small ones are spelt with an exponent in some places.
        if end - point > 4 and data[first] == 48 and data[point + 1] == 48 and data[point + 2] == 48 and point >= 0:
            return -1
        if point >= 0:
            while data[end - 1] == 48:
                end -= 1
            if end - 1 == point:
                end = point
        if data[at] == 45 and end - at == 2 and data[at + 1] == 48:
            return -1
    if end - at > most:
        if escaped:
            return -1
        count = 0
        for place in range(at, end):
            if data[place] & 0xC0 != 0x80:
                count += 1
        if count > most:
            return -1
    return end


def cell(data: Any, at: int, end: int, quoted: bool, escaped: bool, plan: Any) -> tuple[bool, int, int]:
    """The value of a column: whether it is one, and its two numbers."""
    code = plan[CODE]
    if code == TEXT:
        if plan[HOLDERS] and quoted and may_hold_place(data, at, end):
            return False, 0, 0
        stop = text_end(data, at, end, quoted, escaped, plan[MOST])
        return stop >= 0, at, stop
    if escaped or at >= end:
        return code == BASE64 and not escaped, at, end
    if code == FLOATING:
        return floating(data, at, end), at, end
    if code == BASE64:
        if not quoted or (plan[HOLDERS] and may_hold_place(data, at, end)):
            return False, 0, 0
        size = base64_size(data, at, end)
        return 0 <= size <= plan[MOST], at, end
    if code == DECIMAL:
        return decimal(data, at, end, plan[LEAST], plan[MOST])
    ok, value = False, 0
    if code == INTEGER:
        ok, value = whole(data, at, end)
    elif code == PACKED and quoted:
        ok, value = packed(data, at, end)
    elif code == DAY and end - at == 10:
        ok, value = day(data, at, end)
    elif code in (LOCAL, ZONED):
        ok, value = moment(data, at, end, plan[MULTIPLE], code == ZONED)
        return ok, value, 0
    elif code == CLOCK:
        ok, value = clock(data, at, end, 3)
        return ok, value // 1000, 0
    elif code == BOOLEAN:
        c, size = data[at], end - at
        is_true = size == 4 and c == 116 and data[at + 1] == 114 and data[at + 2] == 117 and data[at + 3] == 101
        is_false = size == 5 and c == 102 and data[at + 1] == 97 and data[at + 2] == 108 and data[at + 3] == 115
        is_false = is_false and data[at + 4] == 101
        is_bit = size == 1 and c in (48, 49)
        return is_true or is_false or is_bit, 1 if is_true or (is_bit and c == 49) else 0, 0
    ok = ok and plan[LEAST] <= value <= plan[MOST] and value % plan[MULTIPLE] == 0
    return ok, value, 0


def read_row(
    data: Any, at: int, end: int, row: int, names: Any, offsets: Any, plans: Any, states: Any, low: Any, high: Any
) -> bool:
    """Reads one row; False where it is unsure."""
    guess = 0
    at += 1
    while at < end:
        while at < end and data[at] != 34 and data[at] != 125:
            at += 1
        if at >= end or data[at] == 125:
            return True
        begin = at + 1
        at = begin
        while data[at] != 34:
            at += 1
        column = column_of(data, begin, at - begin, guess, names, offsets)
        at += 1
        while data[at] == 58 or data[at] == 32 or data[at] == 9 or data[at] == 10 or data[at] == 13:
            at += 1
        quoted, escaped = data[at] == 34, False
        if quoted:
            at += 1
        begin = at
        if quoted:
            while data[at] != 34:
                if data[at] == 92:
                    escaped = True
                    at += 1
                at += 1
        else:
            while data[at] > 32 and data[at] != 44 and data[at] != 125:
                at += 1
        if column >= 0 and (quoted or data[begin] != 110):
            guess = column + 1
            ok, low[column, row], high[column, row] = cell(data, begin, at, quoted, escaped, plans[column])
            if not ok:
                return False
            states[column, row] = ESCAPED if escaped else PLAIN
        if quoted:
            at += 1
    return True


def read_cells(
    data: Any,
    begins: Any,
    ends: Any,
    names: Any,
    offsets: Any,
    plans: Any,
    states: Any,
    low: Any,
    high: Any,
    unsure: Any,
) -> None:
    """Reads all rows; one without bytes has no values."""
    for row in range(len(begins)):
        begin, end = begins[row], ends[row]
        if end > begin and not read_row(data, begin, end, row, names, offsets, plans, states, low, high):
            unsure[row] = True
