"""Write an SST file: rows in key order, in batches of columns, to a stream of bytes.

    header 32 | data block … | meta | index | bloom | CRC32 4 | footer 48

The CRC32 before the footer is over everything before it and the footer. The parts are drawn in `sst_parts`, `sst_block`,
`entry_loops`, `record_loops` and `bloom_filter`. Memory is bounded by a batch; index and hashes of keys are kept until the end.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from lakelet.errors import InvalidError
from lakelet.format.sst.bloom_filter import BloomFilter, Hashes, hash_keys
from lakelet.format.sst.entry_loops import Bytes, Longs, entry_loop, layout_loop
from lakelet.format.sst.record_columns import RecordLayout, cells_of, record_sizes, write_records
from lakelet.format.sst.sst_block import encode_block
from lakelet.format.sst.sst_parts import (
    BlockPlace,
    SstFooter,
    SstIndex,
    SstMeta,
    encode_footer,
    encode_header,
    encode_index,
    encode_meta,
    last_separators,
)
from lakelet.model.types import Atomic, DataType, Field, Kind

FRONT_TYPES: tuple[DataType, ...] = (
    Atomic(Kind.BIGINT, nullable=False),
    Atomic(Kind.BIGINT, nullable=False),
    Atomic(Kind.TINYINT, nullable=False),
)
"""The columns in front of every value: schema id, sequence number, row kind."""
_KIND_PLACE = 2


class Sink(Protocol):
    """A stream that bytes are written to."""

    def write(self, data: bytes, /) -> object:
        """Write all of the bytes."""


@dataclass(frozen=True, slots=True)
class SstSettings:
    """How a file is laid out. With no bits per key it has no bloom filter."""

    block_bytes: int = 4096
    restart_interval: int = 16
    bloom_bits_per_key: int = 10
    compression: str = "none"
    delta_encoding: bool = True


def value_layout(fields: Sequence[Field], *, delta_encoding: bool) -> RecordLayout:
    """The layout of values of these columns."""
    types = (*FRONT_TYPES, *(field.type for field in fields))
    return RecordLayout.of(types, front=len(FRONT_TYPES), delta_encoding=delta_encoding, plain=(_KIND_PLACE,))


class SstWriter:
    """Writes one file. A writer whose `write` failed is not used again."""

    def __init__(
        self, sink: Sink, schema_id: int, fields: Sequence[Field], settings: SstSettings, *, create_ms: int
    ) -> None:
        self._sink = sink
        self._schema_id = schema_id
        self._fields = tuple(fields)
        self._settings = settings
        self._layout = value_layout(fields, delta_encoding=settings.delta_encoding)
        self._index = SstIndex([], [], [])
        self._last_keys: list[bytes] = []
        self._hashes: list[Hashes] = []
        self._rows = 0
        self._crc = 0
        self._offset = 0
        self._open: list[pa.Array] | None = None
        self._put(encode_header(settings.compression, create_ms))

    def write(self, keys: pa.Array, sequences: pa.Array, kinds: pa.Array, columns: Sequence[pa.Array]) -> None:
        """Write rows whose keys, in ascending order, are above those of all rows before. InvalidError for other keys."""
        self._encode([keys.cast(pa.large_binary()), sequences, kinds, *columns], last=False)

    def close(self) -> int:
        """Write what is left, and everything behind the rows; the size of the file."""
        self._encode(None, last=True)
        index = SstIndex(
            last_separators(self._last_keys, self._index.first_keys), self._index.places, self._index.first_keys
        )
        least, greatest = (self._index.first_keys[0], self._last_keys[-1]) if self._last_keys else (b"", b"")
        settings = self._settings
        meta = SstMeta(
            least,
            greatest,
            self._rows,
            settings.compression,
            settings.delta_encoding,
            self._schema_id,
            self._fields,
        )
        bloom = b""
        if settings.bloom_bits_per_key:
            hashes = np.concatenate([np.empty((0, 2), np.uint32), *self._hashes])
            bloom = BloomFilter.of(hashes, settings.bloom_bits_per_key).encode()
        places = [self._put(encode_block(part)) for part in (encode_meta(meta), encode_index(index), bloom)]
        footer = encode_footer(SstFooter(places[0], places[1], places[2], self._rows))
        checksum = zlib.crc32(footer, self._crc)
        self._put(checksum.to_bytes(4, "big") + footer)
        return self._offset

    def _put(self, data: bytes) -> BlockPlace:
        place = BlockPlace(self._offset, len(data))
        self._crc = zlib.crc32(data, self._crc)
        self._offset += len(data)
        self._sink.write(data)
        return place

    def _encode(self, columns: list[pa.Array] | None, *, last: bool) -> None:
        """Write all blocks that are full, or all rows; what is left waits for the next batch."""
        if self._open is not None and columns is not None:
            columns = [pa.concat_arrays(pair) for pair in zip(self._open, columns, strict=True)]
        columns = self._open if columns is None else columns
        self._open = None
        if columns is None or not len(columns[0]):
            return
        keys, key_at = _key_bytes(columns[0])
        if not last and self._last_keys and keys[key_at[0] : key_at[1]].tobytes() <= self._last_keys[-1]:
            raise _disordered(keys, key_at, 0)
        ids = pa.repeat(pa.scalar(self._schema_id, pa.int64()), len(columns[0]))
        cells = cells_of([ids, *columns[1:]], self._layout.types)
        if not cells.valid[: len(FRONT_TYPES)].all():
            raise InvalidError("a row has no sequence number or no row kind")
        sizes = record_sizes(cells, self._layout)
        rows = len(columns[0])
        restarts, shared, entry_at = np.zeros(rows, np.uint8), np.zeros(rows, np.int64), np.zeros(rows, np.int64)
        blocks, state = np.zeros((rows, 3), np.int64), np.zeros(2, np.int64)
        settings = self._settings
        run = layout_loop.for_bytes_or_interpreted(len(keys))
        run(
            keys, key_at, sizes, settings.restart_interval, settings.block_bytes, last, restarts, shared, entry_at, blocks, state
        )  # fmt: skip
        if state[1]:
            raise _disordered(keys, key_at, int(state[1]))
        blocks = blocks[: state[0]]
        done = int(blocks[-1, 2]) if len(blocks) else 0
        if done:
            out = np.empty(int(blocks[-1, 1]), np.uint8)
            record_at = np.zeros(done, np.int64)
            entry = entry_loop.for_bytes_or_interpreted(len(out))
            entry(keys, key_at, shared, entry_at[:done], restarts, sizes, out, record_at)
            whole = cells if done == rows else cells.first(done)
            write_records(whole, self._layout, restarts, record_at, out)
            self._write_blocks(out, blocks, restarts[:done], entry_at[:done], keys, key_at)
            self._hashes.append(hash_keys(keys, key_at[: done + 1]))
            self._rows += done
        if done < rows:
            self._open = [column.slice(done) for column in columns]

    def _write_blocks(
        self, out: Bytes, blocks: Longs, restarts: Bytes, entry_at: Longs, keys: Bytes, key_at: Longs
    ) -> None:
        """Write blocks whose entries are in place, with their restart points."""
        begins = np.append(0, blocks[:-1, 1])
        points = np.flatnonzero(restarts)
        of_block = np.searchsorted(blocks[:, 2], points, side="right")
        counts = np.bincount(of_block, minlength=len(blocks))
        number = np.arange(len(points)) - np.repeat(np.cumsum(counts) - counts, counts)
        _put_numbers(out, blocks[of_block, 0] + 4 * number, entry_at[points] - begins[of_block])
        _put_numbers(out, blocks[:, 1] - 4, counts)
        view, first = memoryview(out.data), 0
        for begin, end, behind in zip(begins.tolist(), blocks[:, 1].tolist(), blocks[:, 2].tolist(), strict=True):
            stored = encode_block(view[begin:end], self._settings.compression)
            self._index.places.append(self._put(stored))
            self._index.first_keys.append(keys[key_at[first] : key_at[first + 1]].tobytes())
            self._last_keys.append(keys[key_at[behind - 1] : key_at[behind]].tobytes())
            first = behind


def _key_bytes(keys: pa.Array) -> tuple[Bytes, Longs]:
    """The bytes of a `large_binary` column, and where each key begins and the last ends."""
    if keys.null_count:
        raise InvalidError("a row has no key")
    offsets = np.frombuffer(keys.buffers()[1], np.int64, len(keys) + 1, keys.offset * 8)
    data = np.frombuffer(keys.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
    return data, offsets - offsets[0]


def _put_numbers(out: Bytes, at: Longs, numbers: Longs) -> None:
    out[at[:, None] + np.arange(4)] = numbers.astype(">u4").view(np.uint8).reshape(-1, 4)


def _disordered(keys: Bytes, key_at: Longs, row: int) -> InvalidError:
    key = keys[key_at[row] : key_at[row + 1]].tobytes().hex()
    return InvalidError(f"keys of an SST file are in ascending order, each once; row {row} with the key {key} is not")
