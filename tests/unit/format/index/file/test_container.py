"""The container of file indexes: what goes in comes out, and damage is told."""

from __future__ import annotations

import pytest

from lakelet.errors import CorruptionError
from lakelet.format.index.file.container import decode_indexes, encode_indexes

INDEXES = {"id": {"bloom-filter": b"abc", "bitmap": None}, "größe": {"bloom-filter": b""}}


def test_the_layout() -> None:
    assert encode_indexes({"a": {"b": b"xy"}}).hex() == (
        "00054e4ed01a35ae000000010000002a00000001000161000000010001620000002a00000002000000007879"
    )


def test_round_trip() -> None:
    assert decode_indexes(encode_indexes(INDEXES), where="f") == INDEXES


@pytest.mark.parametrize("cut", range(0, len(encode_indexes(INDEXES)) - 1, 3))
def test_a_cut_container_is_told(cut: int) -> None:
    with pytest.raises(CorruptionError):
        decode_indexes(encode_indexes(INDEXES)[:cut], where="f")


def test_another_magic_is_told() -> None:
    with pytest.raises(CorruptionError, match="expected a file index of version 1"):
        decode_indexes(b"\1" * 60, where="f")
