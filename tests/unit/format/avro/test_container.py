"""Container files: the envelope, its codecs, and every way it can be damaged."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import pytest

from lakelet.errors import CorruptionError, InvalidError
from lakelet.format.avro import decode, read_schema
from lakelet.format.avro.container import read_blocks, read_header, read_varint, write_block, write_header, write_varint

SYNC = bytes(range(16))
SCHEMA = '{"type":"record","name":"r","fields":[{"name":"n","type":"int"}]}'
ROWS = bytes([2, 4, 6])  # 1, 2, 3


def file_of(payload: bytes = ROWS, rows: int = 3, codec: str = "null", schema: str = SCHEMA) -> bytes:
    header = write_header(schema, codec=codec, sync=SYNC, metadata={})
    return header + write_block(payload, rows=rows, codec=codec, level=None, sync=SYNC)


@pytest.mark.parametrize("value", [0, -1, 1, 63, 64, -65, 2**31, -(2**63), 2**63 - 1])
def test_numbers_round_trip(value: int) -> None:
    data = write_varint(value)
    assert read_varint(data, 0, "f") == (value, len(data))


@pytest.mark.parametrize("codec", ["null", "deflate", "zstandard", "snappy"])
def test_blocks_round_trip_in_every_codec(codec: str) -> None:
    payload = bytes([2]) * 10_000
    data = file_of(payload, 10_000, codec)
    header = read_header(data, path="f")
    assert header.codec == codec
    assert [(block.rows, block.data) for block in read_blocks(data, header, path="f")] == [(10_000, payload)]


@pytest.mark.parametrize("codec", ["null", "deflate", "zstandard"])
def test_fastavro_reads_the_envelope(codec: str) -> None:
    assert [row["n"] for row in fastavro.reader(io.BytesIO(file_of(codec=codec)))] == [1, 2, 3]


def test_metadata_is_kept() -> None:
    data = write_header(SCHEMA, codec="null", sync=SYNC, metadata={"writer": b"\x00\xff"})
    found = read_schema(data, path="f")
    assert found.metadata["writer"] == b"\x00\xff"
    assert found.schema["fields"] == [{"name": "n", "type": "int"}]
    assert len(decode(data, path="f")) == 0


def test_metadata_in_sized_runs_is_read() -> None:
    entry = write_varint(11) + b"avro.schema" + write_varint(len(SCHEMA)) + SCHEMA.encode()
    data = b"Obj\x01" + write_varint(-1) + write_varint(len(entry)) + entry + b"\x00" + SYNC
    assert read_header(data, path="f").schema_text == SCHEMA


def test_every_truncation_is_noticed(engine: str) -> None:
    data = file_of()
    whole = {len(data), len(write_header(SCHEMA, codec="null", sync=SYNC, metadata={}))}
    for size in range(len(data)):
        if size not in whole:
            with pytest.raises(CorruptionError, match="m/manifest-1"):
                decode(data[:size], path="m/manifest-1")


def damaged() -> dict[str, bytes]:
    good = file_of()
    begin = len(good) - 16 - len(ROWS) - 2
    block = write_varint(3) + write_varint(3) + ROWS
    assert good[begin:] == block + SYNC
    head = good[:begin]
    overlong = b"\xff" * 10 + b"\x00"
    snappy = bytearray(file_of(codec="snappy"))
    snappy[-17] ^= 1
    return {
        "magic": b"Obj\x02" + good[4:],
        "nothing": b"",
        "sync": good[:-1] + b"\x00",
        "more rows than bytes": head + write_varint(4) + block[1:] + SYNC,
        "fewer rows than bytes": head + write_varint(2) + block[1:] + SYNC,
        "negative rows": head + write_varint(-3) + block[1:] + SYNC,
        "block too long": head + write_varint(3) + write_varint(400) + ROWS + SYNC,
        "negative block": head + write_varint(3) + write_varint(-3) + ROWS + SYNC,
        "overlong row count": head + overlong + good[begin + 1 :],
        "overlong value": file_of(overlong, 1),
        "eleven bytes": file_of(b"\x80" * 10 + b"\x00", 1),
        "int of 33 bits": file_of(write_varint(2**32), 1),
        "trailing bytes": good + b"\x00",
        "zstandard": write_header(SCHEMA, codec="zstandard", sync=SYNC, metadata={}) + block + SYNC,
        "deflate": write_header(SCHEMA, codec="deflate", sync=SYNC, metadata={}) + block + SYNC,
        "snappy checksum": bytes(snappy),
        "no schema": b"Obj\x01\x00" + SYNC,
        "schema is no text": b"Obj\x01\x02\x16avro.schema\x02\xff\x00" + SYNC,
        "endless metadata": b"Obj\x01" + write_varint(2**60) + SYNC * 3,
    }


@pytest.mark.parametrize("name", list(damaged()))
def test_damage_is_named_with_the_path(engine: str, name: str) -> None:
    with pytest.raises(CorruptionError, match="bucket-0/data"):
        decode(damaged()[name], path="bucket-0/data")


@pytest.mark.parametrize("codec", ["deflate", "zstandard"])
def test_bytes_after_the_compressed_stream_are_noticed(codec: str) -> None:
    data = file_of(codec=codec)
    header = read_header(data, path="f")
    body = data[header.size + 2 : -16]
    longer = data[: header.size] + write_varint(3) + write_varint(len(body) + 5) + body + bytes(5) + SYNC
    with pytest.raises(CorruptionError, match="bytes"):
        decode(longer, path="f")
    shorter = data[: header.size] + write_varint(3) + write_varint(len(body) - 1) + body[:-1] + SYNC
    with pytest.raises(CorruptionError):
        decode(shorter, path="f")


def test_unknown_codecs_are_refused() -> None:
    with pytest.raises(InvalidError, match="bzip2"):
        write_header(SCHEMA, codec="bzip2", sync=SYNC, metadata={})
    out = io.BytesIO()
    schema: dict[str, Any] = {"type": "record", "name": "r", "fields": [{"name": "n", "type": "int"}]}
    fastavro.writer(out, schema, [{"n": 1}], codec="bzip2")
    with pytest.raises(InvalidError, match=r"f.avro.*bzip2"):
        decode(out.getvalue(), path="f.avro")


def test_a_sync_marker_has_sixteen_bytes_and_reserved_metadata_is_refused() -> None:
    with pytest.raises(InvalidError, match="16 bytes"):
        write_header(SCHEMA, codec="null", sync=b"short", metadata={})
    with pytest.raises(InvalidError, match=r"avro\.codec"):
        write_header(SCHEMA, codec="null", sync=SYNC, metadata={"avro.codec": b"null"})
