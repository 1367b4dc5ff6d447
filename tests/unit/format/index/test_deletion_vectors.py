import json
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap, BitMap64

from lakelet.errors import CorruptionError, InvalidError
from lakelet.format.index.deletion_vectors import MAGIC_32, MAGIC_64, READ_SLACK, decode, encode
from tests.tiers.examples import examples

GOLDEN = json.loads((Path(__file__).parents[3] / "golden" / "deletion-vectors.json").read_text())
SMALL = np.array([1, 5, 70000])


def vector_32(bitmap: bytes) -> bytes:
    payload = struct.pack(">I", MAGIC_32) + bitmap
    return struct.pack(">I", len(payload)) + payload + struct.pack(">I", zlib.crc32(payload))


def vector_64(bitmaps: bytes) -> bytes:
    payload = struct.pack("<I", MAGIC_64) + bitmaps
    return struct.pack(">I", len(payload)) + payload + struct.pack(">I", zlib.crc32(payload))


@pytest.mark.parametrize("name", GOLDEN)
def test_vectors_of_java_are_read(name: str) -> None:
    case = GOLDEN[name]
    for form in ("bits32", "bits64"):
        if case[form] is not None:
            found = decode(bytes.fromhex(case[form]), path="index-1", cardinality=len(case["positions"]))
            assert found.dtype == np.int64
            assert found.tolist() == case["positions"]


@pytest.mark.parametrize("name", [name for name in GOLDEN if GOLDEN[name]["bits32"]])
def test_vectors_are_the_bytes_that_java_writes(name: str) -> None:
    positions = np.array(GOLDEN[name]["positions"], np.int64)
    assert encode(positions).hex() == GOLDEN[name]["bits32"]
    if GOLDEN[name]["bits64"] and len(positions):
        assert encode(positions, bits64=True).hex() == GOLDEN[name]["bits64"]


def test_the_next_vector_may_follow() -> None:
    data = encode(SMALL)
    assert decode(data + b"\x00\x00\x00\x16", path="index-1").tolist() == SMALL.tolist()
    assert len(data) - int.from_bytes(data[:4], "big") == READ_SLACK


# Blocks of every density, so that array, bitmap and run containers all occur.
blocks = st.tuples(st.integers(0, 40), st.integers(0, 60000), st.integers(1, 9000), st.sampled_from([1, 1, 2, 3, 7]))


@settings(max_examples=examples(60), deadline=None)
@given(parts=st.lists(blocks, max_size=6), optimized=st.booleans())
def test_equals_another_implementation(parts: list[tuple[int, int, int, int]], optimized: bool) -> None:
    positions = sorted({key * 65536 + start + i * step for key, start, n, step in parts for i in range(n)})
    other = BitMap(positions)
    encoded = encode(np.array(positions[::-1], np.int64))
    assert list(BitMap.deserialize(encoded[8:-4])) == positions
    if optimized:
        other.run_optimize()
    assert decode(vector_32(other.serialize()), path="index-1").tolist() == positions
    assert decode(encoded, path="index-1").tolist() == positions


@settings(max_examples=examples(30), deadline=None)
@given(positions=st.sets(st.integers(0, 2**40), max_size=50))
def test_64_bits_equal_another_implementation(positions: set[int]) -> None:
    assert decode(vector_64(BitMap64(positions).serialize()), path="index-1").tolist() == sorted(positions)


@pytest.mark.parametrize("at", range(len(encode(SMALL))))
def test_every_damaged_byte_is_noticed(at: int) -> None:
    data = bytearray(encode(SMALL))
    data[at] ^= 0x10
    with pytest.raises(CorruptionError, match="index-1"):
        decode(bytes(data), path="index-1")


@pytest.mark.parametrize("size", [0, 3, 11, 12, len(encode(SMALL)) - 1])
def test_a_truncated_vector_is_corruption(size: int) -> None:
    with pytest.raises(CorruptionError, match="index-1"):
        decode(encode(SMALL)[:size], path="index-1")


@pytest.mark.parametrize(
    "bitmap",
    [
        "",
        "39300000" + "00000000",  # An unknown cookie.
        "3a300000" + "ffffffff",  # More containers than there can be.
        "3a300000" + "01000000" + "0000" + "0100" + "10000000" + "0500",  # Two positions, one of them missing.
        "3a300000" + "01000000" + "0000" + "0100" + "10000000" + "05000500",  # The same position twice.
        "3a300000" + "01000000" + "0000" + "0000" + "10000000" + "0500" + "00",  # A byte too many.
        "3a300000" + "02000000" + "01000000" + "00000000" + "1800000019000000" + "0500" + "0500",  # Keys descend.
        "3b300000" + "01" + "0000" + "0500" + "0100" + "00000100",  # Six positions in a run of two.
        "3b300000" + "01" + "0000" + "0200" + "0100" + "feff0200",  # A run beyond the container.
        "3a300000" + "01000000" + "0000" + "ffff" + "10000000" + "00" * 8192,  # A bitmap with nothing in it.
    ],
)
def test_impossible_bitmaps_are_corruption(bitmap: str) -> None:
    with pytest.raises(CorruptionError, match="index-1"):
        decode(vector_32(bytes.fromhex(bitmap)), path="index-1")


@pytest.mark.parametrize(
    "bitmaps", ["ffffffffffffff7f", "0100000000000000" + "ffffffff" + "3a30000000000000", "02000000000000000000"]
)
def test_impossible_64_bit_vectors_are_corruption(bitmaps: str) -> None:
    with pytest.raises(CorruptionError, match="index-1"):
        decode(vector_64(bytes.fromhex(bitmaps)), path="index-1")


def test_another_count_than_the_manifest_gives_is_corruption() -> None:
    with pytest.raises(CorruptionError, match="3 positions, expected 4"):
        decode(encode(SMALL), path="index-1", cardinality=4)


@pytest.mark.parametrize("position", [-1, 2**31])
def test_positions_out_of_range_are_refused(position: int) -> None:
    with pytest.raises(InvalidError):
        encode(np.array([position]))
