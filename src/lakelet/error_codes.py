"""Map error kinds to the codes of every interface: exit status, HTTP and gRPC.

    kind                    code                exit   HTTP   gRPC
    InvalidError            invalid             1      400    INVALID_ARGUMENT
    NotFoundError           not-found           1      404    NOT_FOUND
    AlreadyExistsError      already-exists      1      409    ALREADY_EXISTS
    ConflictError           conflict            1      409    ABORTED
    CommitUnknownError      commit-unknown      1      500    UNKNOWN
    CorruptionError         corruption          1      500    DATA_LOSS
    UnavailableError        unavailable         1      503    UNAVAILABLE
    OutcomeUnknownError     outcome-unknown     1      503    UNAVAILABLE
    OverloadedError         overloaded          1      429    RESOURCE_EXHAUSTED
    TooLargeError           too-large           1      413    RESOURCE_EXHAUSTED
    PermissionDeniedError   permission-denied   1      403    PERMISSION_DENIED
    UnauthenticatedError    unauthenticated     1      401    UNAUTHENTICATED
    InternalError           internal            1      500    INTERNAL

An interface asks `codes_of(error)` and decides nothing itself: the same failure has the same meaning on all of them. Whatever
is no LakeletError is a defect, and reported as InternalError. A commit whose outcome is unknown is neither 503 nor UNAVAILABLE,
for clients retry those automatically.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from lakelet.errors import (
    AlreadyExistsError,
    CommitUnknownError,
    ConflictError,
    CorruptionError,
    InternalError,
    InvalidError,
    LakeletError,
    NotFoundError,
    OutcomeUnknownError,
    OverloadedError,
    PermissionDeniedError,
    TooLargeError,
    UnauthenticatedError,
    UnavailableError,
)

_FAILED = 1
_UNAVAILABLE_SECONDS = 1


@dataclass(frozen=True, slots=True)
class ErrorCodes:
    """The codes of one error kind; `code`, for programs, never changes; `grpc_status` names a `grpc.StatusCode`."""

    code: str
    exit_status: int
    http_status: int
    grpc_status: str


ERROR_CODES: dict[type[LakeletError], ErrorCodes] = {
    InvalidError: ErrorCodes("invalid", _FAILED, 400, "INVALID_ARGUMENT"),
    NotFoundError: ErrorCodes("not-found", _FAILED, 404, "NOT_FOUND"),
    AlreadyExistsError: ErrorCodes("already-exists", _FAILED, 409, "ALREADY_EXISTS"),
    ConflictError: ErrorCodes("conflict", _FAILED, 409, "ABORTED"),
    CommitUnknownError: ErrorCodes("commit-unknown", _FAILED, 500, "UNKNOWN"),
    CorruptionError: ErrorCodes("corruption", _FAILED, 500, "DATA_LOSS"),
    UnavailableError: ErrorCodes("unavailable", _FAILED, 503, "UNAVAILABLE"),
    OutcomeUnknownError: ErrorCodes("outcome-unknown", _FAILED, 503, "UNAVAILABLE"),
    OverloadedError: ErrorCodes("overloaded", _FAILED, 429, "RESOURCE_EXHAUSTED"),
    TooLargeError: ErrorCodes("too-large", _FAILED, 413, "RESOURCE_EXHAUSTED"),
    PermissionDeniedError: ErrorCodes("permission-denied", _FAILED, 403, "PERMISSION_DENIED"),
    UnauthenticatedError: ErrorCodes("unauthenticated", _FAILED, 401, "UNAUTHENTICATED"),
    InternalError: ErrorCodes("internal", _FAILED, 500, "INTERNAL"),
}


def codes_of(error: BaseException | type[BaseException]) -> ErrorCodes:
    """The codes of an error's kind, the most specific one; those of InternalError for any other exception."""
    kind = error if isinstance(error, type) else type(error)
    return next((ERROR_CODES[one] for one in kind.__mro__ if one in ERROR_CODES), ERROR_CODES[InternalError])


def retry_after_seconds(error: OverloadedError | UnavailableError) -> int:
    """When a request that failed by an error may be sent again, in whole seconds. That it may does not say that nothing of it was
    done."""
    seconds = error.retry_after_seconds
    return _UNAVAILABLE_SECONDS if seconds is None else math.ceil(seconds)
