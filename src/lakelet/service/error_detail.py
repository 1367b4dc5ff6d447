"""What an answer says of an error, the same over HTTP and gRPC: the message where the request is at fault, else its kind alone.

Messages of failures of the service name files, addresses and what a library said: they are in the log, under the request's id.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping

from lakelet.error_codes import codes_of
from lakelet.errors import InternalError, LakeletError
from lakelet.realtime.settings import wal_path

_FAILED = 500
_KINDS = {
    "commit-unknown": "whether it was done is unknown: look before you send it again",
    "outcome-unknown": "a node that may have written it did not answer: send it again under its idempotency key",
    "corruption": "stored data is damaged or missing",
    "unavailable": "the service, or a store that it needs, does not answer now",
    "internal": "the service failed",
}


def hidden_paths(location: str, wal_folder: object) -> dict[str, str]:
    """The places of a service that no answer names, and what stands for them."""
    found = {location.rstrip("/"): "<warehouse>", os.path.dirname(wal_path(wal_folder, "logs")): "<logs>"}
    return {path: shown for path, shown in found.items() if len(path) > 1}


def error_detail(
    error: BaseException, request_id: str, log: logging.Logger, hidden: Mapping[str, str] | None = None
) -> str:
    """The detail of an error for the one who asked, without `hidden` paths; failures of the service are logged whole, defects
    with their trace."""
    codes = codes_of(error)
    if codes.http_status < _FAILED:
        text = str(error)
        for path, shown in (hidden or {}).items():
            text = text.replace(path, shown)
        return text
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
