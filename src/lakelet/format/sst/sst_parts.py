"""Encode and decode the parts of an SST file around its data blocks: header, meta, index, footer.

Numbers are big-endian; a varint has seven bits in each byte, the least significant first, and the high bit set in all but the
last.

    header   magic 4 "LSST", version 4, compression 1, create timestamp 8 (milliseconds), zeros up to 32 bytes
    meta     least key, greatest key (each: varint length, bytes), row count 8, compression 1, encoding 1 (1: delta), schema
             (varint length, JSON: schemaId, fields)
    index    for each data block: separator (varint length, bytes), offset 8, size 4, first-key length 4, first key
    footer   (offset 8, size 4) of meta, of index, of bloom; row count 8; magic 4

Sizes are those of whole blocks, with compression and CRC32.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lakelet.errors import CorruptionError, InvalidError
from lakelet.format.metadata.schema_json import decode_type, encode_type
from lakelet.format.sst.sst_block import compression_name, compression_number
from lakelet.format.wal.wal_record import encode_varint
from lakelet.model.types import Field

MAGIC = b"LSST"
VERSION = 1
HEADER_BYTES = 32
FOOTER_BYTES = 48
CHECKSUM_BYTES = 4
_HEADER = struct.Struct(">4sIBq")
_FOOTER = struct.Struct(">QIQIQIQ4s")
_META = struct.Struct(">QBB")
_HANDLE = struct.Struct(">QII")
_DELTA = 1


@dataclass(frozen=True, slots=True)
class BlockPlace:
    """Where a block is: its offset, and its size with the trailer."""

    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class SstMeta:
    """What an SST file holds."""

    min_key: bytes
    max_key: bytes
    row_count: int
    compression: str
    delta_encoding: bool
    schema_id: int
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class SstFooter:
    """Where the other parts are."""

    meta: BlockPlace
    index: BlockPlace
    bloom: BlockPlace
    row_count: int


@dataclass(frozen=True, slots=True)
class SstIndex:
    """The data blocks: separators to search by, their places and first keys."""

    separators: list[bytes]
    places: list[BlockPlace]
    first_keys: list[bytes]


def encode_header(compression: str, create_ms: int) -> bytes:
    """The first 32 bytes."""
    return _HEADER.pack(MAGIC, VERSION, compression_number(compression), create_ms).ljust(HEADER_BYTES, b"\0")


def decode_header(data: bytes, *, path: str) -> tuple[str, int]:
    """Compression and create timestamp. InvalidError for another version, CorruptionError for what is no SST file."""
    if len(data) < HEADER_BYTES or data[:4] != MAGIC:
        raise CorruptionError(f"{path}: expected an SST file that begins with {MAGIC!r}, found {data[:4]!r}")
    _, version, compression, create_ms = _HEADER.unpack_from(data)
    if version != VERSION:
        raise InvalidError(f"{path}: expected an SST file of version {VERSION}, found version {version}")
    if data[_HEADER.size : HEADER_BYTES].strip(b"\0"):
        raise CorruptionError(f"{path}: expected zeros at the end of the header, found {data[_HEADER.size :].hex()}")
    return compression_name(compression, path=path), create_ms


def encode_meta(meta: SstMeta) -> bytes:
    """The contents of the meta block."""
    fields = [{"id": field.id, "name": field.name, "type": encode_type(field.type)} for field in meta.fields]
    schema = json.dumps({"schemaId": meta.schema_id, "fields": fields}, ensure_ascii=False).encode()
    numbers = _META.pack(meta.row_count, compression_number(meta.compression), _DELTA if meta.delta_encoding else 0)
    return b"".join((_sized(meta.min_key), _sized(meta.max_key), numbers, _sized(schema)))


def decode_meta(data: bytes, *, path: str) -> SstMeta:
    """What a meta block says."""
    try:
        least, at = _taken(data, 0)
        greatest, at = _taken(data, at)
        rows, compression, encoding = _META.unpack_from(data, at)
        schema, _ = _taken(data, at + _META.size)
        value: Any = json.loads(schema)
        fields = tuple(Field(one["id"], one["name"], decode_type(one["type"])) for one in value["fields"])
        schema_id = int(value["schemaId"])
    except (ValueError, KeyError, TypeError, IndexError, struct.error, InvalidError) as error:
        raise CorruptionError(f"{path}: its meta block cannot be read: {error}") from error
    name = compression_name(compression, path=path)
    return SstMeta(least, greatest, rows, name, bool(encoding & _DELTA), schema_id, fields)


def encode_index(index: SstIndex) -> bytes:
    """The contents of the index block."""
    parts: list[bytes] = []
    for separator, place, first in zip(index.separators, index.places, index.first_keys, strict=True):
        parts += (_sized(separator), _HANDLE.pack(place.offset, place.size, len(first)), first)
    return b"".join(parts)


def decode_index(data: bytes, *, path: str) -> SstIndex:
    """The data blocks of an index block."""
    index, at = SstIndex([], [], []), 0
    try:
        while at < len(data):
            separator, at = _taken(data, at)
            offset, size, length = _HANDLE.unpack_from(data, at)
            at += _HANDLE.size
            index.separators.append(separator)
            index.places.append(BlockPlace(offset, size))
            index.first_keys.append(data[at : at + length])
            at += length
    except (IndexError, struct.error) as error:
        raise CorruptionError(f"{path}: its index cannot be read: {error}") from error
    if at != len(data) or any(a >= b for a, b in zip(index.separators, index.separators[1:], strict=False)):
        raise CorruptionError(f"{path}: its index is not in order")
    return index


def encode_footer(footer: SstFooter) -> bytes:
    """The last 48 bytes."""
    places = [number for place in (footer.meta, footer.index, footer.bloom) for number in (place.offset, place.size)]
    return _FOOTER.pack(*places, footer.row_count, MAGIC)


def decode_footer(data: bytes, size: int, *, path: str) -> SstFooter:
    """The footer of a file of `size` bytes. CorruptionError where it points beyond the file."""
    if len(data) != FOOTER_BYTES or data[-4:] != MAGIC:
        raise CorruptionError(f"{path}: expected an SST file that ends with {MAGIC!r}, found {data[-4:]!r}")
    numbers = _FOOTER.unpack(data)
    places = [BlockPlace(numbers[at], numbers[at + 1]) for at in (0, 2, 4)]
    end = size - FOOTER_BYTES - CHECKSUM_BYTES
    if any(place.offset < HEADER_BYTES or place.offset + place.size > end for place in places):
        raise CorruptionError(f"{path}: its footer points beyond the file, which has {size} bytes")
    return SstFooter(places[0], places[1], places[2], numbers[6])


def separator(last: bytes, first: bytes) -> bytes:
    """The shortest bytes that are not less than the last key of a block, and less than the first key of the next."""
    common = 0
    while common < len(last) and last[common] == first[common]:
        common += 1
    for size in range(common + 1, len(last)):
        # A byte of the last key is raised, and what follows it is cut.
        if last[size - 1] < 0xFF and (raised := last[: size - 1] + bytes((last[size - 1] + 1,))) < first:
            return raised
        if size < len(first) and first[:size] >= last:
            return first[:size]
    return last


def last_separators(last_keys: Sequence[bytes], first_keys: Sequence[bytes]) -> list[bytes]:
    """The separators of all blocks; that of the last one is its last key."""
    pairs = zip(last_keys, first_keys[1:], strict=False)
    return [*(separator(last, first) for last, first in pairs), *last_keys[-1:]]


def _sized(data: bytes) -> bytes:
    return encode_varint(len(data)) + data


def _taken(data: bytes, at: int) -> tuple[bytes, int]:
    length = shift = 0
    while True:
        byte = data[at]
        at += 1
        length |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            break
    if at + length > len(data):
        raise IndexError(f"{length} bytes at {at} reach beyond {len(data)}")
    return data[at : at + length], at + length
