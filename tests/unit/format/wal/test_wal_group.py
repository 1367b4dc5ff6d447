"""Groups of a log: all of one or none, after a cut anywhere; keys; logs from before there were groups."""

import pytest

from lakelet.errors import CorruptionError, LakeletError
from lakelet.format.wal.wal_group import WalKey, encode_group, encode_key
from lakelet.format.wal.wal_log import MAGIC, WalHeader, encode_wal_header, read_intact, read_wal
from lakelet.format.wal.wal_record import DELETE, GROUP, KEY, PUT, encode_record, python_records

HEAD = encode_wal_header(WalHeader("8f2c-table", 3, 7, "writer"))
ONE = WalKey(b"first", 1_700_000_000_000, b"note")
TWO = WalKey(b"\x00" * 16, -1, b"")
# What each write puts into the log, and the keys and names that a replay of it gives.
WRITES = [
    ([b"a"], []),
    ([b"b", b"c", b"d"], []),
    ([b"e"], [ONE]),
    ([], [TWO]),
    ([b"f", b"g"], [ONE, TWO]),
    ([b"h"], []),
    ([b"i" * 300, b"j"], []),
]


def records(keys: list[bytes]) -> bytes:
    return b"".join(encode_record(DELETE if key == b"c" else PUT, key, key * 3) for key in keys)


PARTS = [encode_group(records(keys), len(keys), names) for keys, names in WRITES]
LOG = HEAD + b"".join(PARTS)


def test_the_bytes_of_a_group() -> None:
    body = encode_record(PUT, b"k", b"r") + encode_record(PUT, b"l", b"s")
    mark = bytes.fromhex("00000002") + len(body).to_bytes(8, "big")
    assert encode_group(body, 2) == encode_record(GROUP, b"", mark) + body
    key = encode_record(KEY, b"first", (1_700_000_000_000).to_bytes(8, "big") + b"note")
    assert encode_key(ONE) == key
    mark = bytes.fromhex("00000003") + (len(key) + len(body)).to_bytes(8, "big")
    assert encode_group(body, 2, [ONE]) == encode_record(GROUP, b"", mark) + key + body


def test_a_single_record_has_no_mark() -> None:
    assert encode_group(records([b"a"]), 1) == records([b"a"])
    assert encode_group(b"", 0, [ONE]) == encode_key(ONE)
    assert encode_group(b"", 0) == b""


def ends_of(parts: list[bytes]) -> list[int]:
    ends = [len(HEAD)]
    for part in parts:
        ends.append(ends[-1] + len(part))
    return ends


def check_whole_writes(data: bytes, written: int) -> None:
    """Exactly the writes whose bytes are all there are read."""
    ends = ends_of(PARTS)
    found = read_wal(data, path="wal-7.log")
    whole = sum(end <= written for end in ends[1:])
    assert python_records(found.data, found.records)[0] == [key for keys, _ in WRITES[:whole] for key in keys]
    assert list(found.keys) == [name for _, names in WRITES[:whole] for name in names]
    assert found.torn_bytes == len(data) - ends[whole]


def test_a_log_cut_anywhere_gives_whole_writes_alone() -> None:
    for cut in range(len(HEAD), len(LOG) + 1):
        check_whole_writes(LOG[:cut], cut)


def test_zeros_behind_any_record_are_what_was_not_written_of_a_group() -> None:
    scanned = read_wal(LOG, path="wal-7.log").scanned
    for end in [len(HEAD), *(scanned[:, 4] + 4).tolist()]:
        check_whole_writes(LOG[:end] + b"\0" * 500, end)


@pytest.mark.parametrize("mask", [0x01, 0x80, 0xFF])
def test_every_byte_that_is_flipped_is_told(mask: int) -> None:
    for place in range(len(LOG)):
        flipped = bytearray(LOG)
        flipped[place] ^= mask
        with pytest.raises(LakeletError):
            read_wal(bytes(flipped), path="wal-7.log")


def test_of_a_damaged_group_nothing_is_salvaged() -> None:
    begin = len(HEAD) + len(PARTS[0])
    damaged = bytearray(LOG)
    damaged[begin + len(PARTS[1]) - 1] ^= 1
    found = read_intact(bytes(damaged), path="wal-7.log")
    assert python_records(found.data, found.records)[0] == [b"a"]
    assert (found.torn_bytes, found.damaged_bytes) == (0, len(LOG) - begin)


def test_a_log_of_the_version_before_is_read() -> None:
    old = MAGIC + b"\x00\x00\x00\x01" + HEAD[8:] + records([b"a", b"b", b"c"])
    found = read_wal(old, path="wal-7.log")
    assert python_records(found.data, found.records)[0] == [b"a", b"b", b"c"]
    assert (found.groups, found.keys, found.torn_bytes) == (0, (), 0)
    with pytest.raises(CorruptionError, match="log of version 1"):
        read_wal(old + PARTS[1], path="wal-7.log")


def mark(count: int, size: int) -> bytes:
    return encode_record(GROUP, b"", count.to_bytes(4, "big") + size.to_bytes(8, "big"))


@pytest.mark.parametrize(
    "data",
    [
        # A group inside of a group, one with fewer bytes, one with fewer records than its mark says, a mark of another size.
        mark(3, 500) + mark(1, 20) + records([b"a", b"b"]),
        mark(2, len(records([b"a"]))) + records([b"a", b"b", b"c"]),
        mark(1, len(records([b"a", b"b"]))) + records([b"a", b"b"]),
        encode_record(GROUP, b"", b"x") + records([b"a"]),
    ],
    ids=["nested", "bytes", "records", "size"],
)
def test_a_mark_that_contradicts_its_records_is_damage(data: bytes) -> None:
    with pytest.raises(CorruptionError):
        read_wal(HEAD + data, path="wal-7.log")


def test_a_group_with_fewer_records_than_its_bytes_hold_is_damage() -> None:
    body = records([b"a", b"b"])
    with pytest.raises(CorruptionError, match="damaged"):
        read_wal(HEAD + mark(3, len(body)) + body, path="wal-7.log")


def test_an_unfinished_group_with_a_damaged_record_was_never_acknowledged() -> None:
    body = records([b"a", b"b", b"c"])
    cut = HEAD + mark(3, len(body)) + b"\xff" * 8 + body[8:-1]
    found = read_wal(cut, path="wal-7.log")
    assert (len(found.records), found.torn_bytes) == (0, len(cut) - len(HEAD))
