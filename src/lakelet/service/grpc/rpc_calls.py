"""Around every RPC: who calls, under which request id, and the status of an error.

One table maps error kinds to HTTP and gRPC (`error_codes`); an answer with the status OK is never a failure. The trailing
metadata `lakelet-code` has the code, `x-request-id` the id under which the log has more.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import grpc

from lakelet.error_codes import codes_of, retry_after_seconds
from lakelet.errors import InternalError, LakeletError, OverloadedError, UnavailableError
from lakelet.ids import RandomIds
from lakelet.service.access.access import Access
from lakelet.service.access.caller import Caller

_LOG = logging.getLogger("lakelet.service.grpc")
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
_NOBODY = Caller("nobody")
_IDS = RandomIds()


@dataclass(frozen=True, slots=True)
class Call:
    """A call: its caller, the id of the request, and the metadata `idempotency-key`."""

    caller: Caller
    request_id: str
    idempotency_key: str | None = None

    def query_id(self, request_id: str) -> str:
        """The id of a query of this caller: nobody cancels the queries of others."""
        return f"{self.caller.name}/{request_id}"


Unary = Callable[[Any, Call], Awaitable[Any]]
Streaming = Callable[[Any, Call], AsyncIterator[Any]]


def unary(access: Access, method: Unary, *, is_open: bool = False) -> Callable[[Any, Any], Awaitable[Any]]:
    """The handler of an RPC with one answer; `is_open` where no key is needed."""

    async def handle(request: Any, context: Any) -> Any:
        request_id = _request_id(context)
        try:
            caller, key = _caller(access, context, is_open=is_open), _metadata(context).get("idempotency-key")
            return await method(request, Call(caller, request_id, key))
        except asyncio.CancelledError:
            raise
        except Exception as error:
            await _abort(context, error, request_id)

    return handle


def streaming(access: Access, method: Streaming) -> Callable[[Any, Any], AsyncIterator[Any]]:
    """The handler of an RPC with a stream of answers."""

    async def handle(request: Any, context: Any) -> AsyncIterator[Any]:
        request_id = _request_id(context)
        try:
            async for answer in method(request, Call(_caller(access, context, is_open=False), request_id)):
                yield answer
        except (asyncio.CancelledError, GeneratorExit):
            raise
        except Exception as error:
            await _abort(context, error, request_id)

    return handle


def _caller(access: Access, context: Any, *, is_open: bool) -> Caller:
    authorization = _metadata(context).get("authorization")
    if is_open:
        return access.try_caller(authorization) or _NOBODY
    return access.caller(authorization)


def _request_id(context: Any) -> str:
    given = _metadata(context).get("x-request-id", "")
    return given if _REQUEST_ID.fullmatch(given) else _IDS.uuid()


def _metadata(context: Any) -> dict[str, str]:
    return {key: value for key, value in context.invocation_metadata() or () if isinstance(value, str)}


async def _abort(context: Any, error: Exception, request_id: str) -> None:
    """End a call with the status of an error."""
    codes = codes_of(error)
    if not isinstance(error, LakeletError) or isinstance(error, InternalError):
        _LOG.error("request %s failed: %s", request_id, error, exc_info=error, extra={"request_id": request_id})
        detail = f"the service failed; its log says why under request {request_id}"
    else:
        detail = str(error)
    trailing = [("lakelet-code", codes.code), ("x-request-id", request_id), *getattr(error, "trailing", ())]
    if isinstance(error, OverloadedError | UnavailableError):
        trailing.append(("retry-after", str(retry_after_seconds(error))))
    if isinstance(error, UnavailableError) and error.nothing_done:
        trailing.append(("lakelet-nothing-done", "true"))
    await context.abort(grpc.StatusCode[codes.grpc_status], detail, tuple(trailing))
