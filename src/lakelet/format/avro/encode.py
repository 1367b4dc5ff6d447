"""Encode Arrow columns into Avro rows, without a Python object per row.

The writing half of the codec, above the container: the arrays are flattened into one arena with a slot per column (the
same slots that decoding fills), and the kernel writes rows from it, block by block. It takes storage types (a date is
an int32); `logical` turns dates, decimals and the like into them. `container` draws the layout of the file; a row is
its fields one after another:

    int, long  zigzag varint          boolean      one byte            string, bytes  length:varint | byte{length}
    float      4 bytes, little-endian double       8 bytes             fixed          its bytes
    enum       index of the symbol    union        branch:varint | value
    array      items:varint | item{items} | 0      map  entries:varint | (key:string | value){entries} | 0
               (a lone 0 if empty)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelet.errors import InvalidError
from lakelet.format.avro import kernels
from lakelet.format.avro.compiled import compiled_kernel
from lakelet.format.avro.container import write_block, write_header
from lakelet.format.avro.program import Node, Program, compile_encoder
from lakelet.ids import RandomIds

BLOCK_BYTES = 1 << 18
"""Encoded rows per block before compression: large enough to compress well, small enough to hold several at once."""

_Bytes = np.ndarray[Any, np.dtype[np.uint8]]


def encode(
    rows: pa.StructArray | pa.Table,
    schema: dict[str, Any],
    *,
    codec: str = "zstandard",
    codec_level: int | None = None,
    metadata: Mapping[str, bytes] | Callable[[Sequence[int]], Mapping[str, bytes]] | None = None,
    sync: bytes | None = None,
    block_bytes: int = BLOCK_BYTES,
) -> bytes:
    """A whole container file. Fields are matched by name; an optional one that `rows` does not have is written as null.

    `metadata` goes into the header; where it speaks of blocks it is a function of the number of rows in each.
    `sync` is the marker between blocks, random unless given (give it where equal rows must make equal bytes).
    """
    text = json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
    try:
        program = compile_encoder(text)
    except (KeyError, TypeError, AttributeError) as error:
        raise InvalidError(f"not an Avro schema ({error!r}): {text[:200]}") from error
    if block_bytes < 1:
        raise InvalidError(f"an Avro block has at least one byte, not {block_bytes}")
    marker = random_sync() if sync is None else sync
    counts, blocks = [], []
    for batch in _batches(rows):
        for count, payload in _payloads(program, batch, block_bytes):
            counts.append(count)
            blocks.append(write_block(payload, rows=count, codec=codec, level=codec_level, sync=marker))
    about = metadata(counts) if callable(metadata) else metadata or {}
    return b"".join([write_header(text, codec=codec, sync=marker, metadata=about), *blocks])


def random_sync() -> bytes:
    """A marker that no block holds by accident: a UUID has just its sixteen bytes."""
    return bytes.fromhex(RandomIds().uuid().replace("-", ""))


def _batches(rows: pa.StructArray | pa.Table) -> Iterator[pa.StructArray]:
    if isinstance(rows, pa.Table):
        for batch in rows.combine_chunks().to_batches():
            yield batch.to_struct_array()
    elif isinstance(rows, pa.StructArray):
        yield rows
    else:
        raise InvalidError(f"Avro rows must be a struct array or a table, not {type(rows).__name__}")


class _Columns:
    """The flattened columns of one batch, collected slot by slot and then laid out in one arena."""

    def __init__(self, program: Program) -> None:
        self.slots = program.slots
        self.parts: list[_Bytes | None] = [None] * len(program.slots)

    def add(self, slot: int, cells: np.ndarray[Any, Any]) -> None:
        self.parts[slot] = np.ascontiguousarray(cells).reshape(-1).view(np.uint8)

    def lay_out(self) -> tuple[_Bytes, list[int]]:
        """The arena, and where each slot begins in it, in its unit; -1 for a slot that nothing was added to."""
        bases, end = [], 0
        for slot, part in zip(self.slots, self.parts, strict=True):
            bases.append(-1 if part is None else end // slot.unit)
            end += 0 if part is None else (len(part) + 7) & ~7
        arena = np.empty(max(end, 8), np.uint8)
        for slot, base, part in zip(self.slots, bases, self.parts, strict=True):
            if part is not None:
                arena[base * slot.unit : base * slot.unit + len(part)] = part
        return arena, bases


def _payloads(program: Program, batch: pa.StructArray, block_bytes: int) -> Iterator[tuple[int, bytes]]:
    """Encoded rows, about `block_bytes` at a time, with their number."""
    if batch.null_count:
        raise InvalidError("Avro rows must not be null themselves")
    columns = _Columns(program)
    _flatten(program.root, batch, columns)
    arena, bases = columns.lay_out()
    kernel = compiled_kernel("encode_rows", len(arena))
    out = np.empty(block_bytes + (block_bytes >> 2) + 1024, np.uint8)
    row, rows = 0, len(batch)
    if not len(program.code) and rows:
        yield rows, b""
        return
    while row < rows:
        status, following, size, where = _run(kernel, program, row, rows, out, block_bytes, arena, bases)
        if status == kernels.NULL_REQUIRED:
            raise InvalidError(f"Avro column {_path(program, where)} is required, but row {following} has a null in it")
        if following > row:
            yield following - row, out[:size].tobytes()
            row = following
        elif status == kernels.FULL:
            out = np.empty(max(2 * len(out), where + 1024), np.uint8)


def _run(
    kernel: Any, program: Program, row: int, rows: int, out: _Bytes, target: int, arena: _Bytes, bases: list[int]
) -> tuple[int, int, int, int]:
    """One call of the kernel, compiled or not."""
    result: tuple[int, int, int, int]
    depth = program.depth + 1
    if kernel is None:
        u8 = arena.data
        views = (u8, u8.cast("i"), u8.cast("q"))
        scratch = ([0] * depth, [0] * depth)
        return kernels.encode_rows(program.code.tolist(), row, rows, out.data, target, *views, bases, *scratch)
    vectors = (np.array(bases, np.int64), np.zeros(depth, np.int64), np.zeros(depth, np.int64))
    result = kernel(program.code, row, rows, out, target, arena, arena.view(np.int32), arena.view(np.int64), *vectors)
    return result


def _path(program: Program, where: int) -> str:
    """The column that the instruction at `where` writes."""
    wanted, pending = int(program.code[where + kernels.VALID]), [program.root]
    while pending:
        node = pending.pop()
        if node.valid == wanted:
            return node.path
        pending += node.children
    return "?"


def _flatten(node: Node, array: pa.Array, columns: _Columns) -> None:
    """Hand the cells of an array and its children to the slots of a node."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if array.null_count and node.valid >= 0:
        columns.add(node.valid, array.is_valid().to_numpy(zero_copy_only=False))
    if node.kind == "record":
        _flatten_record(node, array, columns)
    elif node.kind in ("array", "map"):
        _flatten_repeated(node, array, columns)
    elif node.kind in ("bytes", "string"):
        _flatten_bytes(node, array, columns)
    elif node.kind == "null":
        if array.null_count != len(array):
            raise InvalidError(f"Avro column {node.path} is of type null, but the rows have values in it")
    elif node.kind == "fixed":
        cells = _cast(node, array, node.type)
        begin, size = cells.offset * node.type.byte_width, len(cells) * node.type.byte_width
        columns.add(node.slot, np.frombuffer(cells.buffers()[1] or b"", np.uint8)[begin : begin + size])
    elif node.kind == "boolean":
        cells = _cast(node, array, node.type)
        columns.add(node.slot, pc.fill_null(cells, False).to_numpy(zero_copy_only=False).view(np.uint8))
    elif node.kind == "enum":
        codes = pc.index_in(_cast(node, array, node.type), pa.array(node.names, pa.string()))
        if codes.null_count > array.null_count:
            raise InvalidError(f"Avro column {node.path}: a value is none of the symbols {', '.join(node.names)}")
        columns.add(node.slot, pc.fill_null(codes, 0).to_numpy())
    else:
        columns.add(node.slot, pc.fill_null(_cast(node, array, node.type), 0).to_numpy())


def _flatten_record(node: Node, array: pa.Array, columns: _Columns) -> None:
    if not pa.types.is_struct(array.type):
        raise InvalidError(f"Avro column {node.path or 'rows'} is a record, but the rows have {array.type}")
    given = [array.type.field(i).name for i in range(array.type.num_fields)]
    if unknown := [name for name in given if name not in node.names]:
        raise InvalidError(f"the Avro schema has no column {', '.join(unknown)} in {node.path or 'its rows'}")
    # Below a null record there may be anything; flattening makes it null, so that no value is cast that is not written.
    members = array.flatten() if array.null_count else [array.field(i) for i in range(len(given))]
    for name, child in zip(node.names, node.children, strict=True):
        if name in given:
            _flatten(child, members[given.index(name)], columns)
        elif child.nullable:
            _flatten(child, pa.nulls(len(array), child.type), columns)
        else:
            raise InvalidError(f"Avro column {child.path} is required, but the rows do not have it")


def _flatten_repeated(node: Node, array: pa.Array, columns: _Columns) -> None:
    if node.kind == "array" and (pa.types.is_large_list(array.type) or pa.types.is_fixed_size_list(array.type)):
        array = array.cast(pa.list_(array.type.value_field))
    if not (pa.types.is_map(array.type) if node.kind == "map" else pa.types.is_list(array.type)):
        raise InvalidError(f"Avro column {node.path} is of type {node.kind}, but the rows have {array.type}")
    offsets, begin, length = item_span(array)
    columns.add(node.slot, offsets)
    items = (array.keys, array.items) if node.kind == "map" else (array.values,)
    for child, values in zip(node.children, items, strict=True):
        _flatten(child, values.slice(begin, length), columns)


def item_span(array: pa.Array) -> tuple[np.ndarray[Any, np.dtype[np.int32]], int, int]:
    """The offsets of a list or map array, from zero on, and which of its items (begin, length) they are about."""
    offsets = np.frombuffer(array.buffers()[1] or b"", np.int32)[array.offset : array.offset + len(array) + 1]
    if not len(offsets):
        return np.zeros(1, np.int32), 0, 0
    return offsets - offsets[0], int(offsets[0]), int(offsets[-1] - offsets[0])


def _flatten_bytes(node: Node, array: pa.Array, columns: _Columns) -> None:
    cells = _cast(node, array, node.type)
    _, offsets, data = cells.buffers()
    ends = np.frombuffer(offsets or bytes(4), np.int32)[cells.offset : cells.offset + len(cells) + 1]
    if not len(ends):
        ends = np.zeros(1, np.int32)
    # Only the bytes that this slice uses are copied.
    columns.add(node.slot, ends - ends[0])
    columns.add(node.aux, np.frombuffer(data or b"", np.uint8)[ends[0] : ends[-1]])


_ACCEPTED = {
    "int": pa.types.is_integer,
    "long": pa.types.is_integer,
    "float": pa.types.is_floating,
    "double": pa.types.is_floating,
    "boolean": pa.types.is_boolean,
}


def _cast(node: Node, array: pa.Array, target: pa.DataType) -> pa.Array:
    """The array in the storage type of its column; only casts that keep every value."""
    types = pa.types
    textual = types.is_string(array.type) or types.is_large_string(array.type) or types.is_string_view(array.type)
    binary = types.is_binary(array.type) or types.is_large_binary(array.type) or types.is_fixed_size_binary(array.type)
    if node.kind in _ACCEPTED:
        accepted = _ACCEPTED[node.kind](array.type)
    else:
        accepted = textual if node.kind in ("string", "enum") else binary
    if not accepted and not types.is_null(array.type):
        raise InvalidError(f"Avro column {node.path} is of type {node.kind}, but the rows have {array.type}")
    try:
        return array if array.type == target else array.cast(target)
    except pa.ArrowInvalid as error:
        raise InvalidError(f"Avro column {node.path} is of type {node.kind}: {error}") from error
