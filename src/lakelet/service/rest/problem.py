"""Errors as problem documents (RFC 9457): a stable code, the status, and what was wrong. No trace or path reaches a client."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import msgspec

from lakelet.error_codes import codes_of, retry_after_seconds
from lakelet.errors import OverloadedError, UnauthenticatedError, UnavailableError
from lakelet.service.error_detail import error_detail

CONTENT_TYPE = b"application/problem+json"
_LOG = logging.getLogger("lakelet.service.rest")
_TITLES = {
    "invalid": "The request is invalid",
    "not-found": "Not found",
    "already-exists": "It exists already",
    "conflict": "A concurrent change is in the way",
    "commit-unknown": "The outcome is unknown",
    "corruption": "Stored data is damaged",
    "unavailable": "Not available now",
    "outcome-unknown": "The outcome is unknown",
    "overloaded": "Too many requests",
    "too-large": "The request is too large",
    "permission-denied": "Not permitted",
    "unauthenticated": "Who is asking is unknown",
    "internal": "An error of the service",
}

Headers = list[tuple[bytes, bytes]]


def problem_of(
    error: BaseException, request_id: str, hidden: Mapping[str, str] | None = None
) -> tuple[int, Headers, bytes]:
    """The status, headers and body that answer an error, without `hidden` paths."""
    codes = codes_of(error)
    detail = error_detail(error, request_id, _LOG, hidden)
    document: dict[str, object] = {
        "type": f"urn:lakelet:error:{codes.code}",
        "title": _TITLES[codes.code],
        "status": codes.http_status,
        "detail": detail,
        "code": codes.code,
        "request_id": request_id,
    }
    for name in ("line", "column"):
        if isinstance(getattr(error, name, None), int):
            document[name] = getattr(error, name)
    if isinstance(error, UnavailableError) and error.nothing_done:
        document["nothing_done"] = True
    headers: Headers = [(b"content-type", CONTENT_TYPE)]
    if isinstance(error, OverloadedError | UnavailableError):
        headers.append((b"retry-after", str(retry_after_seconds(error)).encode()))
    if isinstance(error, UnauthenticatedError):
        headers.append((b"www-authenticate", b'Bearer realm="lakelet"'))
    return codes.http_status, headers, msgspec.json.encode(document)


def plain_problem(status: int, code: str, title: str, request_id: str) -> bytes:
    """The document of an error of HTTP itself: an unknown path, or a method that a path does not have."""
    return msgspec.json.encode(
        {
            "type": f"urn:lakelet:error:{code}",
            "title": title,
            "status": status,
            "detail": f"{title}: GET /openapi.json lists paths and methods",
            "code": code,
            "request_id": request_id,
        }
    )
