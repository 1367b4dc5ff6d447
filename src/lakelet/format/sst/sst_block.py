"""Store and check blocks of an SST file: compression and checksum.

    contents            as they are, or, if compressed, their length 4 and the compressed bytes
    compression   1     0 none, 1 snappy, 2 lz4 (the block format), 3 zstd
    CRC32         4     over all that is before it in the block

A block that compression would not make smaller is stored as it is.
"""

from __future__ import annotations

import struct
import zlib

import pyarrow as pa

from lakelet.errors import CorruptionError, InvalidError

TRAILER_BYTES = 5
COMPRESSIONS = {"none": 0, "snappy": 1, "lz4": 2, "zstd": 3}
_NAMES = {number: name for name, number in COMPRESSIONS.items()}
_CODECS = {"snappy": "snappy", "lz4": "lz4_raw", "zstd": "zstd"}
_NUMBER = struct.Struct(">I")
_MOST_BYTES = 1 << 30
# Making a codec takes longer than a block of 4 KB.
_MADE = {name: pa.Codec(codec) for name, codec in _CODECS.items()}


def compression_number(name: str) -> int:
    """The number of a compression. InvalidError for one that SST files do not have."""
    if name not in COMPRESSIONS:
        raise InvalidError(f"compression {name!r}: SST files know {', '.join(COMPRESSIONS)}")
    return COMPRESSIONS[name]


def compression_name(number: int, *, path: str) -> str:
    """The name of a compression."""
    if number not in _NAMES:
        raise CorruptionError(f"{path}: expected a compression from 0 to {max(_NAMES)}, found {number}")
    return _NAMES[number]


def encode_block(contents: bytes | memoryview, compression: str = "none") -> bytes:
    """The bytes of a block in the file."""
    stored, number = contents, 0
    if compression != "none":
        packed = _MADE[compression].compress(contents, asbytes=True)
        if len(packed) + _NUMBER.size < len(contents):
            stored, number = _NUMBER.pack(len(contents)) + packed, COMPRESSIONS[compression]
    body = b"".join((stored, bytes((number,))))
    return body + _NUMBER.pack(zlib.crc32(body))


def decode_block(stored: bytes, *, path: str, at: int) -> bytes:
    """The contents of a block that begins at byte `at` of the file. CorruptionError where they are not what was written."""
    if len(stored) < TRAILER_BYTES:
        raise CorruptionError(f"{path}: the block at byte {at} ends before its checksum")
    body = memoryview(stored)[:-4]
    (expected,) = _NUMBER.unpack_from(stored, len(stored) - 4)
    found = zlib.crc32(body)
    if found != expected:
        raise CorruptionError(f"{path}: the block at byte {at} has the CRC32 {found:08x}, expected {expected:08x}")
    name = compression_name(stored[-TRAILER_BYTES], path=path)
    if name == "none":
        return stored[:-TRAILER_BYTES]
    (size,) = _NUMBER.unpack_from(stored)
    try:
        if size > _MOST_BYTES:
            raise pa.ArrowInvalid(f"{size} bytes")
        contents: bytes = _MADE[name].decompress(memoryview(stored)[4:-TRAILER_BYTES], size, asbytes=True)
    except (pa.ArrowException, OSError) as error:
        raise CorruptionError(f"{path}: the block at byte {at} is no {name}: {error}") from error
    return contents
