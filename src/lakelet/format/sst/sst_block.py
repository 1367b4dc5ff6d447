"""Store and check blocks of an SST file: compression and checksum.

    contents            as they are, or, if compressed, their length 4 and the compressed bytes
    compression   1     0 none, 1 snappy, 2 lz4 (the block format), 3 zstd
    CRC32         4     over all that is before it in the block

A block that compression would not make smaller is stored as it is.
"""

from __future__ import annotations

import struct
import threading
import zlib
from collections.abc import Sequence
from typing import Any

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
_OF_THREAD = threading.local()


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
        packed = memoryview(stored)[4:-TRAILER_BYTES]
        if name == "zstd":
            return _unzstd(packed, size)
        contents: bytes = _MADE[name].decompress(packed, size, asbytes=True)
    except (pa.ArrowException, OSError) as error:
        raise CorruptionError(f"{path}: the block at byte {at} is no {name}: {error}") from error
    return contents


def decode_blocks(stored: bytes, ends: Sequence[int], *, path: str, at: int) -> list[bytes]:
    """The contents of neighbouring blocks, the first of which begins at byte `at` of the file; `ends` are where each ends in
    `stored`."""
    view, contents, begin = memoryview(stored), [], 0
    unpack, crc32, zstd = _NUMBER.unpack_from, zlib.crc32, COMPRESSIONS["zstd"]
    for end in ends:
        # The short way for what most blocks are; everything else, and every error, is left to the long one.
        if end - begin > TRAILER_BYTES + _NUMBER.size and end <= len(stored) and stored[end - TRAILER_BYTES] == zstd:
            (size,) = unpack(stored, begin)
            if size <= _MOST_BYTES and crc32(view[begin : end - 4]) == unpack(stored, end - 4)[0]:
                try:
                    contents.append(_unzstd(view[begin + 4 : end - TRAILER_BYTES], size))
                    begin = end
                    continue
                except pa.ArrowInvalid:
                    pass
        contents.append(decode_block(stored[begin:end], path=path, at=at + begin))
        begin = end
    return contents


def _unzstd(packed: memoryview, size: int) -> bytes:
    """Decompress with a context that the thread keeps: Arrow makes one for every block, which takes longer than the block."""
    found: tuple[Any, type[Exception]] | None = getattr(_OF_THREAD, "zstd", None)
    if found is None:
        import zstandard  # noqa: PLC0415 - only files with this compression need it.

        found = _OF_THREAD.zstd = (zstandard.ZstdDecompressor(), zstandard.ZstdError)
    try:
        contents: bytes = found[0].decompress(packed, max_output_size=size)
    except found[1] as error:
        raise pa.ArrowInvalid(str(error)) from error
    if len(contents) != size:
        raise pa.ArrowInvalid(f"expected {size} bytes, found {len(contents)}")
    return contents
