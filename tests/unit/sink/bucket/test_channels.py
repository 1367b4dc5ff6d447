"""Channels, against Java's arithmetic written out for one row."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelet.errors import InvalidError
from lakelet.format.manifest.manifest_columns import EMPTY_ROW
from lakelet.format.rows.binary_row import encode_row
from lakelet.format.rows.murmur import murmur3_32
from lakelet.model.row_kind import RowKind
from lakelet.model.type_parser import parse_type
from lakelet.sink.bucket.channels import (
    Ints,
    partition_hashes,
    select_assigners,
    select_channels,
    select_channels_by_bucket,
    start_channels,
    transform,
)
from lakelet.sink.bucket.extractors import extractor_for
from lakelet.sink.bucket.sink_record import SinkRecord, sink_records
from tests.unit.sink.keyed_tables import batch_of, keyed_schema

INT = st.integers(-(2**31), 2**31 - 1) | st.sampled_from([-(2**31), -(2**31) + 1, -1, 0, 1, 2**31 - 1])
CHANNELS = st.integers(1, 2**31 - 1) | st.integers(1, 40)


def wrapped(number: int) -> int:
    return (number + 2**31) % 2**32 - 2**31


def java_remainder(number: int, by: int) -> int:
    return int(math.fmod(number, by))


def java_start(partition_hash: int, channels: int) -> int:
    number = 2**31 - 1 if partition_hash == -(2**31) else partition_hash
    return java_remainder(abs(number), channels)


@given(st.lists(st.tuples(INT, INT), min_size=1, max_size=20), CHANNELS)
def test_channels_follow_the_arithmetic_of_java(pairs: list[tuple[int, int]], channels: int) -> None:
    hashes, buckets = (np.array(column, np.int32) for column in zip(*pairs, strict=True))
    expected = [java_remainder(wrapped(java_start(h, channels) + b), channels) for h, b in pairs]
    assert select_channels(hashes, buckets, channels).tolist() == expected
    assert select_channels_by_bucket(buckets, channels).tolist() == [java_remainder(b, channels) for _, b in pairs]


@given(st.lists(st.tuples(INT, INT), min_size=1, max_size=20), CHANNELS, CHANNELS)
def test_assigners_follow_the_arithmetic_of_java(pairs: list[tuple[int, int]], channels: int, assigners: int) -> None:
    hashes, keys = (np.array(column, np.int32) for column in zip(*pairs, strict=True))
    expected = [(abs(java_remainder(h, channels)) + abs(java_remainder(k, assigners))) % channels for h, k in pairs]
    assert select_assigners(hashes, keys, channels=channels, assigners=assigners).tolist() == expected


def test_the_least_hash_counts_as_the_greatest() -> None:
    assert start_channels(np.array([-(2**31)], np.int32), 10).tolist() == [7]
    assert select_channels(np.array([-(2**31)], np.int32), np.array([4], np.int32), 10).tolist() == [1]


def test_a_partition_is_hashed_without_its_arity() -> None:
    rows = [EMPTY_ROW, encode_row(["a longer text"], [parse_type("STRING")]), encode_row([5], [parse_type("INT")])]
    assert partition_hashes(rows).tolist() == [murmur3_32(row[4:]) for row in rows]
    assert partition_hashes([]).tolist() == []


@pytest.mark.parametrize("channels", [0, -1, 2**31])
def test_there_is_at_least_one_channel(channels: int) -> None:
    with pytest.raises(InvalidError, match="channels"):
        select_channels_by_bucket(np.array([1], np.int32), channels)


def test_records_have_the_place_the_key_and_the_kind_of_their_row() -> None:
    schema = keyed_schema(("p", "k"), ("p",), {"bucket": "4"})
    rows = [{"k": number, "s": "x", "p": number % 2, "v": number} for number in range(6)]
    batch = batch_of(schema, rows)
    extracted = extractor_for(schema).extract(batch)
    assert extracted.buckets is not None
    kinds = np.array([0, 1, 2, 3, 0, 3], np.int8)
    records = list(sink_records(batch, extracted, kinds))
    assert [record.row for record in records] == rows
    assert [record.kind for record in records] == [RowKind(kind) for kind in kinds.tolist()]
    assert [record.primary_key for record in records] == extracted.primary_keys.to_pylist()
    hashes = partition_hashes(extracted.partitions)[extracted.partition_codes]
    assert [record.channel(3) for record in records] == select_channels(hashes, extracted.buckets, 3).tolist()
    assert {record.kind for record in sink_records(batch, extracted)} == {RowKind.INSERT}


def _buckets(records: list[SinkRecord]) -> Ints:
    return np.array([record.bucket for record in records], np.int32)


def _one_channel(records: list[SinkRecord], channels: int) -> Ints:
    return np.array([record.channel(channels) for record in records], np.int32)


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=20), CHANNELS)
def test_transformed_rows_go_where_their_conversion_goes(numbers: list[int], channels: int) -> None:
    """`ChannelComputer.transform`: a computer over buckets takes records, one over records takes rows, and so on in a chain."""
    records = [SinkRecord(EMPTY_ROW, number, b"", {}) for number in numbers]
    by_record = transform(select_channels_by_bucket, _buckets)
    assert by_record(records, channels).tolist() == select_channels_by_bucket(_buckets(records), channels).tolist()
    by_number = transform(by_record, _as_records)
    again = pickle.loads(pickle.dumps(by_number))
    assert again(numbers, channels).tolist() == by_record(records, channels).tolist()
    assert transform(_one_channel, _as_records)(numbers, channels).tolist() == [
        record.channel(channels) for record in records
    ]


def _as_records(numbers: list[int]) -> list[SinkRecord]:
    return [SinkRecord(EMPTY_ROW, number, b"", {}) for number in numbers]


def test_transform_refuses_channels_like_the_computer_it_adapts() -> None:
    with pytest.raises(InvalidError, match="channels"):
        transform(select_channels_by_bucket, _buckets)([], 0)
