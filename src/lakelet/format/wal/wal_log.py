"""Encode and read write-ahead logs: the file of one memtable.

    magic     4   "LWAL"
    version   4   2, big-endian; 1 in logs without GROUP and KEY, which are read as ever
    record        HEADER: whose log this is, see below
    record …      PUT and DELETE, in the order in which they were acknowledged (`wal_record`); GROUP and KEY (`wal_group`)

    HEADER: the key is the table's identity as UTF-8; the row is

    schema id         8   the schema of the rows
    sequence number   8   of the memtable: that in the file's name, and the identifier of the commit of its rows
    commit user           UTF-8, without a zero byte
    zero byte         1   it and what follows may be absent: then nobody can tell whether the schema is still the same
    digest                of the schema's columns and keys, in hexadecimal digits, up to the end of the row

A log that a crash cut short ends inside of its last record: the tail is torn, and its rows were never acknowledged. Any other
damage is an error, for acknowledged rows may be among what cannot be read:

    a record with a wrong CRC32 that the file holds whole                                      corrupt
    a record that reaches beyond the end of the file, with an intact record behind its begin   corrupt: its length is wrong
    the same, but intact with the length that the file has left                                corrupt: its length is wrong
    the same, with neither                                                                     a torn tail
    nothing but zero bytes up to the end of the file                                           a torn tail
    a group whose bytes, by its mark, reach beyond the end of the file                         a torn tail from its mark on
    a group that is not whole, though the file has as many bytes                               corrupt, unless zeros are left
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

import numpy as np

from lakelet.errors import CorruptionError, InvalidError
from lakelet.format.wal.wal_group import WalKey, decode_keys, whole_groups
from lakelet.format.wal.wal_record import (
    CRC_BYTES,
    DELETE,
    FRAME_BYTES,
    GROUP,
    HEADER,
    LEAST_LENGTH,
    LENGTH_BYTES,
    RECORD_TYPES,
    Longs,
    encode_record,
    record_at,
    scan_records,
)

MAGIC = b"LWAL"
VERSION = 2
_UNGROUPED_VERSION = 1
_VERSION = struct.Struct(">I")
_NUMBERS = struct.Struct(">qq")
_START = len(MAGIC) + _VERSION.size


@dataclass(frozen=True, slots=True)
class WalHeader:
    """Whose rows a log holds: the table, the schema, and the identity of their commit. The digest of the schema tells whether a
    schema of that id is still the one that the rows were written with."""

    table_identity: str
    schema_id: int
    sequence_number: int
    commit_user: str
    schema_digest: str = ""


@dataclass(frozen=True, slots=True)
class WalContents:
    """A log that was read: the records of its rows (as `scan_records` gives them), its keys, and its torn tail. `scanned` are all
    intact records behind the header, marks of groups included."""

    header: WalHeader
    data: bytes
    records: Longs
    torn_bytes: int
    damaged_bytes: int
    scanned: Longs
    keys: tuple[WalKey, ...]

    @property
    def groups(self) -> int:
        """How many marks of groups it has."""
        return int((self.scanned[:, 0] == GROUP).sum())


def encode_wal_header(header: WalHeader) -> bytes:
    """The bytes that a log begins with."""
    text = f"{header.commit_user}\0{header.schema_digest}" if header.schema_digest else header.commit_user
    row = _NUMBERS.pack(header.schema_id, header.sequence_number) + text.encode()
    return MAGIC + _VERSION.pack(VERSION) + encode_record(HEADER, header.table_identity.encode(), row)


def read_wal_header(data: bytes, *, path: str) -> tuple[WalHeader, int]:
    """The header of a log, and where its other records begin. InvalidError for another version, CorruptionError for no log."""
    if data[: len(MAGIC)] != MAGIC or len(data) < _START:
        raise CorruptionError(f"{path}: expected a write-ahead log that begins with {MAGIC!r}, found {data[:4]!r}")
    (version,) = _VERSION.unpack_from(data, len(MAGIC))
    if version not in (_UNGROUPED_VERSION, VERSION):
        raise InvalidError(f"{path}: expected a write-ahead log of version {VERSION}, found version {version}")
    record = record_at(data, _START)
    if record is None or record[0] != HEADER or record[4] - record[3] < _NUMBERS.size:
        raise CorruptionError(f"{path}: the header record at byte {_START} is damaged")
    _, key_begin, key_end, row_begin, row_end, end = record
    schema_id, sequence = _NUMBERS.unpack_from(data, row_begin)
    identity = data[key_begin:key_end].decode(errors="replace")
    user, _, digest = data[row_begin + _NUMBERS.size : row_end].decode(errors="replace").partition("\0")
    return WalHeader(identity, schema_id, sequence, user, digest), end


def read_wal(data: bytes, *, path: str) -> WalContents:
    """All records of a log. CorruptionError where one is damaged that is no torn tail, for acknowledged rows may be behind it."""
    found = read_intact(data, path=path)
    if found.damaged_bytes:
        end = len(data) - found.damaged_bytes
        raise CorruptionError(
            f"{path}: the record at byte {end} is damaged, {len(found.records)} intact ones are before it; acknowledged rows may "
            f"be in the {found.damaged_bytes} bytes from there on"
        )
    return found


def read_intact(data: bytes, *, path: str) -> WalContents:
    """The records of a log up to the first that is damaged, without groups that are not whole; CorruptionError where the header
    is damaged."""
    header, start = read_wal_header(data, path=path)
    found, stopped = scan_records(data, start)
    if (found[:, 0] == HEADER).any():
        raise CorruptionError(f"{path}: expected one header record, found another among the rows")
    if _VERSION.unpack_from(data, len(MAGIC))[0] == _UNGROUPED_VERSION and (found[:, 0] > DELETE).any():
        raise CorruptionError(f"{path}: expected rows alone in a log of version 1, found a group or a key")
    groups = whole_groups(data, start, found, stopped, path=path)
    left = len(data) - groups.end
    if groups.cut is None:
        is_torn = not left or _is_torn(data, stopped)
    else:
        # A file that holds all bytes of a group had it whole; zeros are what a system has not written of it.
        rest = data[stopped:]
        is_torn = groups.cut > len(data) or (bool(rest) and not rest.strip(b"\0"))
    keys = decode_keys(data, groups.scanned)
    return WalContents(header, data, groups.rows, left if is_torn else 0, 0 if is_torn else left, groups.scanned, keys)


def _is_torn(data: bytes, at: int) -> bool:
    """Whether what begins at a place is a record that was never written whole."""
    rest = data[at:]
    if not rest.strip(b"\0"):
        return True
    if len(rest) < LENGTH_BYTES:
        return True
    length = int.from_bytes(rest[:LENGTH_BYTES], "big")
    if at + FRAME_BYTES + length <= len(data):
        return False
    left = len(rest) - FRAME_BYTES
    if left >= LEAST_LENGTH:
        whole = left.to_bytes(LENGTH_BYTES, "big") + rest[LENGTH_BYTES:-CRC_BYTES]
        if zlib.crc32(whole) == int.from_bytes(rest[-CRC_BYTES:], "big"):
            return False
    return not _has_record(rest)


def _has_record(rest: bytes) -> bool:
    """Whether an intact record begins anywhere behind the first byte."""
    data = np.frombuffer(rest, np.uint8)
    count = len(data) - FRAME_BYTES - LEAST_LENGTH
    if count < 1:
        return False
    places = np.arange(1, count + 1)
    places = places[np.isin(data[places + LENGTH_BYTES], RECORD_TYPES)]
    lengths = sum(data[places + step].astype(np.int64) << 24 - 8 * step for step in range(LENGTH_BYTES))
    fits = (lengths >= LEAST_LENGTH) & (places + FRAME_BYTES + lengths <= len(data))
    return any(record_at(rest, place) is not None for place in places[fits].tolist())
