"""The interpreters of a compiled schema: one decodes rows into columns, the other encodes columns into rows.

They are the inner loops of planning, so they are written in the subset of Python that numba compiles, and are the same
functions when it is absent: then `data` is bytes, the vectors are lists and the views are memoryviews. All
bounds are checked here, because compiled code has no other check: a read stays below `end`, a write below its limit.
Nothing here allocates; where a buffer is full the kernel undoes the row it is in and returns, and the caller makes
room. Views `u8`, `i32`, `i64` look at one buffer (the arena) that holds every slot, a column of cells; a slot's cells
are indexed in its own unit.

A program is one int64 vector, WIDTH numbers per instruction:

    OP      what to read or write
    SLOT    column of the values, or of the end offsets of bytes, arrays and maps; -1: not selected, skip
    AUX     BYTES: column of the bytes
    VALID   column of the validity (one byte each); -1: none
    NULL    index of the null branch of the [null, X] around the value; -1: the value is not optional
    ARG     FIXED: width; ENUM: number of symbols; ARRAY: least bytes of an item; ARRAY_END: position of its ARRAY;
            BRANCH: index of the member
    JUMP    position after the value's subtree
    LEVEL   how many arrays or maps are around the value

A record has no instruction of its own unless it can be null, and the null type has none at all. Array items are
between ARRAY and ARRAY_END, map entries likewise (key first). A union of one member is BRANCH and the member, and so
is the union of null and a record that some writers put around whole rows: a row cannot be null.
These numbers are defined here, and everything that is compiled together is in this file, because the machine code that
numba keeps on disk is thrown away only when this file changes.
"""

from __future__ import annotations

from typing import Any

OP, SLOT, AUX, VALID, NULL, ARG, JUMP, LEVEL, WIDTH = range(9)
INT, LONG, BYTES, FIXED, BOOLEAN, ENUM, RECORD, ARRAY, ARRAY_END, BRANCH = range(10)
DONE, FULL, TRUNCATED, BAD_BRANCH, BAD_LENGTH, BAD_VALUE, TRAILING, NULL_REQUIRED = range(8)

_LOW_63 = 0x7FFFFFFFFFFFFFFF
_LOW_57 = 0x01FFFFFFFFFFFFFF
_ROOM = 32


def copy_bytes(target: Any, at: int, source: Any, begin: int, length: int) -> None:
    """Copy a run of bytes; the compiled form is a loop."""
    target[at : at + length] = source[begin : begin + length]


def read_varint(data: Any, pos: int, end: int) -> tuple[int, int]:
    """The number at `pos` and the position after it; -1 if it goes past `end` or has more than 64 bits."""
    if pos >= end:
        return 0, -1
    byte = data[pos] + 0
    if byte < 128:
        return (byte >> 1) ^ -(byte & 1), pos + 1
    value = byte & 127
    shift = 7
    while True:
        pos += 1
        if pos >= end:
            return 0, -1
        byte = data[pos] + 0
        if shift == 63 and byte > 1:
            return 0, -1
        value |= (byte & 127) << shift
        if byte < 128:
            return ((value >> 1) & _LOW_63) ^ -(value & 1), pos + 1
        shift += 7


def push_nulls(code: Any, at: int, stop: int, u8: Any, i32: Any, i64: Any, nxt: Any, lim: Any) -> Any:
    """Give every column of the subtree [at, stop) the cell of an absent value; returns a full slot or -1."""
    first = at
    while at < stop:
        op = code[at + OP]
        valid = code[at + VALID]
        slot = code[at + SLOT]
        if valid >= 0 and at != first:
            if nxt[valid] >= lim[valid]:
                return valid
            u8[nxt[valid]] = 0
            nxt[valid] += 1
        if slot >= 0:
            cell = nxt[slot]
            step = code[at + ARG] if op == FIXED else 1
            if cell + step > lim[slot]:
                return slot
            if op in (BYTES, ARRAY):
                i32[cell] = i32[cell - 1]
            elif op in (INT, ENUM):
                i32[cell] = 0
            elif op == LONG:
                i64[cell] = 0
            else:
                for k in range(step):
                    u8[cell + k] = 0
            nxt[slot] = cell + step
        at = code[at + JUMP] if op == ARRAY else at + WIDTH
    return -1


def read_cell(
    code: Any, pc: int, data: Any, pos: int, end: int, u8: Any, i32: Any, i64: Any, nxt: Any, lim: Any
) -> tuple[int, int, int]:
    """Read one leaf into its slot, or past it; returns (status, position or full slot, cells of room needed)."""
    op = code[pc + OP]
    slot = code[pc + SLOT]
    if op == FIXED:
        size = code[pc + ARG]
        if size > end - pos:
            return TRUNCATED, pos, 0
        if slot >= 0:
            if nxt[slot] + size > lim[slot]:
                return FULL, slot, 1
            copy_bytes(u8, nxt[slot], data, pos, size)
            nxt[slot] += size
        return DONE, pos + size, 0
    value, after = read_varint(data, pos, end)
    if after < 0:
        return TRUNCATED, pos, 0
    if op == BYTES:
        if value < 0 or value > end - after:
            return BAD_LENGTH, pos, 0
        if slot >= 0:
            aux = code[pc + AUX]
            cell = nxt[slot]
            if cell >= lim[slot]:
                return FULL, slot, 1
            if value > lim[aux] - nxt[aux]:
                return FULL, aux, value
            i32[cell] = i32[cell - 1] + value
            nxt[slot] = cell + 1
            copy_bytes(u8, nxt[aux], data, after, value)
            nxt[aux] += value
        return DONE, after + value, 0
    if slot < 0:
        return DONE, after, 0
    cell = nxt[slot]
    if cell >= lim[slot]:
        return FULL, slot, 1
    nxt[slot] = cell + 1
    if op == LONG:
        i64[cell] = value
        return DONE, after, 0
    if op == BOOLEAN:
        # A boolean is one byte, 0 or 1; as a varint those read 0 and -1, and every other byte something else.
        if value not in (0, -1) or after != pos + 1:
            return BAD_VALUE, pos, 0
        u8[cell] = -value
        return DONE, after, 0
    if value < -0x80000000 or value > 0x7FFFFFFF or (op == ENUM and (value < 0 or value >= code[pc + ARG])):
        return BAD_VALUE, pos, 0
    i32[cell] = value
    return DONE, after, 0


def read_items(data: Any, pos: int, end: int, least: int, skip: bool) -> tuple[int, int]:
    """The head of the next run of array items: (items, position); -1 if it cannot be right.

    A run with a negative count tells its bytes too; with `skip` such runs are jumped over.
    """
    while True:
        items, pos = read_varint(data, pos, end)
        if pos < 0 or items <= -_LOW_63:
            return 0, -1
        size = -1
        if items < 0:
            items = -items
            size, pos = read_varint(data, pos, end)
            if pos < 0 or size < 0 or size > end - pos:
                return 0, -1
        if items > (end - pos) // least:
            return 0, -1
        if size < 0 or not skip:
            return items, pos
        pos += size


def decode_row(
    code: Any, data: Any, pos: int, end: int, u8: Any, i32: Any, i64: Any, nxt: Any, lim: Any, left: Any
) -> tuple[int, int, int, int]:
    """Decode the row at `pos`. Returns (status, position, instruction or full slot, room needed)."""
    stop = len(code)
    pc = 0
    while pc < stop:
        op = code[pc + OP]
        if code[pc + NULL] >= 0 or op == BRANCH:
            branch, after = read_varint(data, pos, end)
            if after < 0:
                return TRUNCATED, pos, pc, 0
            if branch != code[pc + ARG] if op == BRANCH else branch not in (0, 1):
                return BAD_BRANCH, pos, pc, 0
            pos = after
            valid = code[pc + VALID]
            absent = branch == code[pc + NULL]
            if valid >= 0:
                if nxt[valid] >= lim[valid]:
                    return FULL, pos, valid, 1
                u8[nxt[valid]] = 0 if absent else 1
                nxt[valid] += 1
            if absent:
                full = push_nulls(code, pc, code[pc + JUMP], u8, i32, i64, nxt, lim)
                if full >= 0:
                    return FULL, pos, full, 1
                pc = code[pc + JUMP]
                continue
        if op < RECORD:
            status, after, room = read_cell(code, pc, data, pos, end, u8, i32, i64, nxt, lim)
            if status != DONE:
                return status, pos, after if status == FULL else pc, room
            pos = after
        elif op in (ARRAY, ARRAY_END):
            slot = code[pc + SLOT]
            level = code[pc + LEVEL]
            head = pc
            if op == ARRAY_END:
                head = code[pc + ARG]
                left[level] -= 1
            else:
                level += 1
                left[level] = 0
                if slot >= 0:
                    if nxt[slot] >= lim[slot]:
                        return FULL, pos, slot, 1
                    i32[nxt[slot]] = i32[nxt[slot] - 1]
                    nxt[slot] += 1
            if left[level] == 0:
                items, pos = read_items(data, pos, end, code[head + ARG], slot < 0)
                if pos < 0:
                    return BAD_LENGTH, end, pc, 0
                if items == 0:
                    pc = code[head + JUMP]
                    continue
                left[level] = items
                if slot >= 0:
                    i32[nxt[slot] - 1] += items
            pc = head
        pc += WIDTH
    return DONE, pos, 0, 0


def decode_rows(
    code: Any, data: Any, pos: int, row: int, last: Any, ends: Any, u8: Any, i32: Any, i64: Any, nxt: Any, lim: Any,
    old: Any, left: Any,
) -> tuple[int, int, int, int, int]:  # fmt: skip
    """Decode blocks from `row`, at `pos`, on. Returns (status, row, position, instruction or full slot, room needed).

    Block b ends with row `last[b]` (exclusive) at position `ends[b]`. `nxt` and `lim` are the next cell and the limit
    of each slot, `old` is a scratch copy of `nxt`, `left` a scratch counter per nesting level.
    """
    for block in range(len(last)):
        while row < last[block]:
            for slot in range(len(nxt)):
                old[slot] = nxt[slot]
            status, after, where, room = decode_row(code, data, pos, ends[block], u8, i32, i64, nxt, lim, left)
            if status == FULL:
                for slot in range(len(nxt)):
                    nxt[slot] = old[slot]
                return FULL, row, pos, where, room
            if status != DONE:
                return status, row, after, where, 0
            pos = after
            row += 1
            if row == last[block] and pos != ends[block]:
                return TRAILING, row, pos, block, 0
    return DONE, row, pos, 0, 0


def write_varint(out: Any, at: int, value: int) -> int:
    """Write a number; returns the position after it. The caller has made sure of ten bytes of room."""
    rest = (value << 1) ^ (value >> 63)
    while rest < 0 or rest > 127:
        out[at] = (rest & 127) | 128
        at += 1
        rest = (rest >> 7) & _LOW_57
    out[at] = rest
    return at + 1


def write_cell(code: Any, pc: int, index: int, out: Any, pos: int, u8: Any, i32: Any, i64: Any, base: Any) -> Any:
    """Write one leaf; returns the position after it, or the negated size that `out` would need for it."""
    op = code[pc + OP]
    cell = base[code[pc + SLOT]] + index
    if op == BYTES:
        begin = i32[cell]
        length = i32[cell + 1] - begin
        if pos + length + _ROOM > len(out):
            return -(pos + length + _ROOM)
        pos = write_varint(out, pos, length)
        copy_bytes(out, pos, u8, base[code[pc + AUX]] + begin, length)
        return pos + length
    if op == FIXED:
        size = code[pc + ARG]
        if pos + size + _ROOM > len(out):
            return -(pos + size + _ROOM)
        copy_bytes(out, pos, u8, base[code[pc + SLOT]] + index * size, size)
        return pos + size
    if op == BOOLEAN:
        out[pos] = u8[cell]
        return pos + 1
    return write_varint(out, pos, i64[cell] if op == LONG else i32[cell] + 0)


def encode_rows(
    code: Any, row: int, rows: int, out: Any, target: int, u8: Any, i32: Any, i64: Any, base: Any, at: Any, until: Any
) -> tuple[int, int, int, int]:
    """Encode rows from `row` on, from the begin of `out`, until `target` bytes are there or the rows end.

    Returns (status, next row, bytes written, where or bytes wanted). `base` is the first cell of each slot (-1 for a
    validity slot: everything is valid), `at` and `until` are scratch: the current item per nesting level, and its end.
    """
    stop = len(code)
    pos = 0
    while row < rows and pos < target:
        begin = pos
        at[0] = row
        pc = 0
        while pc < stop:
            if pos + _ROOM > len(out):
                return FULL, row, begin, pos + _ROOM
            op = code[pc + OP]
            level = code[pc + LEVEL]
            index = at[level]
            valid = code[pc + VALID]
            null = code[pc + NULL]
            present = valid < 0 or base[valid] < 0 or u8[base[valid] + index] != 0
            if null >= 0:
                out[pos] = 2 if present == (null == 0) else 0
                pos += 1
                if not present:
                    pc = code[pc + JUMP]
                    continue
            elif not present:
                return NULL_REQUIRED, row, begin, pc
            if op < RECORD:
                after = write_cell(code, pc, index, out, pos, u8, i32, i64, base)
                if after < 0:
                    return FULL, row, begin, -after
                pos = after
            elif op == ARRAY:
                cell = base[code[pc + SLOT]] + index
                items = i32[cell + 1] - i32[cell]
                pos = write_varint(out, pos, items)
                if items == 0:
                    pc = code[pc + JUMP]
                    continue
                at[level + 1] = i32[cell]
                until[level + 1] = i32[cell + 1]
            elif op == ARRAY_END:
                at[level] += 1
                if at[level] < until[level]:
                    pc = code[pc + ARG]
                else:
                    out[pos] = 0
                    pos += 1
            elif op == BRANCH:
                out[pos] = code[pc + ARG] << 1
                pos += 1
            pc += WIDTH
        row += 1
    return DONE, row, pos, 0
