"""What an answer says of an error, the same over HTTP and gRPC: the message where the request is at fault, else its kind alone.

Messages of failures of the service name files, addresses and what a library said: they are in the log, under the request's id.
"""

from __future__ import annotations

import logging

from lakelet.error_codes import codes_of
from lakelet.errors import InternalError, LakeletError

_FAILED = 500
_KINDS = {
    "commit-unknown": "whether it was done is unknown: look before you send it again",
    "outcome-unknown": "a node that may have written it did not answer: send it again under its idempotency key",
    "corruption": "stored data is damaged or missing",
    "unavailable": "the service, or a store that it needs, does not answer now",
    "internal": "the service failed",
}


def error_detail(error: BaseException, request_id: str, log: logging.Logger) -> str:
    """The detail of an error for the one who asked; failures of the service are logged whole, defects with their trace."""
    codes = codes_of(error)
    if codes.http_status < _FAILED:
        return str(error)
    is_defect = not isinstance(error, LakeletError) or isinstance(error, InternalError)
    log.log(
        logging.ERROR if is_defect else logging.WARNING,
        "request %s failed: %s",
        request_id,
        error,
        exc_info=error if is_defect else None,
        extra={"request_id": request_id},
    )
    return f"{_KINDS[codes.code]}; the log of the service says more under request {request_id}"
