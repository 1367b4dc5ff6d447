"""Bloom filters of file indexes: hashes of known values, and every value that went in is found."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest

from lakelet.errors import CorruptionError
from lakelet.format.index.file.bloom import BloomFilterIndex, BloomWriter, bit_count, number_hashes, value_hashes
from lakelet.format.index.file.values import index_numbers, looked_for
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Atomic


def kind(text: str) -> Atomic:
    found = parse_type(text)
    assert isinstance(found, Atomic)
    return found


def wang(key: int) -> int:
    """Thomas Wang's hash as Java computes it, one number at a time."""

    def signed(value: int) -> int:
        return (value + 2**63) % 2**64 - 2**63

    key = signed(~key + (key << 21))
    key ^= key >> 24
    key = signed(key + (key << 3) + (key << 8))
    key ^= key >> 14
    key = signed(key + (key << 2) + (key << 4))
    key ^= key >> 28
    return signed(key + (key << 31))


def test_numbers_hash_as_in_java() -> None:
    numbers = [0, 1, -1, 2**31, -(2**63), 2**63 - 1, 123456789012345]
    assert number_hashes(np.array(numbers, np.int64)).tolist() == [wang(number) for number in numbers]


def test_bytes_hash_by_xxh64() -> None:
    assert value_hashes(pa.array([""]), kind("STRING")).view(np.uint64).tolist() == [0xEF46DB3751D8E999]


def test_sizes_are_those_of_java() -> None:
    assert bit_count(1_000_000, 0.1) == 4792536
    # A whole number of bytes gets one more.
    assert bit_count(100, 0.5) == 152


@pytest.mark.parametrize(
    ("text", "value", "number"),
    [
        ("TIMESTAMP(3)", dt.datetime(1969, 12, 31, 23, 59, 59, 999000), -1),
        ("TIMESTAMP(6)", dt.datetime(1969, 12, 31, 23, 59, 59, 999999), -1),
        ("DATE", dt.date(1970, 1, 3), 2),
        ("DOUBLE", float("nan"), 0x7FF8000000000000),
        ("FLOAT", -0.0, -(2**31)),
        ("TIME", dt.time(0, 0, 1, 5000), 1005),
    ],
)
def test_values_are_numbers(text: str, value: object, number: int) -> None:
    from lakelet.model.arrow.arrow_types import to_arrow

    assert index_numbers(pa.array([value], to_arrow(kind(text))), kind(text)).tolist() == [number]


def test_nanoseconds_are_rounded_down() -> None:
    values = pa.array([-1, 1999], pa.int64()).cast(pa.timestamp("ns"))
    assert index_numbers(values, kind("TIMESTAMP(9)")).tolist() == [-1, 1]


def test_all_nans_are_one_and_zeros_are_two() -> None:
    nans = np.array([0x7FF8000000000001, -(2**51)], np.int64).view(np.float64)
    assert len(set(index_numbers(pa.array(nans), kind("DOUBLE")).tolist())) == 1
    assert [str(value) for value in looked_for(pa.scalar(-0.0)).to_pylist()] == ["0.0", "-0.0"]
    assert looked_for(pa.scalar(1.5)).to_pylist() == [1.5]


def test_what_went_in_is_found() -> None:
    writer = BloomWriter(kind("BIGINT"), 1000, 0.01)
    values = np.arange(0, 200_000, 200)
    for part in np.split(values, 4):
        writer.update(pa.array([*part.tolist(), None]))
    index = BloomFilterIndex.of(writer.finish(), where="f")
    assert all(index.may_hold(pa.array([value]), kind("BIGINT")) for value in values.tolist())
    absent = [value for value in range(1, 20_000) if value % 200]
    wrong = sum(index.may_hold(pa.array([value]), kind("BIGINT")) for value in absent[:2000])
    assert wrong < 60


def test_a_column_of_nulls_holds_nothing() -> None:
    writer = BloomWriter(kind("STRING"), 10, 0.1)
    writer.update(pa.array([None, None], pa.string()))
    assert not BloomFilterIndex.of(writer.finish(), where="f").may_hold(pa.array(["a"]), kind("STRING"))


@pytest.mark.parametrize("data", [b"", b"\0\0\0\1", b"\0\0\0\0\1", b"\xff\xff\xff\xff\1"])
def test_damage_is_told(data: bytes) -> None:
    with pytest.raises(CorruptionError, match="no bloom filter"):
        BloomFilterIndex.of(data, where="f")
