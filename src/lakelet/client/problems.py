"""Errors of a service as the kinds of `lakelet.errors`: by the code of its problem document, else by the status.

An answer without a problem document comes from something between: a proxy, or another server at that address.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from lakelet.client.connections import HttpAnswer
from lakelet.clock import Clock
from lakelet.error_codes import ERROR_CODES
from lakelet.errors import (
    CommitUnknownError,
    InternalError,
    InvalidError,
    LakeletError,
    OutcomeUnknownError,
    OverloadedError,
    UnavailableError,
)

_KINDS: dict[str, type[LakeletError]] = {codes.code: kind for kind, codes in ERROR_CODES.items()}
_AMBIGUOUS = frozenset((409, 500))
_STATUS_KINDS: dict[int, type[LakeletError]] = {
    codes.http_status: kind
    for kind, codes in ERROR_CODES.items()
    if codes.http_status not in _AMBIGUOUS and kind is not OutcomeUnknownError
}
_GATEWAY = frozenset((502, 503, 504))
_SHOWN_BODY = 200


def error_of(answer: HttpAnswer, retry_after: float | None) -> LakeletError:
    """The error that an answer tells of. `line` and `column` are set where it names a place in a statement."""
    document = _problem(answer)
    if document is None:
        return _without_document(answer, retry_after)
    detail = str(document.get("detail") or document.get("title") or f"status {answer.status}")
    kind = _KINDS.get(str(document.get("code"))) or _kind_of(answer.status)
    error = _made(kind, detail, retry_after)
    places = {name: document[name] for name in ("line", "column") if isinstance(document.get(name), int)}
    error.__dict__.update(places, request_id=document.get("request_id"))
    return error


def is_refusal(answer: HttpAnswer, error: LakeletError) -> bool:
    """Whether the service itself says that nothing of the request was done and that it may come again."""
    document = _problem(answer)
    if document is None:
        return False
    return isinstance(error, OverloadedError) or (
        isinstance(error, UnavailableError) and document.get("nothing_done") is True
    )


def retry_after_of(answer: HttpAnswer, clock: Clock) -> float | None:
    """The seconds of the header Retry-After, which is a number or a date; None where there is none."""
    text = answer.headers.get("retry-after")
    if text is None:
        return None
    if text.strip().isdecimal():
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    now = datetime.fromtimestamp(clock.now_ms() / 1000, UTC)
    return max(0.0, ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - now).total_seconds())


def unknown_outcome(reason: object) -> CommitUnknownError:
    """The error of a change that may be done or not."""
    return CommitUnknownError(f"{reason}; whether it was done is unknown: look before you send it again")


def _problem(answer: HttpAnswer) -> dict[str, object] | None:
    if answer.media_type != "application/problem+json":
        return None
    try:
        found = json.loads(answer.body)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _without_document(answer: HttpAnswer, retry_after: float | None) -> LakeletError:
    text = answer.body[:_SHOWN_BODY].decode(errors="replace").strip()
    detail = f"expected an answer of a Lakelet service, found status {answer.status}: {text!r}"
    return _made(_kind_of(answer.status), detail, retry_after)


def _kind_of(status: int) -> type[LakeletError]:
    if status in _GATEWAY:
        return UnavailableError
    return _STATUS_KINDS.get(status) or (InternalError if status >= 500 else InvalidError)


def _made(kind: type[LakeletError], detail: str, retry_after: float | None) -> LakeletError:
    if kind is OverloadedError:
        return OverloadedError(detail, retry_after_seconds=1.0 if retry_after is None else retry_after)
    return kind(detail)
