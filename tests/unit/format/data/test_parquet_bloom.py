"""Bloom filters as pyarrow and DuckDB write them, asked for what is there and what is not."""

import io
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelet import CorruptionError
from lakelet.format.data.parquet_bloom import HEADER_ROOM, BloomFilter, filter_of, hash_fixed, hash_texts, header_of


def read_filter(data: bytes, column: int) -> BloomFilter:
    chunk = pq.read_metadata(io.BytesIO(data)).row_group(0).column(column)
    begin = chunk.bloom_filter_offset
    found = header_of(data[begin : begin + HEADER_ROOM], where="test")
    assert found is not None
    header, size = found
    assert chunk.bloom_filter_length is None or header + size == chunk.bloom_filter_length
    return filter_of(data[begin + header : begin + header + size], where="test")


def written(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(
        table, sink, bloom_filter_options={name: {"ndv": table.num_rows, "fpp": 0.01} for name in table.column_names}
    )
    return sink.getvalue()


# Values of the reference implementation: of nothing, of one byte, and of each path through the algorithm.
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0xEF46DB3751D8E999),
        ("a", 0xD24EC4F1A98C6E5B),
        ("abc", 0x44BC2CF5AD770999),
        ("Nobody inspects the spammish repetition", 0xFBCEA83C8A378BF1),
        ("xxhash", 0x32DD38952C4BC720),
    ],
)
def test_the_hash_is_xxh64(text: str, expected: int) -> None:
    assert hash_texts(pa.array([text])).tolist() == [expected]


def test_numbers_hash_as_their_bytes() -> None:
    values = np.array([0, 1, -5, 2**31 - 1])
    for dtype in (np.int32, np.int64):
        numbers = values.astype(dtype)
        assert hash_fixed(numbers).tolist() == hash_texts(pa.array([n.tobytes() for n in numbers])).tolist()


def test_a_slice_hashes_like_a_copy() -> None:
    texts = pa.array(["left out", "a", "", "x" * 70, "left out too"])
    assert hash_texts(texts.slice(1, 3)).tolist() == hash_texts(pa.array(["a", "", "x" * 70])).tolist()


@given(st.lists(st.text(max_size=80), min_size=1, max_size=50), st.lists(st.integers(-(2**63), 2**63 - 1), max_size=50))
def test_what_arrow_wrote_is_found(texts: list[str], numbers: list[int]) -> None:
    numbers = (numbers + [0] * len(texts))[: len(texts)]
    table = pa.table({"s": texts, "n": pa.array(numbers, pa.int64())})
    data = written(table)
    assert read_filter(data, 0).may_hold(hash_texts(table["s"].combine_chunks())).all()
    assert read_filter(data, 1).may_hold(hash_fixed(np.array(numbers, np.int64))).all()


def test_hardly_anything_else_is_found() -> None:
    table = pa.table({"i": pa.array(range(10_000), pa.int32()), "s": [f"key-{i:012d}" for i in range(10_000)]})
    data = written(table)
    absent = np.arange(10_000, 20_000, dtype=np.int32)
    assert read_filter(data, 0).may_hold(hash_fixed(absent)).mean() < 0.03
    assert read_filter(data, 1).may_hold(hash_texts(pa.array([f"key-{i:012d}" for i in absent]))).mean() < 0.03


def test_what_duckdb_wrote_is_found(tmp_path: Path) -> None:
    path = tmp_path / "d.parquet"
    duckdb.sql(
        "COPY (SELECT (i * 7 % 1000)::BIGINT AS n, 'text ' || (i % 500) AS s FROM range(20000) t(i)) "
        f"TO '{path}' (FORMAT parquet, DICTIONARY_SIZE_LIMIT 5000)"
    )
    data = path.read_bytes()
    numbers, texts = np.arange(1000), pa.array([f"text {i}" for i in range(500)])
    assert read_filter(data, 0).may_hold(hash_fixed(numbers)).all()
    assert read_filter(data, 1).may_hold(hash_texts(texts)).all()
    assert read_filter(data, 0).may_hold(hash_fixed(numbers + 5000)).mean() < 0.1


def test_a_filter_of_an_unknown_kind_tells_nothing() -> None:
    #         numBytes 32, algorithm {2: {}}, hash {1: {}}, compression {1: {}}
    data = bytes([0x15, 0x40, 0x1C, 0x2C, 0, 0, 0x1C, 0x1C, 0, 0, 0x1C, 0x1C, 0, 0, 0])
    assert header_of(data, where="x") is None
    known = bytes([0x15, 0x40, 0x1C, 0x1C, 0, 0, 0x1C, 0x1C, 0, 0, 0x1C, 0x1C, 0, 0, 0])
    assert header_of(known + bytes(10), where="x") == (15, 32)


@pytest.mark.parametrize("data", [b"", bytes(20), b"\x15\x40", b"\xff" * 64, bytes([0x15, 0x42]) + bytes(9)])
def test_damage_is_named(data: bytes) -> None:
    with pytest.raises(CorruptionError, match=r"file\.parquet.* bloom filter"):
        header_of(data, where="file.parquet")
    with pytest.raises(CorruptionError, match="cannot have 31 bytes"):
        filter_of(bytes(31), where="file.parquet")
