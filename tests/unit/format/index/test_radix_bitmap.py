"""Bitmaps of 64-bit numbers in the bytes of Java's Roaring64Bitmap."""

from __future__ import annotations

import random

import numpy as np
import pytest

from lakelet.errors import CorruptionError
from lakelet.format.index.radix_bitmap import Container, RadixBitmap, decode, encode, united
from lakelet.format.index.radix_tree import Leaf, inserted, leaves

# What Java Paimon 1.4.2 writes for {1, 2, 3, 10, 1 << 40}, and unites it with {1 << 20} to.
JAVA = (
    "0102000000000000000002000200000000010004000000000000000000000000000000000004000000000001000000010000"
    "000000000001000000fe020000000102040000000100020003000a0001020100000000000200000000000000000000000100"
    "0000"
)
OTHER = (
    "01010000000000000004000000000000000010000000000000000001000000fe010000000102010000000000010000000000"
    "00000000000000000000"
)
UNITED = (
    "0103000000000000000002000200000000010000020002000000001000040000000000000000000000000000000000040000"
    "00000000000010020000000000000004000000000001000000010000000000000001000000fe030000000102040000000100"
    "020003000a000102010000000000010201000000000003000000000000000000000002000000"
)


def of(numbers: list[int]) -> bytes:
    """A bitmap, by unions of bitmaps with one container."""
    made = b"\0"
    for key in sorted({number >> 16 for number in numbers}):
        values = np.array(sorted({number & 0xFFFF for number in numbers if number >> 16 == key}), np.uint16)
        kind = 1 if len(values) > 4096 else 2
        leaf = Leaf((key & (1 << 48) - 1).to_bytes(6, "big"), 0)
        made = united(made, encode(RadixBitmap(inserted(None, leaf), [[Container(kind, values)]], 0)))
    return made


def numbers(data: bytes) -> list[int]:
    found = decode(data)
    return [
        (int.from_bytes(leaf.key, "big") << 16) + int(low)
        for leaf in leaves(found.tree)
        for low in found.container(leaf.container).values
    ]


def test_the_bytes_are_javas() -> None:
    assert numbers(bytes.fromhex(JAVA)) == [1, 2, 3, 10, 1 << 40]
    assert encode(decode(bytes.fromhex(JAVA))).hex() == JAVA
    assert of([1, 2, 3, 10, 1 << 40]).hex() == JAVA
    assert united(bytes.fromhex(JAVA), bytes.fromhex(OTHER)).hex() == UNITED


def test_unions_hold_the_numbers_of_both() -> None:
    for seed in range(20):
        source = random.Random(seed)
        spread = source.choice([1 << 8, 1 << 20, 1 << 26, 1 << 63])
        one, other = (
            sorted({source.randrange(spread) for _ in range(source.choice([0, 1, 5, 60, 400]))}) for _ in range(2)
        )
        made = united(of(one), of(other))
        assert numbers(made) == sorted({*one, *other})
        assert encode(decode(made)) == made


def test_nothing_is_a_byte() -> None:
    assert united(b"\0", b"\0") == b"\0"
    assert united(b"\0", of([7])) == united(of([7]), b"\0") == of([7])


def test_damaged_bytes_are_an_error_of_their_own() -> None:
    whole = of([1, 2, 70_000, *range(1 << 30, (1 << 30) + 9000, 2), 1 << 50])
    assert len(whole) > 100
    for end in range(0, len(whole), 7):
        with pytest.raises(CorruptionError):
            decode(whole[:end] if end else b"")
    source = random.Random(3)
    for _ in range(400):
        damaged = bytearray(whole)
        damaged[source.randrange(len(whole))] = source.randrange(256)
        try:
            decode(bytes(damaged))
        except CorruptionError:
            continue


def test_runs_that_would_fill_the_memory_are_refused() -> None:
    leaf = Leaf(bytes(6), 0)
    whole = encode(RadixBitmap(inserted(None, leaf), [[Container(0, np.arange(9, dtype=np.uint16))]], 0))
    runs = (65_535).to_bytes(2, "little") + b"\0\0\xff\xff" * 65_535
    place = whole.index(bytes((1, 0)) + (9).to_bytes(4, "little")) + 6
    with pytest.raises(CorruptionError, match="has runs of 4294901760 numbers"):
        decode(whole[:place] + runs + whole[place + 6 :])
