"""Decode Avro rows into Arrow columns, without a Python object per row.

The reading half of the codec, above the container: blocks are decompressed, the kernel fills one arena with the cells
of all selected columns, and Arrow arrays are laid over it without copying. Manifests are read with this, so planning is
mostly this. It gives storage types (a date is an int32); `logical` gives them their meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from lakelet.errors import CorruptionError, InternalError, InvalidError
from lakelet.format.avro import kernels
from lakelet.format.avro.compiled import compiled_kernel
from lakelet.format.avro.container import Block, Header, corrupt, read_blocks, read_header
from lakelet.format.avro.program import Node, Program, compile_program, row_record
from lakelet.format.metadata.stored_json import load_json

BATCH_BYTES = 1 << 28
"""Encoded bytes decoded at once; far enough below 2 GiB for Arrow's 32-bit offsets."""

_FOUND = {
    kernels.TRUNCATED: ("a value", "the end of the block, or a number of more than 64 bits"),
    kernels.BAD_BRANCH: ("a branch of the union", "a number that is none"),
    kernels.BAD_LENGTH: ("a length that fits into the block", "another one"),
    kernels.BAD_VALUE: ("a value of the column's type", "one outside its range"),
    kernels.TRAILING: ("the end of the block after its last row", "more bytes"),
}
_OPERATIONS = ("int", "long", "bytes or string", "fixed", "boolean", "enum", "record", "array", "array", "union")
_Vector = np.ndarray[Any, np.dtype[np.int64]]
BlockChoice = Callable[[Mapping[str, bytes]], Sequence[bool] | None]

_FIRST_ROWS = 64
_GUESSED_CELLS = 16
_LEAST_CELLS = 2048


@dataclass(frozen=True, slots=True)
class FileSchema:
    """The writer schema of a file, and the metadata of its header."""

    schema: dict[str, Any]
    metadata: dict[str, bytes]


def read_schema(data: bytes, *, path: str) -> FileSchema:
    """The writer schema and the header's metadata; rows are not looked at."""
    header = read_header(data, path=path)
    try:
        schema = load_json(header.schema_text)
    except ValueError as error:
        raise CorruptionError(f"{path}: avro.schema in the header is not JSON: {error}") from error
    record = row_record(schema)
    if record is None:
        raise CorruptionError(f"{path}: avro.schema should be a record, found {header.schema_text[:80]}")
    return FileSchema(record, dict(header.metadata))


def decode(
    data: bytes, *, path: str, columns: Collection[str] | None = None, choose: BlockChoice | None = None
) -> pa.StructArray:
    """All rows of a container file as one struct array of storage types.

    `columns` are dotted paths ("_FILE._FILE_NAME"); a path selects everything below it, passes through arrays into
    their records, and takes a map only as a whole. Paths that the file does not have are absent from the result.
    `choose` is given the header's metadata and says which blocks to decode, None for all.
    """
    batches = list(decode_batches(data, path=path, columns=columns, choose=choose))
    try:
        return batches[0] if len(batches) == 1 else pa.concat_arrays(batches)
    except pa.ArrowInvalid as error:
        raise InvalidError(f"{path}: too large to decode into one array, take it in batches: {error}") from error


def decode_batches(
    data: bytes,
    *,
    path: str,
    columns: Collection[str] | None = None,
    batch_bytes: int = BATCH_BYTES,
    choose: BlockChoice | None = None,
) -> Iterator[pa.StructArray]:
    """Like `decode`, but a struct array per `batch_bytes` of encoded rows (at least one, at least a block each)."""
    header = read_header(data, path=path)
    program = _program(header, columns, path)
    pending: list[Block] = []
    size = 0
    wanted = None if choose is None else choose(header.metadata)
    for block in read_blocks(data, header, path=path, wanted=wanted):
        least = block.rows * program.least_bytes
        if least > len(block.data) or (not program.least_bytes and block.data):
            found = f"{block.rows} rows in {len(block.data)} bytes"
            raise corrupt(path, block.position, f"at least {program.least_bytes} bytes per row", found)
        if pending and size + len(block.data) > batch_bytes:
            yield _decode_blocks(program, pending, path)
            pending, size = [], 0
        pending.append(block)
        size += len(block.data)
    yield _decode_blocks(program, pending, path)


def _program(header: Header, columns: Collection[str] | None, path: str) -> Program:
    try:
        return compile_program(header.schema_text, columns)
    except InvalidError as error:
        raise InvalidError(f"{path}: {error}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptionError(f"{path}: avro.schema in the header is no Avro schema: {error!r}") from error


class _Arena:
    """The cells of every slot in one buffer; a slot is moved to a larger place when it is full."""

    def __init__(self, program: Program, rows: int) -> None:
        self.program = program
        self.rows = rows
        guess = max(min(rows, _FIRST_ROWS) * _GUESSED_CELLS, _LEAST_CELLS)
        self.capacity = [(guess if slot.growing else rows) + slot.offsets for slot in program.slots]
        self.used = [int(slot.offsets) for slot in program.slots]
        self._lay_out(None)

    def _lay_out(self, old: np.ndarray[Any, np.dtype[np.uint8]] | None) -> None:
        begins = getattr(self, "begins", [])
        self.begins, end = [], 0
        for slot, capacity in zip(self.program.slots, self.capacity, strict=True):
            self.begins.append(end)
            end += (capacity * slot.width + 63) & ~63
        self.buffer = np.empty(end, np.uint8)
        for s, slot in enumerate(self.program.slots):
            if old is not None:
                length = self.used[s] * slot.width
                self.buffer[self.begins[s] : self.begins[s] + length] = old[begins[s] : begins[s] + length]
            elif slot.offsets:
                self.buffer[self.begins[s] : self.begins[s] + 4] = 0

    def cursors(self) -> tuple[list[int], list[int]]:
        """The next cell and the limit of every slot, in its unit."""
        nxt, lim = [], []
        for s, slot in enumerate(self.program.slots):
            begin, scale = self.begins[s] // slot.unit, slot.width // slot.unit
            nxt.append(begin + self.used[s] * scale)
            lim.append(begin + self.capacity[s] * scale)
        return nxt, lim

    def advance(self, nxt: list[int]) -> None:
        """Store the cursors that a kernel returned."""
        for s, slot in enumerate(self.program.slots):
            self.used[s] = (nxt[s] * slot.unit - self.begins[s]) // slot.width

    def grow(self, full: int, room: int, done: int) -> None:
        """Grow a slot: to the size extrapolated from the rows so far, and at least twice the full slot."""
        for s, slot in enumerate(self.program.slots):
            if slot.growing:
                expected = self.used[s] * self.rows // max(done, 1)
                self.capacity[s] = max(self.capacity[s], expected + expected // 8)
        self.capacity[full] = max(self.capacity[full], 2 * self.capacity[full], self.used[full] + 2 * room)
        self._lay_out(self.buffer)

    def cells(self, slot: int, dtype: str) -> np.ndarray[Any, Any]:
        """The filled cells of a slot."""
        begin = self.begins[slot]
        return self.buffer[begin : begin + self.used[slot] * self.program.slots[slot].width].view(dtype)


def _decode_blocks(program: Program, blocks: list[Block], path: str) -> pa.StructArray:
    rows = sum(block.rows for block in blocks)
    arena = _Arena(program, rows if len(program.code) else 0)
    if len(program.code):
        _fill(program, arena, blocks, path)
    try:
        return _assemble(program.root, arena, rows)
    except pa.ArrowInvalid as error:
        raise CorruptionError(f"{path}: Avro file is corrupt: {error}") from error


def _fill(program: Program, arena: _Arena, blocks: list[Block], path: str) -> None:
    """Run the kernel over the blocks, growing slots whenever it needs more room."""
    data = blocks[0].data if len(blocks) == 1 else b"".join([block.data for block in blocks])
    last = np.cumsum([block.rows for block in blocks], dtype=np.int64)
    ends = np.cumsum([len(block.data) for block in blocks], dtype=np.int64)
    kernel = compiled_kernel("decode_rows", len(data))
    row = position = 0
    while True:
        status, row, position, where, room = _run(kernel, program, arena, data, position, row, last, ends)
        if status == kernels.DONE:
            return
        if status == kernels.FULL:
            arena.grow(where, room, row)
            continue
        index = int(np.searchsorted(ends, position, side="left"))
        begin = int(ends[index]) - len(blocks[index].data)
        name = f"{path}: block at byte {blocks[index].position}, row {row}"
        expected, found = _FOUND[status]
        if status != kernels.TRAILING:
            operation = _OPERATIONS[int(program.code[where + kernels.OP])]
            expected = f"{expected} ({operation}, instruction {where // kernels.WIDTH})"
        raise corrupt(name, position - begin, expected, found)


def _run(
    kernel: Any, program: Program, arena: _Arena, data: bytes, position: int, row: int, last: _Vector, ends: _Vector
) -> tuple[int, int, int, int, int]:
    """One call of the kernel, compiled or not; the arena's cursors are brought up to date."""
    nxt, lim = arena.cursors()
    result: tuple[int, int, int, int, int]
    if kernel is None:
        u8 = arena.buffer.data
        views = (u8, u8.cast("i"), u8.cast("q"))
        code, left = program.code.tolist(), [0] * (program.depth + 1)
        result = kernels.decode_rows(
            code, data, position, row, last.tolist(), ends.tolist(), *views, nxt, lim, list(nxt), left
        )
        arena.advance(nxt)
        return result
    buffer, cursors = arena.buffer, np.array(nxt, np.int64)
    result = kernel(
        program.code,
        np.frombuffer(data, np.uint8),
        position,
        row,
        last,
        ends,
        buffer,
        buffer.view(np.int32),
        buffer.view(np.int64),
        cursors,
        np.array(lim, np.int64),
        np.empty(len(nxt), np.int64),
        np.zeros(program.depth + 1, np.int64),
    )
    arena.advance(cursors.tolist())
    return result


def _assemble(node: Node, arena: _Arena, length: int) -> pa.Array:
    """Lay an Arrow array over the cells of a node and its children."""
    if node.kind == "null":
        return pa.nulls(length)
    validity, nulls = _validity(node, arena)
    if node.kind == "record":
        children = [_assemble(child, arena, length) for child in node.children]
        return pa.StructArray.from_buffers(node.type, length, [validity], nulls, 0, children)
    if node.kind in ("array", "map"):
        offsets = arena.cells(node.slot, "<i4")
        parts = [_assemble(child, arena, int(offsets[-1])) for child in node.children]
        if node.kind == "map":
            entry = pa.struct([node.type.key_field, node.type.item_field])
            parts = [pa.StructArray.from_buffers(entry, int(offsets[-1]), [None], 0, 0, parts)]
        return pa.Array.from_buffers(node.type, length, [validity, pa.py_buffer(offsets)], nulls, 0, parts)
    if node.kind in ("bytes", "string"):
        buffers = [validity, pa.py_buffer(arena.cells(node.slot, "<i4")), pa.py_buffer(arena.cells(node.aux, "u1"))]
        array = pa.Array.from_buffers(node.type, length, buffers, nulls)
        if node.kind == "string":
            array.validate(full=True)
        return array
    if node.kind == "enum":
        codes = pa.Array.from_buffers(
            pa.int32(), length, [validity, pa.py_buffer(arena.cells(node.slot, "<i4"))], nulls
        )
        return pa.array(node.names, pa.string()).take(codes)
    cells = arena.cells(node.slot, "u1")
    if node.kind == "boolean":
        cells = np.packbits(cells, bitorder="little")
    if node.kind not in ("int", "long", "float", "double", "fixed", "boolean"):
        raise InternalError(f"no Arrow form for an Avro {node.kind}")
    return pa.Array.from_buffers(node.type, length, [validity, pa.py_buffer(cells)], nulls)


def _validity(node: Node, arena: _Arena) -> tuple[pa.Buffer | None, int]:
    if node.valid < 0:
        return None, 0
    cells = arena.cells(node.valid, "u1")
    nulls = len(cells) - int(np.count_nonzero(cells))
    return (pa.py_buffer(np.packbits(cells, bitorder="little")) if nulls else None), nulls
