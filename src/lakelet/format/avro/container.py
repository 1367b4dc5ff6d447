"""Avro object container files: the envelope around encoded rows.

Lowest layer of the Avro codec. It owns the header, the block frames, the sync marker and the block codecs; it never
looks inside the rows of a block (`decode` and `encode` do) and never touches a store (callers hand it bytes).

    file   = "Obj" 0x01 | metadata | sync[16] | block*
    metadata = ( count:varint | (key:bytes | value:bytes){count} )* | 0      a negative count is followed by a byte size
    block  = rows:varint | size:varint | payload[size] | sync[16]
    bytes  = length:varint | byte{length}
    varint = zigzag, 7 bits per byte, lowest first, at most ten bytes

Metadata always has `avro.schema` (JSON) and may have `avro.codec`. A payload is the rows, one after another, after:
null (nothing), deflate (raw RFC 1951), zstandard (one frame), snappy (raw, then the CRC-32 of the rows, big-endian).
Whatever does not fit is a `CorruptionError` that names the file.
"""

from __future__ import annotations

import struct
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import zstandard

from lakelet.errors import CorruptionError, InvalidError

MAGIC = b"Obj\x01"
CODECS = ("null", "deflate", "zstandard", "snappy")
SYNC_BYTES = 16
MAX_BLOCK_BYTES = 2**31 - 1
"""Arrow's 32-bit offsets must be able to address one block, so a larger one is refused."""

_DEFAULT_LEVELS = {"deflate": 6, "zstandard": 1}


class _Damaged(ValueError):
    """The bytes do not decode; the caller adds the file to the message."""


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a container file; `size` is the offset of the first block."""

    schema_text: str
    metadata: Mapping[str, bytes]
    codec: str
    sync: bytes
    size: int


@dataclass(frozen=True, slots=True)
class Block:
    """One decompressed block: that many rows in these bytes; `position` is where its frame begins in the file."""

    rows: int
    data: bytes
    position: int


def corrupt(path: str, position: int, expected: str, found: str) -> CorruptionError:
    """The CorruptionError for a container file."""
    return CorruptionError(f"{path}: Avro file is corrupt at byte {position}: expected {expected}, found {found}")


def read_varint(data: bytes, position: int, path: str) -> tuple[int, int]:
    """The signed number at `position` and where the next value begins."""
    value = shift = 0
    for at in range(position, min(position + 10, len(data))):
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >= 1 << 64:
                break
            return (value >> 1) ^ -(value & 1), at + 1
        shift += 7
    else:
        if position + 10 > len(data):
            raise corrupt(path, position, "a number", "the end of the file")
    raise corrupt(path, position, "a number of at most 64 bits", "a longer one")


def write_varint(value: int) -> bytes:
    """The zigzag varint of a signed 64-bit number."""
    rest = (value << 1) ^ (value >> 63)
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def read_header(data: bytes, *, path: str) -> Header:
    """Parse the header of a container file."""
    if data[:4] != MAGIC:
        raise corrupt(path, 0, f"the magic {MAGIC!r}", repr(bytes(data[:4])))
    metadata: dict[str, bytes] = {}
    position = 4
    while True:
        count, position = read_varint(data, position, path)
        if count == 0:
            break
        if count < 0:
            count = -count
            _, position = read_varint(data, position, path)
        if count > len(data) - position:
            raise corrupt(path, position, "at most one metadata entry per byte", f"{count} entries")
        for _ in range(count):
            key, position = _read_bytes(data, position, path)
            value, position = _read_bytes(data, position, path)
            metadata[_text(key, position, path)] = value
    if len(data) - position < SYNC_BYTES:
        raise corrupt(path, position, "a sync marker", "the end of the file")
    if "avro.schema" not in metadata:
        raise corrupt(path, 4, "metadata with avro.schema", f"only {sorted(metadata)}")
    codec = _text(metadata.get("avro.codec", b"null"), position, path)
    if codec not in CODECS:
        raise InvalidError(f"{path}: Avro codec {codec!r} is not supported; supported are {', '.join(CODECS)}")
    return Header(
        schema_text=_text(metadata["avro.schema"], position, path),
        metadata=metadata,
        codec=codec,
        sync=data[position : position + SYNC_BYTES],
        size=position + SYNC_BYTES,
    )


def read_blocks(data: bytes, header: Header, *, path: str, wanted: Sequence[bool] | None = None) -> Iterator[Block]:
    """Every block, decompressed, in file order; the frame of each is checked before it is handed out.

    With `wanted`, a flag per block, the others are skipped without being decompressed.
    """
    decompress = _decompressor(header.codec)
    position = header.size
    number = -1
    while position < len(data):
        number += 1
        begin = position
        rows, position = read_varint(data, position, path)
        size, position = read_varint(data, position, path)
        if rows < 0:
            raise corrupt(path, begin, "a row count", str(rows))
        if size < 0 or size > len(data) - position:
            raise corrupt(path, begin, f"a block of at most {len(data) - position} bytes", f"one of {size} bytes")
        end = position + size
        sync = data[end : end + SYNC_BYTES]
        if sync != header.sync:
            raise corrupt(path, end, f"the sync marker {header.sync.hex()}", sync.hex() or "the end of the file")
        if wanted is not None:
            if number >= len(wanted):
                raise corrupt(path, begin, f"the end of the file after {len(wanted)} blocks", "another block")
            if not wanted[number]:
                position = end + SYNC_BYTES
                continue
        try:
            payload = decompress(data[position:end])
        except (zlib.error, zstandard.ZstdError, pa.ArrowException, OSError, ValueError, MemoryError) as error:
            raise corrupt(path, position, f"a {header.codec} block of {size} bytes", str(error)) from error
        yield Block(rows, payload, begin)
        position = end + SYNC_BYTES
    if wanted is not None and number + 1 != len(wanted):
        raise corrupt(path, position, f"{len(wanted)} blocks", f"the end of the file after {number + 1}")


def write_header(schema_text: str, *, codec: str, sync: bytes, metadata: Mapping[str, bytes]) -> bytes:
    """Everything before the first block."""
    if codec not in CODECS:
        raise InvalidError(f"Avro codec {codec!r} is not supported; supported are {', '.join(CODECS)}")
    if len(sync) != SYNC_BYTES:
        raise InvalidError(f"an Avro sync marker has {SYNC_BYTES} bytes, not {len(sync)}")
    if reserved := [key for key in metadata if key in ("avro.schema", "avro.codec")]:
        raise InvalidError(f"Avro metadata {', '.join(reserved)} is set by the writer and cannot be given")
    entries = {"avro.codec": codec.encode(), "avro.schema": schema_text.encode(), **metadata}
    parts = [MAGIC, write_varint(len(entries))]
    for key, value in entries.items():
        name = key.encode()
        parts += [write_varint(len(name)), name, write_varint(len(value)), value]
    return b"".join([*parts, b"\x00", sync])


def write_block(payload: bytes, *, rows: int, codec: str, level: int | None, sync: bytes) -> bytes:
    """One frame around the encoded rows."""
    body = _compress(payload, codec, _DEFAULT_LEVELS.get(codec, 0) if level is None else level)
    return b"".join([write_varint(rows), write_varint(len(body)), body, sync])


def _read_bytes(data: bytes, position: int, path: str) -> tuple[bytes, int]:
    length, begin = read_varint(data, position, path)
    if length < 0 or length > len(data) - begin:
        raise corrupt(path, position, f"at most {len(data) - begin} bytes", f"a length of {length}")
    return data[begin : begin + length], begin + length


def _text(value: bytes, position: int, path: str) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise corrupt(path, position, "UTF-8 text before this byte", repr(value[:40])) from error


class _Contexts(threading.local):
    """The zstandard contexts of a thread: making one takes longer than a small block, and no two threads may use the same."""

    def __init__(self) -> None:
        self.decompressor = zstandard.ZstdDecompressor()
        self._compressors: dict[int, zstandard.ZstdCompressor] = {}

    def compressor(self, level: int) -> zstandard.ZstdCompressor:
        """The context of that level."""
        found = self._compressors.get(level)
        if found is None:
            found = self._compressors[level] = zstandard.ZstdCompressor(level=level)
        return found


_contexts = _Contexts()


def _decompressor(codec: str) -> Callable[[bytes], bytes]:
    if codec == "null":
        return bytes
    if codec == "deflate":
        return _decompress_deflate
    if codec == "snappy":
        return _decompress_snappy
    return partial(_decompress_zstandard, _contexts.decompressor)


def _decompress_deflate(payload: bytes) -> bytes:
    inflate = zlib.decompressobj(-15)
    rows = inflate.decompress(payload, MAX_BLOCK_BYTES)
    # Some writers leave a part of zlib's four-byte checksum behind the stream, which says nothing here.
    return _finished(rows, inflate.eof, inflate.unused_data[4:])


def _finished(rows: bytes, complete: bool, rest: bytes) -> bytes:
    if not complete:
        raise _Damaged("a stream that ends early or is too large")
    if rest:
        raise _Damaged(f"{len(rest)} bytes after the end of the stream")
    return rows


def _decompress_zstandard(context: zstandard.ZstdDecompressor, payload: bytes) -> bytes:
    size = zstandard.frame_content_size(payload)
    if size > MAX_BLOCK_BYTES:
        raise _Damaged(f"a block of {size} bytes; at most {MAX_BLOCK_BYTES} are supported")
    if size > 0:
        return context.decompress(payload, allow_extra_data=False)
    # Java writes frames that do not tell their size.
    stream = context.decompressobj()
    return _finished(stream.decompress(payload), stream.eof, stream.unused_data)


def _decompress_snappy(payload: bytes) -> bytes:
    size, _ = _read_unsigned(payload)
    if len(payload) < 5 or size > MAX_BLOCK_BYTES:
        raise _Damaged(f"a snappy stream that claims {size} bytes")
    rows = pa.Codec("snappy").decompress(payload[:-4], size, asbytes=True)
    assert isinstance(rows, bytes)
    (expected,) = struct.unpack(">I", payload[-4:])
    if zlib.crc32(rows) != expected:
        raise _Damaged(f"checksum {zlib.crc32(rows):08x} instead of {expected:08x}")
    return rows


def _read_unsigned(payload: bytes) -> tuple[int, int]:
    value = 0
    for at, byte in enumerate(payload[:5]):
        value |= (byte & 0x7F) << 7 * at
        if byte < 0x80:
            return value, at + 1
    raise _Damaged("no length at its begin")


def _compress(payload: bytes, codec: str, level: int) -> bytes:
    if codec == "null":
        return payload
    if codec == "deflate":
        deflate = zlib.compressobj(level, zlib.DEFLATED, -15)
        return deflate.compress(payload) + deflate.flush()
    if codec == "zstandard":
        return _contexts.compressor(level).compress(payload)
    body = pa.Codec("snappy").compress(payload, asbytes=True)
    assert isinstance(body, bytes)
    return body + struct.pack(">I", zlib.crc32(payload))
