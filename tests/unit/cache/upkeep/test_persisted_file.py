"""The layout of a persisted file: whole, or refused."""

import struct

import pytest

from lakelet.cache.upkeep.persisted_file import Piece, decode_file, encode_file
from lakelet.errors import CorruptionError

PIECES = [
    Piece("manifest", ("m-1", "some", "_KIND"), b"\x00\x01"),
    Piece("snapshot pointer", ("main", "3"), b""),
    Piece("é", (), b"x" * 999),
]


def encoded(about: str, pieces: list[Piece]) -> bytes:
    return b"".join(encode_file(about, pieces))


def test_what_is_encoded_is_decoded() -> None:
    assert decode_file(encoded("w\nt", PIECES), "w\nt") == PIECES
    assert decode_file(encoded("", []), "") == []


def test_every_changed_byte_is_found() -> None:
    data = encoded("t", PIECES[:2])
    for place in range(len(data)):
        broken = bytearray(data)
        broken[place] ^= 0x55
        with pytest.raises(CorruptionError):
            decode_file(bytes(broken), "t")


def test_every_cut_is_found() -> None:
    data = encoded("t", PIECES[:2])
    for length in range(len(data)):
        with pytest.raises(CorruptionError):
            decode_file(data[:length], "t")
    with pytest.raises(CorruptionError):
        decode_file(data + b"\0", "t")


def test_another_version_or_another_table_is_refused() -> None:
    data = bytearray(encoded("t", PIECES))
    with pytest.raises(CorruptionError, match="is about 't', expected 'other'"):
        decode_file(bytes(data), "other")
    data[8:12] = struct.pack("<I", 2)
    with pytest.raises(CorruptionError, match="of version 2, expected 1"):
        decode_file(bytes(data), "t")
