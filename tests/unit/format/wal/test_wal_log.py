"""Logs: their header, torn tails, and damage that must be told."""

from dataclasses import replace

import pytest

from lakelet.errors import CorruptionError, InvalidError, LakeletError
from lakelet.format.wal.wal_log import MAGIC, WalHeader, encode_wal_header, read_intact, read_wal, read_wal_header
from lakelet.format.wal.wal_record import DELETE, PUT, encode_record, python_records

OWN = WalHeader("8f2c-table", 3, 7, "writer-é")
ROWS = [(PUT, b"a", b"one"), (PUT, b"b" * 200, b"\x00" * 40), (DELETE, b"a", b"one"), (PUT, b"", b"last")]
HEAD = encode_wal_header(OWN)
LOG = HEAD + b"".join(encode_record(*row) for row in ROWS)


def rows_of(data: bytes) -> list[tuple[int, bytes, bytes]]:
    found = read_wal(data, path="wal-7.log")
    return list(zip(found.records[:, 0].tolist(), *python_records(found.data, found.records), strict=True))


def test_the_bytes_of_a_log() -> None:
    row = bytes.fromhex("0000000000000003 0000000000000007".replace(" ", "")) + "writer-é".encode()
    assert b"LWAL" + b"\x00\x00\x00\x02" + encode_record(0, b"8f2c-table", row) == HEAD


def test_the_digest_of_a_schema_follows_the_user() -> None:
    named = replace(OWN, schema_digest="0a1b")
    data = encode_wal_header(named)
    assert read_wal_header(data, path="wal-7.log") == (named, len(data))
    assert "writer-é\x000a1b".encode() in data


def test_what_is_intact_before_the_damage_is_read() -> None:
    end = len(HEAD) + len(encode_record(*ROWS[0]))
    damaged = LOG[: end + 8] + b"?" + LOG[end + 9 :]
    found = read_intact(damaged, path="wal-7.log")
    assert (len(found.records), found.torn_bytes, found.damaged_bytes) == (1, 0, len(LOG) - end)
    assert read_intact(LOG[:-1], path="wal-7.log").damaged_bytes == 0


def test_what_was_written_is_read() -> None:
    found = read_wal(LOG, path="wal-7.log")
    assert found.header == OWN
    assert found.torn_bytes == 0
    assert rows_of(LOG) == ROWS
    assert rows_of(HEAD) == []


def test_a_log_cut_short_anywhere_gives_the_records_before() -> None:
    ends = [len(HEAD)]
    for row in ROWS:
        ends.append(ends[-1] + len(encode_record(*row)))
    for cut in range(len(HEAD), len(LOG) + 1):
        found = read_wal(LOG[:cut], path="wal-7.log")
        whole = sum(end <= cut for end in ends[1:])
        assert len(found.records) == whole
        assert found.torn_bytes == cut - ends[whole]


@pytest.mark.parametrize("mask", [0x01, 0x80, 0xFF])
def test_every_byte_that_is_flipped_is_told(mask: int) -> None:
    for place in range(len(LOG)):
        flipped = bytearray(LOG)
        flipped[place] ^= mask
        with pytest.raises(LakeletError):
            read_wal(bytes(flipped), path="wal-7.log")


def test_a_tail_of_zeros_is_torn() -> None:
    found = read_wal(LOG + b"\0" * 100, path="wal-7.log")
    assert (len(found.records), found.torn_bytes) == (len(ROWS), 100)


def test_zeros_before_a_record_are_no_tail() -> None:
    with pytest.raises(CorruptionError, match="acknowledged rows may be in"):
        read_wal(LOG + b"\0" * 100 + encode_record(*ROWS[0]), path="wal-7.log")


def test_a_second_header_is_no_row() -> None:
    with pytest.raises(CorruptionError, match="another among the rows"):
        read_wal(HEAD + encode_record(0, b"x", b"y" * 16), path="wal-7.log")


@pytest.mark.parametrize(
    ("data", "kind", "message"),
    [
        (b"", CorruptionError, "expected a write-ahead log"),
        (b"PAR1" + LOG[4:], CorruptionError, "begins with"),
        (MAGIC + b"\x00\x00\x00\x03" + LOG[8:], InvalidError, "found version 3"),
        (LOG[:20], CorruptionError, "header record"),
        (LOG[:8] + encode_record(PUT, b"k", b"r" * 20), CorruptionError, "header record"),
    ],
)
def test_what_is_no_log(data: bytes, kind: type[LakeletError], message: str) -> None:
    with pytest.raises(kind, match=message):
        read_wal_header(data, path="wal-7.log")
