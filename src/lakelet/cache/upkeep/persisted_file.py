"""The layout of a persisted file: a header, named pieces of bytes, and a checksum over all of it.

    "LKCACHE\n" | version u32 | header length u32 | header: JSON | pieces, one after the other | blake2b-256 of all before

    header    {"about": "…", "pieces": [["kind", ["name", …], length], …]}

All numbers are little-endian. `about` says what the file is about (a warehouse and a table), so that a file under a wrong name is
not taken for another. Nothing in a file is ever executed: there is JSON, and bytes that decoders of formats read.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

from lakelet.errors import CorruptionError

VERSION = 1
_MAGIC = b"LKCACHE\n"
_HEAD = struct.Struct("<II")
_DIGEST_BYTES = 32


@dataclass(frozen=True, slots=True)
class Piece:
    """Some bytes of a kind, under a name that may have several parts."""

    kind: str
    name: tuple[str, ...]
    data: bytes


def encode_file(about: str, pieces: Sequence[Piece]) -> list[bytes]:
    """The bytes of a file, in parts to be written one after the other: the pieces may be large, and are not copied."""
    listed = [[piece.kind, list(piece.name), len(piece.data)] for piece in pieces]
    header = json.dumps({"about": about, "pieces": listed}, separators=(",", ":")).encode()
    parts = [_MAGIC, _HEAD.pack(VERSION, len(header)), header, *(piece.data for piece in pieces)]
    digest = blake2b(digest_size=_DIGEST_BYTES)
    for part in parts:
        digest.update(part)
    return [*parts, digest.digest()]


def decode_file(data: bytes, about: str) -> list[Piece]:
    """The pieces of a file; CorruptionError where it is damaged, of another version or about something else."""
    start = len(_MAGIC) + _HEAD.size
    if len(data) < start + _DIGEST_BYTES or data[: len(_MAGIC)] != _MAGIC:
        raise CorruptionError("it is not a persisted cache file, or was cut off")
    version, length = _HEAD.unpack_from(data, len(_MAGIC))
    if version != VERSION:
        raise CorruptionError(f"it is of version {version}, expected {VERSION}")
    body = memoryview(data)[:-_DIGEST_BYTES]
    if blake2b(body, digest_size=_DIGEST_BYTES).digest() != data[-_DIGEST_BYTES:]:
        raise CorruptionError("its checksum is wrong")
    try:
        header = json.loads(bytes(body[start : start + length]))
        found = header["about"]
        listed = [(str(kind), tuple(map(str, name)), int(size)) for kind, name, size in header["pieces"]]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CorruptionError(f"its header cannot be read: {error}") from error
    if found != about:
        raise CorruptionError(f"it is about {found!r}, expected {about!r}")
    if any(size < 0 for *_, size in listed) or start + length + sum(size for *_, size in listed) != len(body):
        raise CorruptionError("its pieces do not fill it")
    pieces, at = [], start + length
    for kind, name, size in listed:
        pieces.append(Piece(kind, name, bytes(body[at : at + size])))
        at += size
    return pieces
