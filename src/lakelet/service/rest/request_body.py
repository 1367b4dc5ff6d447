"""The body of a request: read up to a limit, decompressed up to the same limit, decoded from JSON."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeVar

import msgspec
import pyarrow as pa

from lakelet.errors import InvalidError, TooLargeError

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
T = TypeVar("T")

# Where a scope has its headers by name, once one was asked for.
_HEADERS = "lakelet.headers"
DEEPEST_JSON = 100
_ENCODINGS = frozenset(("gzip", "zstd"))
# Where the paths of ingest leave the name of the table in the scope, for the audit log.
AUDITED_TABLE = "lakelet.table"


class DisconnectedError(Exception):
    """The client went away before its request was complete."""


def header(scope: Scope, name: bytes) -> str | None:
    """The value of a header, None where it is not there."""
    headers = scope.get(_HEADERS)
    if headers is None:
        # Of a header that is repeated, the first counts.
        headers = scope[_HEADERS] = dict(reversed(scope["headers"]))
    value = headers.get(name)
    return None if value is None else bytes(value).decode("latin-1")


async def read_body(scope: Scope, receive: Receive, most_bytes: int) -> bytes:
    """The whole body, decompressed; TooLargeError beyond the limit."""
    announced = header(scope, b"content-length")
    if announced is not None and announced.isdigit() and int(announced) > most_bytes:
        raise _too_large(most_bytes)
    message = await receive()
    if message["type"] == "http.disconnect":
        raise DisconnectedError
    body = message.get("body", b"")
    if message.get("more_body"):
        parts, size = [body], len(body)
        while message.get("more_body"):
            message = await receive()
            if message["type"] == "http.disconnect":
                raise DisconnectedError
            part = message.get("body", b"")
            size += len(part)
            if size > most_bytes:
                raise _too_large(most_bytes)
            parts.append(part)
        body = b"".join(parts)
    if len(body) > most_bytes:
        raise _too_large(most_bytes)
    encoding = header(scope, b"content-encoding")
    return body if encoding is None else decompressed(body, encoding, most_bytes)


def decompressed(body: bytes, encoding: str, most_bytes: int) -> bytes:
    """A body as it was before its content encoding, all members or frames of it; InvalidError for one that ends early, has bytes
    behind its end, or is damaged: a part of a batch would pass for the whole of it."""
    kind = encoding.strip().lower()
    if kind in ("", "identity"):
        return body
    if kind not in _ENCODINGS:
        raise InvalidError(f"content-encoding: expected gzip, zstd or identity, found {encoding!r}")
    if not body:
        raise InvalidError(f"body: expected {kind}, found nothing")
    try:
        with pa.CompressedInputStream(pa.BufferReader(body), kind) as stream:
            found: bytes = stream.read(most_bytes + 1)
    except (pa.ArrowException, OSError) as error:
        raise InvalidError(f"body: {kind} does not decode: {error}") from None
    if len(found) > most_bytes:
        raise _too_large(most_bytes)
    return found


def decode_json(body: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """A value of a JSON body; InvalidError with the place of what is wrong."""
    try:
        return decoder.decode(body)
    except RecursionError:
        raise InvalidError("body: JSON is nested too deep") from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        text = str(error)
        if text == "Input data was truncated":
            text = "JSON ends early, or has half of a surrogate pair"
        raise InvalidError(f"body: {text}") from None


def _too_large(most_bytes: int) -> TooLargeError:
    return TooLargeError(f"body: at most {most_bytes} bytes are taken; send smaller batches")
