"""Records as requests bring them, validated: ids, timestamps and payloads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakelet.errors import InvalidError
from lakelet.service.timestamps import parse_timestamp
from lakelet.service.values import Record

LONGEST_ID_BYTES = 1024
_KEYS = frozenset(("id", "timestamp", "payload"))


def check_id(value: object) -> str:
    """The id itself; InvalidError unless it is text of 1 to 1,024 bytes in UTF-8."""
    if not isinstance(value, str):
        raise InvalidError(f"id: expected a text, found {type(value).__name__}")
    if value.isascii() and 0 < len(value) <= LONGEST_ID_BYTES:
        return value
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise InvalidError("id: expected text that UTF-8 can hold, found half of a surrogate pair") from None
    if not 0 < size <= LONGEST_ID_BYTES:
        raise InvalidError(f"id: expected 1 to {LONGEST_ID_BYTES} bytes, found {size}")
    return value


def record_of(value: object, *, also: frozenset[str] = frozenset()) -> Record:
    """The record of a decoded JSON object; `also` are further keys that it may have."""
    if not isinstance(value, Mapping):
        raise InvalidError(f"expected a JSON object with id, timestamp and payload, found {type(value).__name__}")
    unknown = value.keys() - _KEYS - also
    if unknown:
        raise InvalidError(f"unknown field {min(map(repr, unknown))}: a record has id, timestamp and payload")
    missing = [key for key in ("id", "timestamp", "payload") if key not in value]
    if missing:
        raise InvalidError(f"{missing[0]}: missing; a record has id, timestamp and payload")
    return Record(check_id(value["id"]), parse_timestamp(value["timestamp"]), check_payload(value["payload"]))


def check_payload(value: object) -> Mapping[str, Any]:
    """The payload itself; InvalidError unless it is an object."""
    if not isinstance(value, Mapping):
        raise InvalidError(f"payload: expected a JSON object, found {type(value).__name__}")
    return value
