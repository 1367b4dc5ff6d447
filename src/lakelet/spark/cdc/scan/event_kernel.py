"""The loop over the JSON of events: where the fields of an envelope and its rows are.

Written in the subset of Python that numba compiles; everything that is compiled together is in this file, because the machine
code that numba keeps is thrown away only when this file changes. An event is either read, or marked `unsure` and left to Spark's
expressions, which decide about everything that is odd: only JSON that every parser reads in the same way is read here. That is
UTF-8 without control characters, no name twice in an object that is looked at, no escape in a name or in a field of the envelope,
and rows whose values are texts, numbers that VARIANT keeps, `true`, `false` and `null`.

Names that are looked for are a table: the object in which a name is (its node), the slot of its value, and how that is read.

    FIELD     a number is parsed; of a text the place alone
    SHARED    a text, list or object that few events differ in: each distinct one is kept once, and compared as bytes
    ROW       an object that is a row
    ROWS      a list of such objects
    INSIDE    an object whose names are looked for in turn

The names of a row, in their order, are kept once for each distinct list as well.
"""

from __future__ import annotations

from typing import Any

FIELD, SHARED, ROW, ROWS, INSIDE, SKIP = range(6)
ABSENT, NULL, TEXT, ESCAPED, WHOLE, NUMBER, TRUE, FALSE, LIST, OBJECT = range(10)
VALUE, FIRST_VALUE, NAME, FIRST_NAME, AFTER = range(5)
# Numbers in `sizes`: rows and distinct values, names and lists of names so far.
ROW_COUNT, SHARED_COUNT, NAME_COUNT, LIST_COUNT = range(4)
# What an object on the stack is, where no names are looked for in it.
SKIPPED, ROW_NODE, ROWS_NODE = -1, -2, -3
UNSURE, DONE, FULL = range(3)
DEPTH = 48
MOST_NAMES = 1024
MOST_NUMBER = 38
_DIGITS = 18
# Fewer bytes than these are compared one by one.
SHORT = 16


def end_of_text(data: Any, at: int, end: int) -> tuple[int, bool]:
    """The place of the quote that ends a text which begins at `at`, and whether it has escapes; -1 where it is no text."""
    escaped = False
    while at < end:
        c = data[at]
        if c == 34:
            return at, escaped
        if c < 32:
            return -1, False
        if c == 92:
            escaped = True
            size = escape_size(data, at, end)
            if size == 0:
                return -1, False
            at += size
        elif c < 128:
            at += 1
        else:
            size = utf8_size(data, at, end)
            if size == 0:
                return -1, False
            at += size
    return -1, False


def escape_size(data: Any, at: int, end: int) -> int:
    """The bytes of an escape; 0 where it is none, or half of a character."""
    if at + 1 >= end:
        return 0
    c = data[at + 1]
    if c in (34, 92, 47, 98, 102, 110, 114, 116):
        return 2
    if c != 117:
        return 0
    high = hex_value(data, at + 2, end)
    if high < 0:
        return 0
    if high < 0xD800 or high > 0xDFFF:
        return 6
    if high > 0xDBFF or at + 7 >= end or data[at + 6] != 92 or data[at + 7] != 117:
        return 0
    low = hex_value(data, at + 8, end)
    return 12 if 0xDC00 <= low <= 0xDFFF else 0


def hex_value(data: Any, at: int, end: int) -> int:
    """Four hexadecimal digits as a number; -1 where they are none."""
    if at + 4 > end:
        return -1
    value = 0
    for place in range(at, at + 4):
        c = data[place]
        if 48 <= c <= 57:
            digit = c - 48
        elif 97 <= c <= 102:
            digit = c - 87
        elif 65 <= c <= 70:
            digit = c - 55
        else:
            return -1
        value = value * 16 + digit
    return value


def utf8_size(data: Any, at: int, end: int) -> int:
    """The bytes of a character beyond ASCII; 0 where they are no UTF-8."""
    c = data[at]
    if c < 0xC2 or c > 0xF4:
        return 0
    size = 2 if c < 0xE0 else 3 if c < 0xF0 else 4
    if at + size > end:
        return 0
    for place in range(at + 1, at + size):
        if data[place] & 0xC0 != 0x80:
            return 0
    second = data[at + 1]
    if (c == 0xE0 and second < 0xA0) or (c == 0xED and second > 0x9F):
        return 0
    if (c == 0xF0 and second < 0x90) or (c == 0xF4 and second > 0x8F):
        return 0
    return size


def end_of_number(data: Any, at: int, end: int) -> tuple[int, int, int]:
    """The place behind a number, its kind, and its value if it is WHOLE; -1 where it is none that VARIANT keeps."""
    begin = at
    negative = data[at] == 45
    if negative:
        at += 1
    first = at
    value = 0
    while at < end and 48 <= data[at] <= 57:
        if at - first < _DIGITS:
            value = value * 10 + (data[at] - 48)
        at += 1
    count = at - first
    if count == 0 or (count > 1 and data[first] == 48):
        return -1, NUMBER, 0
    kind = WHOLE if count <= _DIGITS and not (negative and value == 0) else NUMBER
    if at < end and data[at] == 46:
        kind = NUMBER
        at += 1
        first = at
        while at < end and 48 <= data[at] <= 57:
            at += 1
        if at == first:
            return -1, NUMBER, 0
    if at < end and (data[at] == 101 or data[at] == 69):
        kind = NUMBER
        at += 1
        if at < end and (data[at] == 43 or data[at] == 45):
            at += 1
        first = at
        while at < end and 48 <= data[at] <= 57:
            at += 1
        if at == first or at - first > 2:
            return -1, NUMBER, 0
    if at - begin > MOST_NUMBER:
        return -1, NUMBER, 0
    return at, kind, -value if negative else value


def end_of_word(data: Any, at: int, end: int) -> tuple[int, int]:
    """The place behind true, false or null, and its kind; -1 where it is none."""
    c = data[at]
    if c == 116 and at + 4 <= end and data[at + 1] == 114 and data[at + 2] == 117 and data[at + 3] == 101:
        return at + 4, TRUE
    if c == 110 and at + 4 <= end and data[at + 1] == 117 and data[at + 2] == 108 and data[at + 3] == 108:
        return at + 4, NULL
    if c == 102 and at + 5 <= end and data[at + 1] == 97 and data[at + 2] == 108 and data[at + 3] == 115:
        return (at + 5 if data[at + 4] == 101 else -1), FALSE
    return -1, NULL


def same_bytes(data: Any, one: int, other_data: Any, other: int, size: int) -> bool:
    """Whether two runs of bytes are the same."""
    if size < SHORT:
        place = 0
        while place < size and data[one + place] == other_data[other + place]:
            place += 1
        return place == size
    # Of slices counted from 0 the compiler knows that no index is negative, which would count from the end, and compares many
    # bytes at once: schemas of a kilobyte are compared for every event.
    first, second = data[one : one + size], other_data[other : other + size]
    different = 0
    for place in range(size):
        different |= first[place] ^ second[place]
    return different == 0


def skip_blanks(data: Any, at: int, end: int) -> int:
    """The place of the next byte that is no blank."""
    while at < end and (data[at] == 32 or data[at] == 10 or data[at] == 13 or data[at] == 9):
        at += 1
    return at


def find_name(data: Any, at: int, end: int, node: int, guess: int, names: Any, table: Any) -> int:
    """The line of the table that has a name in a node; -1 where there is none. Lines behind `guess` come first."""
    count = len(table)
    for step in range(count):
        line = guess + step
        if line >= count:
            line -= count
        fits = table[line, 0] == node and table[line, 4] - table[line, 3] == end - at
        if fits and same_bytes(data, at, names, table[line, 3], end - at):
            return line
    return -1


def shared_number(data: Any, begin: int, end: int, slot: int, kind: int, shared: Any, last: Any, sizes: Any) -> int:
    """The number of a distinct value of a slot, new or known; -1 where there are too many."""
    for number in range(sizes[SHARED_COUNT]):
        fits = shared[number, 0] == slot and shared[number, 2] - shared[number, 1] == end - begin
        if fits and same_bytes(data, begin, data, shared[number, 1], end - begin):
            last[slot] = number
            return number
    new: int = sizes[SHARED_COUNT]
    if new >= len(shared):
        return -1
    shared[new, 0], shared[new, 1], shared[new, 2], shared[new, 3] = slot, begin, end, kind
    sizes[SHARED_COUNT] = new + 1
    last[slot] = new
    return new


def names_number(data: Any, found: Any, count: int, slot: int, spans: Any, lists: Any, last: Any, sizes: Any) -> int:
    """The number of a distinct list of names, new or known; -1 for a name that is there twice, or too many lists."""
    known: int = last[slot]
    if known >= 0 and same_names(data, found, count, spans, lists, known):
        return known
    for number in range(sizes[LIST_COUNT]):
        if same_names(data, found, count, spans, lists, number):
            last[slot] = number
            return number
    for one in range(count):
        for other in range(one):
            size = found[one, 1] - found[one, 0]
            fits = size == found[other, 1] - found[other, 0]
            if fits and same_bytes(data, found[one, 0], data, found[other, 0], size):
                return -1
    new: int = sizes[LIST_COUNT]
    first = sizes[NAME_COUNT]
    if new >= len(lists) or first + count > len(spans):
        return -1
    for place in range(count):
        spans[first + place, 0], spans[first + place, 1] = found[place, 0], found[place, 1]
    lists[new, 0], lists[new, 1] = first, first + count
    sizes[LIST_COUNT], sizes[NAME_COUNT] = new + 1, first + count
    last[slot] = new
    return new


def same_names(data: Any, found: Any, count: int, spans: Any, lists: Any, number: int) -> bool:
    """Whether the names of a row are those of a list."""
    first = lists[number, 0]
    if lists[number, 1] - first != count:
        return False
    for place in range(count):
        size = found[place, 1] - found[place, 0]
        if spans[first + place, 1] - spans[first + place, 0] != size:
            return False
        if not same_bytes(data, found[place, 0], data, spans[first + place, 0], size):
            return False
    return True


def open_container(c: int, at: int, depth: int, event: int, context: Any, stack: Any, kinds: Any) -> bool:
    """Puts an object or a list on the stack; False where the value must not be one. `context` is slot, mode and child."""
    slot, mode, child = context
    is_list = c == 91
    above = stack[depth - 1, 0] if depth > 0 else SKIPPED
    if depth >= DEPTH or above == ROW_NODE or mode == FIELD:
        return False
    inner = SKIPPED
    if above == ROWS_NODE:
        if is_list:
            return False
        inner, slot, mode = ROW_NODE, stack[depth - 1, 1], ROW
    elif mode in (ROW, INSIDE):
        if is_list:
            return False
        inner = ROW_NODE if mode == ROW else child
    elif mode == ROWS:
        if not is_list:
            return False
        inner = ROWS_NODE
    stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3], stack[depth, 4] = inner, slot, mode, at, is_list
    if slot >= 0 and above != ROWS_NODE:
        kinds[event, slot] = LIST if is_list else OBJECT
    return True


def close_container(data: Any, at: int, depth: int, event: int, count: int, stack: Any, out: Any, kept: Any) -> int:
    """Ends the object or list on top of the stack, before `at`: DONE, UNSURE or FULL."""
    kinds, _, numbers, rows, sizes = out
    shared, last, name_spans, lists, found = kept
    slot, begin = stack[depth, 1], stack[depth, 3]
    if stack[depth, 0] == ROW_NODE:
        number = names_number(data, found, count, slot, name_spans, lists, last, sizes)
        if number < 0:
            return UNSURE
        row = sizes[ROW_COUNT]
        if row >= len(rows):
            return FULL
        rows[row, 0], rows[row, 1], rows[row, 2], rows[row, 3], rows[row, 4] = event, slot, begin, at, number
        sizes[ROW_COUNT] = row + 1
    elif stack[depth, 2] == SHARED:
        number = shared_number(data, begin, at, slot, kinds[event, slot], shared, last, sizes)
        if number < 0:
            return UNSURE
        numbers[event, slot] = number
    return DONE


def put_scalar(data: Any, at: int, end: int, event: int, slot: int, mode: int, out: Any, kept: Any) -> int:
    """Reads a text, number or word; the place behind it, -1 where it is none or not what the slot has."""
    kinds, spans, numbers, _, sizes = out
    shared, last = kept[0], kept[1]
    c = data[at]
    value = 0
    if c == 34:
        stop, escaped = end_of_text(data, at + 1, end)
        kind = ESCAPED if escaped else TEXT
        if stop >= 0:
            stop += 1
    elif c == 45 or 48 <= c <= 57:
        stop, kind, value = end_of_number(data, at, end)
    else:
        stop, kind = end_of_word(data, at, end)
    if stop < 0 or (kind != NULL and mode in (ROW, ROWS, INSIDE)):
        return -1
    if slot >= 0:
        if mode == SHARED and kind == TEXT:
            value = shared_number(data, at, stop, slot, kind, shared, last, sizes)
            if value < 0:
                return -1
        kinds[event, slot], numbers[event, slot] = kind, value
        spans[event, slot, 0], spans[event, slot, 1] = at, stop
    return stop


def name_line(
    data: Any, at: int, stop: int, first: bool, depth: int, guess: int, names: Any, table: Any, stack: Any
) -> int:
    """The line of the table for a name in the object on top of the stack; -1 where nobody looks for it. An event whose first name
    is none of the outermost object's is itself what that would have inside."""
    node = stack[depth - 1, 0]
    if node < 0:
        return -1
    line = find_name(data, at, stop, node, guess, names, table)
    if line < 0 and node == 0 and first:
        stack[depth - 1, 0] = 1
        line = find_name(data, at, stop, 1, guess, names, table)
    return line


def scan_event(
    data: Any, at: int, end: int, event: int, root: int, names: Any, table: Any, stack: Any, out: Any, kept: Any
) -> int:
    """Reads one event, an object with names to look for or, with another `root`, a row: DONE, UNSURE, or FULL."""
    kinds, numbers, shared, last, found = out[0], out[2], kept[0], kept[1], kept[4]
    depth, state, slot, mode, child, guess, count = 0, VALUE, 0 if root == ROW else -1, root, 0, 0, 0
    while True:
        at = skip_blanks(data, at, end)
        if at >= end:
            return UNSURE
        c = data[at]
        if state == AFTER and c == 44:
            at += 1
            state = VALUE if stack[depth - 1, 4] else NAME
            slot, mode = -1, SKIP
        elif state == AFTER or (state == FIRST_VALUE and c == 93) or (state == FIRST_NAME and c == 125):
            if c != (93 if stack[depth - 1, 4] else 125):
                return UNSURE
            at += 1
            depth -= 1
            ended = close_container(data, at, depth, event, count, stack, out, kept)
            if ended != DONE:
                return ended
            if depth == 0:
                return DONE if skip_blanks(data, at, end) == end else UNSURE
            state = AFTER
        elif state in (NAME, FIRST_NAME):
            stop, escaped = (-1, False) if c != 34 else end_of_text(data, at + 1, end)
            node, slot, mode = stack[depth - 1, 0], -1, SKIP
            if stop < 0 or (escaped and node != SKIPPED) or count >= MOST_NAMES:
                return UNSURE
            if node == ROW_NODE:
                found[count, 0], found[count, 1] = at + 1, stop
                count += 1
            line = name_line(data, at + 1, stop, state == FIRST_NAME, depth, guess, names, table, stack)
            if line >= 0:
                guess, slot, mode, child = line + 1, table[line, 1], table[line, 2], table[line, 5]
                if kinds[event, slot] != ABSENT:
                    return UNSURE
            at = skip_blanks(data, stop + 1, end)
            if at >= end or data[at] != 58:
                return UNSURE
            at += 1
            state = VALUE
        elif mode == SHARED and is_known(data, at, end, slot, shared, last):
            number = last[slot]
            kinds[event, slot], numbers[event, slot] = shared[number, 3], number
            at += shared[number, 2] - shared[number, 1]
            state = AFTER
        elif c in (123, 91):
            if not open_container(c, at, depth, event, (slot, mode, child), stack, kinds):
                return UNSURE
            count = 0 if stack[depth, 0] == ROW_NODE else count
            depth += 1
            at += 1
            state = FIRST_VALUE if c == 91 else FIRST_NAME
            slot, mode = -1, SKIP
        elif depth == 0 or stack[depth - 1, 0] == ROWS_NODE:
            return UNSURE
        else:
            at = put_scalar(data, at, end, event, slot, mode, out, kept)
            state = AFTER
            if at < 0:
                return UNSURE


def is_known(data: Any, at: int, end: int, slot: int, shared: Any, last: Any) -> bool:
    """Whether the value is that of the event before."""
    number = last[slot]
    if number < 0:
        return False
    size = shared[number, 2] - shared[number, 1]
    return bool(at + size <= end and same_bytes(data, at, data, shared[number, 1], size))


def scan_events(
    data: Any,
    offsets: Any,
    names: Any,
    table: Any,
    kinds: Any,
    spans: Any,
    numbers: Any,
    rows: Any,
    sizes: Any,
    unsure: Any,
    shared: Any,
    last: Any,
    name_spans: Any,
    lists: Any,
    found: Any,
    stack: Any,
    root: int,
) -> int:
    """Reads all events; how many fitted into `rows`."""
    out = (kinds, spans, numbers, rows, sizes)
    kept = (shared, last, name_spans, lists, found)
    for event in range(len(offsets) - 1):
        if unsure[event]:
            continue
        before = sizes[ROW_COUNT]
        ended = scan_event(data, offsets[event], offsets[event + 1], event, root, names, table, stack, out, kept)
        if ended == FULL:
            sizes[ROW_COUNT] = before
            return event
        if ended == UNSURE:
            sizes[ROW_COUNT] = before
            unsure[event] = True
    return len(offsets) - 1
