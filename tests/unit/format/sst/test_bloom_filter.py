"""Bloom filters: golden hashes, no false negatives, few false positives."""

import numpy as np
import pytest

from lakelet.errors import CorruptionError
from lakelet.format.sst import bloom_filter
from lakelet.format.sst.bloom_filter import BloomFilter, hash_keys, murmur3

# Vectors of the reference implementation of MurmurHash3_x86_32.
VECTORS = [
    (b"", 0, 0x00000000),
    (b"", 1, 0x514E28B7),
    (b"", 0xFFFFFFFF, 0x81F16F39),
    (b"\xff\xff\xff\xff", 0, 0x76293B50),
    (b"\x21\x43\x65\x87", 0, 0xF55B516B),
    (b"\x21\x43\x65\x87", 0x5082EDEE, 0x2362F9DE),
    (b"\x21\x43\x65", 0, 0x7E4A8634),
    (b"\x21\x43", 0, 0xA0F7B07A),
    (b"\x21", 0, 0x72661CF4),
    (b"\x00\x00\x00\x00", 0, 0x2362F9DE),
    (b"\x00\x00\x00", 0, 0x85F0B427),
    (b"\x00\x00", 0, 0x30F4C306),
    (b"\x00", 0, 0x514E28B7),
    (b"aaaa", 0x9747B28C, 0x5A97808A),
    (b"Hello, world!", 0x9747B28C, 0x24884CBA),
    (b"The quick brown fox jumps over the lazy dog", 0x9747B28C, 0x2FA826CD),
]


def arrays(keys: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    at = np.append(0, np.cumsum([len(key) for key in keys])).astype(np.int64)
    return np.frombuffer(b"".join(keys), np.uint8), at


@pytest.mark.parametrize(("key", "seed", "expected"), VECTORS)
def test_golden_hashes(key: bytes, seed: int, expected: int) -> None:
    assert murmur3(key, seed) == expected


def test_the_compiled_hash_is_the_same() -> None:
    keys = [b"k" * size + bytes((size,)) for size in range(40)]
    expected = [(murmur3(key, 0), murmur3(key, murmur3(key, 0))) for key in keys]
    bloom_filter._hash_loop.load_if_enabled()
    bloom_filter._set_loop.load_if_enabled()
    found = hash_keys(*arrays(keys))
    assert found.tolist() == [list(pair) for pair in expected]
    compiled = BloomFilter.of(found, 10)
    at = [(first + probe * second) % compiled.total_bits for first, second in expected for probe in range(7)]
    bits = np.zeros(compiled.total_bits, np.uint8)
    bits[at] = 1
    assert compiled.bits == np.packbits(bits, bitorder="little").tobytes()


def test_single_keys_are_probed_the_same_way_compiled_or_not() -> None:
    keys = [bytes(range(size)) for size in range(60)]
    filter_ = BloomFilter.of(hash_keys(*arrays(keys[::2])), 5)
    each = filter_.may_hold_each(hash_keys(*arrays(keys))).tolist()
    enabled = bloom_filter._probe_loop.enabled
    try:
        bloom_filter._probe_loop.enabled = False
        assert [filter_.may_hold(key) for key in keys] == each
    finally:
        bloom_filter._probe_loop.enabled = enabled
    bloom_filter._probe_loop.load_if_enabled()
    assert [filter_.may_hold(key) for key in keys] == each


def test_every_key_is_let_through_and_few_others() -> None:
    keys = [f"key-{number}".encode() for number in range(5000)]
    others = [f"other-{number}".encode() for number in range(5000)]
    filter_ = BloomFilter.decode(BloomFilter.of(hash_keys(*arrays(keys)), 10).encode(), path="x")
    assert filter_ is not None
    assert all(map(filter_.may_hold, keys))
    let_through = filter_.may_hold_each(hash_keys(*arrays(others)))
    assert let_through.tolist() == [filter_.may_hold(key) for key in others]
    assert let_through.mean() < 0.02


def test_a_filter_that_points_beyond_its_bits_is_damage() -> None:
    data = bytearray(BloomFilter.of(hash_keys(*arrays([b"a"])), 10).encode())
    data[14] = 0xFF
    with pytest.raises(CorruptionError, match="bloom filter"):
        BloomFilter.decode(bytes(data), path="x")
    with pytest.raises(CorruptionError, match="bloom filter"):
        BloomFilter.decode(b"short", path="x")
