"""Records of a log: the bytes, and that the compiled loops give the same as their twins."""

import zlib

import numpy as np
import pyarrow as pa
import pytest

from lakelet.format.compiled.compiled_loop import CompiledLoop
from lakelet.format.wal import wal_record
from lakelet.format.wal.wal_record import (
    DELETE,
    PUT,
    encode_record,
    encode_records,
    encode_varint,
    python_records,
    record_sizes,
    scan_records,
)

KEYS = [b"", b"k", b"\x00\xff" * 3, b"x" * 127, b"y" * 128, b"z" * 20_000]
ROWS = [b"", b"row", b"\x80" * 200, b"r" * 16_383, b"s" * 16_384, b""]


def columns() -> tuple[pa.Array, pa.Array]:
    """The keys and rows as slices, whose offsets do not begin at zero; the first over memory that nobody may change."""
    keys, rows = pa.array([b"no", *KEYS], pa.large_binary()), pa.array([b"no", *ROWS], pa.large_binary())
    fixed = [None, *(pa.py_buffer(buffer.to_pybytes()) for buffer in keys.buffers()[1:])]
    return pa.Array.from_buffers(pa.large_binary(), len(keys), fixed)[1:], rows[1:]


@pytest.fixture(params=["compiled", "twin", "some"])
def _loops(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    for loop in (wal_record._encode_loop, wal_record._frame_loop, wal_record._crc_loop):
        assert isinstance(loop, CompiledLoop)
        # A process may have loaded some of them.
        is_compiled = request.param == "compiled" or (request.param == "some" and loop is not wal_record._crc_loop)
        if is_compiled:
            loop.load()
        monkeypatch.setattr(loop, "enabled", is_compiled)


def test_the_bytes_of_a_record() -> None:
    body = b"\x01\x02ab\x03xyz"
    framed = b"\x00\x00\x00\x08" + body
    assert encode_record(PUT, b"ab", b"xyz") == framed + zlib.crc32(framed).to_bytes(4, "big")


def test_lengths_are_varints() -> None:
    assert [encode_varint(value).hex() for value in (0, 127, 128, 300, 2**21)] == [
        "00",
        "7f",
        "8001",
        "ac02",
        "80808001",
    ]


@pytest.mark.usefixtures("_loops")
def test_a_batch_is_its_records_one_behind_the_other() -> None:
    keys, rows = columns()
    encoded = encode_records(DELETE, keys, rows)
    single = [encode_record(DELETE, key, row) for key, row in zip(KEYS, ROWS, strict=True)]
    assert encoded == b"".join(single)
    assert record_sizes(keys, rows).tolist() == [len(record) for record in single]


@pytest.mark.usefixtures("_loops")
@pytest.mark.parametrize("end", ["whole", "cut", "wrong"])
def test_a_scan_gives_every_intact_record(end: str) -> None:
    encoded = b"head" + encode_records(PUT, *columns())
    whole = len(encoded)
    encoded += {"whole": b"", "cut": encoded[4:10], "wrong": encode_record(PUT, b"a", b"b")[:-1] + b"\x00"}[end]
    records, stopped = scan_records(encoded, 4)
    assert python_records(encoded, records) == (KEYS, ROWS)
    assert set(records[:, 0].tolist()) == {PUT}
    assert stopped == whole


@pytest.mark.usefixtures("_loops")
def test_a_scan_is_not_bounded_by_its_first_piece() -> None:
    count = (1 << 16) + 3
    numbers = pa.array([b"%d" % number for number in range(count)], pa.large_binary())
    encoded = encode_records(PUT, numbers, numbers)
    records, stopped = scan_records(encoded, 0)
    assert stopped == len(encoded)
    assert python_records(encoded, records)[0] == numbers.to_pylist()


@pytest.mark.usefixtures("_loops")
def test_nothing_is_encoded_and_scanned() -> None:
    nothing = pa.array([], pa.large_binary())
    assert encode_records(PUT, nothing, nothing) == b""
    records, stopped = scan_records(b"", 0)
    assert (records.shape, stopped) == ((0, 5), 0)
    assert records.dtype == np.int64
