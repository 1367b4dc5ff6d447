"""Records of a log that are written together: a GROUP in front of them says how many they are, and a KEY whose write they are.

    GROUP   key: empty
            row: count 4, bytes 8     of the records behind it that belong to it, big-endian
    KEY     key: the name of a write, so that it can be recognised when it is repeated
            row: time 8, note         milliseconds since 1970; what the writer wants to know about it later

    GROUP 3 ── KEY ── PUT ── PUT      one write: all of it is replayed, or none
    PUT                               one record is a group of its own, and needs no mark

The mark is in front, with the bytes that follow: a group that the file does not hold whole was never acknowledged, however many
intact records it begins with.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lakelet.errors import CorruptionError
from lakelet.format.wal.wal_record import CRC_BYTES, DELETE, GROUP, KEY, PUT, Longs, encode_record

_MARK = struct.Struct(">IQ")
_TIME = struct.Struct(">q")
_MARK_TYPE = np.dtype([("count", ">u4"), ("bytes", ">u8")])


@dataclass(frozen=True, slots=True)
class WalKey:
    """The name of a write, when it was made, and a note of its writer."""

    name: bytes
    time_ms: int
    note: bytes


@dataclass(frozen=True, slots=True)
class WholeGroups:
    """Scanned records up to the last whole group. `end` is the place behind them, `cut` that where the bytes of a further group
    end that is not whole, None where there is none."""

    scanned: Longs
    end: int
    cut: int | None

    @property
    def rows(self) -> Longs:
        """The records that put or delete a row."""
        kinds = self.scanned[:, 0]
        found: Longs = self.scanned[(kinds == PUT) | (kinds == DELETE)]
        return found


def encode_key(key: WalKey) -> bytes:
    """The record of a key."""
    return encode_record(KEY, key.name, _TIME.pack(key.time_ms) + key.note)


def encode_group(records: bytes, count: int, keys: Sequence[WalKey] = ()) -> bytes:
    """Records, encoded one behind the other, with their keys and a mark in front; a single record is as it is."""
    if count + len(keys) <= 1:
        return encode_key(keys[0]) if keys else records
    body = [*map(encode_key, keys), records]
    mark = _MARK.pack(count + len(keys), sum(map(len, body)))
    return b"".join((encode_record(GROUP, b"", mark), *body))


def decode_keys(data: bytes, scanned: Longs) -> tuple[WalKey, ...]:
    """The keys among scanned records, in their order."""
    found = scanned[scanned[:, 0] == KEY].tolist()
    return tuple(
        WalKey(data[key:key_end], _TIME.unpack_from(data, begin)[0], data[begin + _TIME.size : end])
        for _, key, key_end, begin, end in found
        if end - begin >= _TIME.size
    )


def whole_groups(data: bytes, start: int, scanned: Longs, end: int, *, path: str) -> WholeGroups:
    """The records of groups that are whole, of those that were scanned from `start` up to `end`. CorruptionError where marks and
    records contradict each other, which no interrupted write leaves behind."""
    places = np.flatnonzero(scanned[:, 0] == GROUP)
    if not len(places):
        return WholeGroups(scanned, end, None)
    marks = scanned[places]
    if ((marks[:, 4] - marks[:, 3]) != _MARK.size).any():
        raise CorruptionError(f"{path}: a group's mark has another size than {_MARK.size} bytes")
    spans = marks[:, 3, None] + np.arange(_MARK.size)
    stored = np.ascontiguousarray(np.frombuffer(data, np.uint8)[spans]).view(_MARK_TYPE).reshape(-1)
    lasts = places + stored["count"].astype(np.int64)
    ends = marks[:, 4] + CRC_BYTES + stored["bytes"].astype(np.int64)
    is_whole = lasts < len(scanned)
    wrong = np.flatnonzero((places[1:] <= lasts[:-1]) | ~is_whole[:-1])
    known = np.flatnonzero(is_whole)
    wrong_ends = known[scanned[lasts[known], 4] + CRC_BYTES != ends[known]]
    if len(wrong) or len(wrong_ends):
        at = int(marks[min([*wrong.tolist(), *wrong_ends.tolist()]), 1])
        raise CorruptionError(f"{path}: the group at byte {at} has other records than its mark says")
    if is_whole[-1]:
        return WholeGroups(scanned, end, None)
    last = int(places[-1])
    begin = start if last == 0 else int(scanned[last - 1, 4]) + CRC_BYTES
    return WholeGroups(scanned[:last], begin, int(ends[-1]))
