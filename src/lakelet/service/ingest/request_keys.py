"""Idempotency keys: the name of a request in its table's log, and the answer that is kept with it.

    name    16 bytes   a digest of the caller and its key: each caller has keys of its own, and each table
    note    16 bytes   a digest of the request, to tell a repeated one from another under the same key
            the rest   the answer in MessagePack: records written, values in payload_rest, refused records

The name is in the group of the request's rows (`format/wal/wal_group`), so that a crash leaves both or neither.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

import msgspec

from lakelet.errors import AlreadyExistsError, InvalidError
from lakelet.format.wal.wal_group import WalKey
from lakelet.service.values import RefusedRecord, RequestKey, WriteResult

_DIGEST_BYTES = 16
_KEY = re.compile(r"[!-~]{1,255}", re.ASCII)
_ANSWER = msgspec.msgpack.Decoder(tuple[int, int, list[tuple[int, str]]])


@dataclass(frozen=True, slots=True)
class UnitKey:
    """The name of a request, and what it is compared by when it is repeated."""

    name: bytes
    fingerprint: bytes
    shown: str
    is_first: bool = False

    def wal_key(self, result: WriteResult, now_ms: int) -> WalKey:
        """What the log keeps of a request that is written with this answer."""
        refused = [(one.place, one.reason) for one in result.refused]
        answer = msgspec.msgpack.encode((result.written, result.rest_values, refused))
        return WalKey(self.name, now_ms, self.fingerprint + answer)

    def first_answer(self, kept: WalKey) -> WriteResult:
        """The answer to the first request under this key; AlreadyExistsError where that was another one."""
        if kept.note[:_DIGEST_BYTES] != self.fingerprint:
            raise AlreadyExistsError(
                f"idempotency key {self.shown!r} was used for another request to this table within the last 24 hours: nothing of "
                "this one was written; expected the same request, or another key"
            )
        written, rest_values, refused = _ANSWER.decode(kept.note[_DIGEST_BYTES:])
        return WriteResult(written, rest_values, tuple(RefusedRecord(*one) for one in refused), repeated=True)


def request_key(key: str, *parts: bytes, is_first: bool = False) -> RequestKey:
    """A key that came with a request, whose parts say what it asks for; InvalidError for a key that is none."""
    if not _KEY.fullmatch(key):
        raise InvalidError(f"Idempotency-Key: expected 1 to 255 visible ASCII characters, found {key[:40]!r}")
    return RequestKey(key, _digest(*parts), is_first)


def unit_key(caller: str, key: RequestKey | None) -> UnitKey | None:
    """The key of a caller as the log has it."""
    if key is None:
        return None
    return UnitKey(_digest(caller.encode(), key.key.encode()), key.fingerprint, key.key, key.is_first)


def _digest(*parts: bytes) -> bytes:
    """A digest of parts, each with its length: no two lists of them are alike."""
    made = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for part in parts:
        made.update(len(part).to_bytes(8, "big"))
        made.update(part)
    return made.digest()
