"""The container of a data file's indexes: a head that says where each column's indexes lie, and their bytes.

    magic        int64    1493475289347502
    version      int32    1
    head length  int32    of everything before the body
    columns      int32, each:
      name       uint16 length, UTF-8
      indexes    int32, each:
        type     uint16 length, UTF-8             "bloom-filter", "bitmap", …
        start    int32    from the begin of the container; -1: the column holds no value
        length   int32
    redundant    int32 length, bytes              none in this version
    body         the indexes, one after another

Numbers are big-endian. Java writes names in its own form of UTF-8, which differs for U+0000 and outside of the BMP alone.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from lakelet.errors import CorruptionError

MAGIC = 1493475289347502
VERSION = 1
NO_VALUES = -1
_FIXED = struct.Struct(">qii")
_INT = struct.Struct(">i")
_PAIR = struct.Struct(">ii")
_LENGTH = struct.Struct(">H")

Indexes = Mapping[str, Mapping[str, bytes | None]]
"""The indexes of each column by their types; None for one that says the column holds no value."""


def encode_indexes(indexes: Indexes) -> bytes:
    """The bytes of a container."""
    names = {name: (_text(name), {kind: _text(kind) for kind in found}) for name, found in indexes.items()}
    length = _FIXED.size + 2 * _INT.size
    for column, kinds in names.values():
        length += len(column) + _INT.size + sum(len(kind) + _PAIR.size for kind in kinds.values())
    head, body = [_FIXED.pack(MAGIC, VERSION, length), _INT.pack(len(indexes))], bytearray()
    for name, found in indexes.items():
        column, kinds = names[name]
        head += [column, _INT.pack(len(found))]
        for kind, data in found.items():
            head.append(kinds[kind])
            head.append(_PAIR.pack(NO_VALUES, 0) if data is None else _PAIR.pack(length + len(body), len(data)))
            body += data or b""
    return b"".join([*head, _INT.pack(0), body])


def decode_indexes(data: bytes, *, where: str) -> dict[str, dict[str, bytes | None]]:
    """The indexes of a container; errors name `where`."""
    try:
        magic, version, length = _FIXED.unpack_from(data)
        if magic != MAGIC or version != VERSION:
            raise CorruptionError(f"{where}: expected a file index of version {VERSION}, found {magic} and {version}")
        if not _FIXED.size < length <= len(data):
            raise CorruptionError(f"{where}: a head of {length} bytes does not fit a file index of {len(data)}")
        return _columns(data, _FIXED.size, where)
    except (struct.error, UnicodeDecodeError, IndexError) as error:
        raise CorruptionError(f"{where} is no file index: {error}") from error


def _columns(data: bytes, at: int, where: str) -> dict[str, dict[str, bytes | None]]:
    found: dict[str, dict[str, bytes | None]] = {}
    (columns,) = _INT.unpack_from(data, at)
    at += _INT.size
    for _ in range(columns):
        column, at = _read_text(data, at)
        (count,) = _INT.unpack_from(data, at)
        at += _INT.size
        kinds = found.setdefault(column, {})
        for _ in range(count):
            kind, at = _read_text(data, at)
            start, length = _PAIR.unpack_from(data, at)
            at += _PAIR.size
            if start == NO_VALUES:
                kinds[kind] = None
                continue
            if start < 0 or length < 0 or start + length > len(data):
                raise CorruptionError(f"{where}: the {kind} index of {column!r} ends behind the file")
            kinds[kind] = data[start : start + length]
    return found


def _text(text: str) -> bytes:
    data = text.encode()
    return _LENGTH.pack(len(data)) + data


def _read_text(data: bytes, at: int) -> tuple[str, int]:
    (length,) = _LENGTH.unpack_from(data, at)
    begin = at + _LENGTH.size
    if begin + length > len(data):
        raise IndexError(f"a name of {length} bytes at {at} ends behind the file")
    return data[begin : begin + length].decode(), begin + length
