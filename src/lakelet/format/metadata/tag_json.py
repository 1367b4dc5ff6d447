"""Tag files: `tag/tag-NAME`, the JSON of a snapshot file and, where the tag expires by itself, two members more.

    {"version": 3, "id": N, …,
     "tagCreateTime": [2026, 11, 15, 19, 44, 58, 418540380],     year to nanosecond, in the zone of the machine that made it;
                                                                 without seconds and nanoseconds where these are 0
     "tagTimeRetained": 93600.500000000}                         seconds

A tag is made from the bytes of the snapshot file, so that members of newer versions are preserved.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from lakelet.errors import CorruptionError
from lakelet.format.metadata.snapshot_json import decode_snapshot
from lakelet.format.metadata.stored_json import load_json
from lakelet.model.tag import Tag

_CREATE_TIME, _TIME_RETAINED = "tagCreateTime", "tagTimeRetained"


def encode_tag(snapshot: bytes, create_time: datetime | None = None, time_retained: timedelta | None = None) -> bytes:
    """The bytes of a tag of a snapshot file; the times are given both or not at all."""
    text = json.dumps(_members(snapshot), indent=2, ensure_ascii=False)
    if create_time is not None and time_retained is not None:
        numbers = ", ".join(map(str, _numbers(create_time)))
        micros = time_retained // timedelta(microseconds=1)
        seconds = f"{micros // 10**6}.{micros % 10**6:06}000"
        text = f'{text[:-2]},\n  "{_CREATE_TIME}": [{numbers}],\n  "{_TIME_RETAINED}": {seconds}\n}}'
    return text.encode()


def decode_tag(data: bytes, *, name: str, path: str) -> Tag:
    """The tag in `data`; errors name `path`."""
    snapshot = decode_snapshot(data, path=path)
    try:
        value = load_json(data, parse_float=Decimal)
        created, retained = value.get(_CREATE_TIME), value.get(_TIME_RETAINED)
        return Tag(
            name,
            snapshot,
            None if created is None else _create_time(created),
            None if retained is None else timedelta(microseconds=int(Decimal(retained) * 10**6)),
        )
    except (ValueError, TypeError, ArithmeticError, AttributeError) as error:
        raise CorruptionError(f"{path}: not a tag file ({type(error).__name__}: {error})") from error


def tagged_snapshot_bytes(tag: bytes) -> bytes:
    """The bytes of the snapshot file that a tag was made from, but for blanks."""
    return json.dumps(_members(tag), indent=2, ensure_ascii=False).encode()


def _members(data: bytes) -> dict[str, Any]:
    value: dict[str, Any] = load_json(data)
    return {key: member for key, member in value.items() if key not in (_CREATE_TIME, _TIME_RETAINED)}


def _numbers(moment: datetime) -> list[int]:
    numbers = [moment.year, moment.month, moment.day, moment.hour, moment.minute]
    if moment.second or moment.microsecond:
        numbers.append(moment.second)
    if moment.microsecond:
        numbers.append(moment.microsecond * 1000)
    return numbers


def _create_time(value: Any) -> datetime:
    """A point in time, in the array form that Java writes or as ISO 8601 text."""
    if isinstance(value, str):
        return datetime.fromisoformat(value)
    year, month, day, hour, minute, second, nanos = (*map(int, value), 0, 0)[:7]
    return datetime(year, month, day, hour, minute, second, nanos // 1000)
