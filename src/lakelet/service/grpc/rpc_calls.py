"""Around every RPC: who calls, under which request id, and the status of an error.

One table maps error kinds to HTTP and gRPC (`error_codes`); an answer with the status OK is never a failure. The trailing
metadata `lakelet-code` has the code, `x-request-id` the id under which the log has more.
"""

from __future__ import annotations

import asyncio
import logging
import math
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

import grpc

from lakelet.clock import SystemClock
from lakelet.error_codes import codes_of, retry_after_seconds
from lakelet.errors import OverloadedError, UnauthenticatedError, UnavailableError
from lakelet.ids import RandomIds
from lakelet.service.access.audit_log import AuditedRequest, AuditLog
from lakelet.service.access.caller import Caller
from lakelet.service.access.rate_limits import RateLimits
from lakelet.service.error_detail import error_detail
from lakelet.service.request_metrics import DISCONNECTED, GRPC, RequestMetrics

_LOG = logging.getLogger("lakelet.service.grpc")
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
# The metadata by which a node says whom it calls.
NODE = "lakelet-node"
_NOBODY = Caller("nobody")
_IDS = RandomIds()
_CLOCK = SystemClock()


class Callers(Protocol):
    """Who callers are, by what they send, how much they may, and who is told of it."""

    @property
    def limits(self) -> RateLimits:
        """How much each may."""

    @property
    def audit(self) -> AuditLog | None:
        """Who is told."""

    def caller(self, authorization: str | None) -> Caller:
        """The caller; UnauthenticatedError for nobody."""

    def try_caller(self, authorization: str | None) -> Caller | None:
        """The caller, None for nobody."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call: its caller, the id of the request, the metadata `idempotency-key`, the node that is called, and metadata that
    the answer ends with."""

    caller: Caller
    request_id: str
    idempotency_key: str | None = None
    node: str | None = None
    trailing: list[tuple[str, str]] = field(default_factory=list)

    def warn(self, warnings: Sequence[str]) -> None:
        """Tell why the answer may lack rows."""
        self.trailing.extend(("lakelet-warning", text) for text in warnings)


Unary = Callable[[Any, Call], Awaitable[Any]]
Streaming = Callable[[Any, Call], AsyncIterator[Any]]


@dataclass(frozen=True, slots=True)
class Around:
    """What is around the calls of one RPC: who may call it, what counts its calls, its name there, and paths that no error
    names."""

    access: Callers
    metrics: RequestMetrics
    route: str
    hidden: Mapping[str, str] = field(default_factory=dict)


def unary(around: Around, method: Unary, *, is_open: bool = False) -> Callable[[Any, Any], Awaitable[Any]]:
    """The handler of an RPC with one answer; `is_open` where no key is needed."""
    access = around.access

    async def handle(request: Any, context: Any) -> Any:
        with _Answered(around, context, method.__name__, request) as answered:
            try:
                caller = answered.caller = _caller(access, context, is_open=is_open)
                if not is_open:
                    request = _admitted(access, caller, request, context)
                sent = _metadata(context)
                call = Call(caller, answered.request_id, sent.get("idempotency-key"), sent.get(NODE))
                answer = await method(request, call)
                if call.trailing:
                    context.set_trailing_metadata(tuple(call.trailing))
                return answer
            except asyncio.CancelledError:
                answered.cancelled()
                raise
            except Exception as error:
                answered.failed(error)
                await _abort(context, error, answered.request_id, around.hidden)

    return handle


def streaming(around: Around, method: Streaming) -> Callable[[Any, Any], AsyncIterator[Any]]:
    """The handler of an RPC with a stream of answers."""
    access = around.access

    async def handle(request: Any, context: Any) -> AsyncIterator[Any]:
        with _Answered(around, context, method.__name__, request) as answered:
            try:
                caller = answered.caller = _caller(access, context, is_open=False)
                request = _admitted(access, caller, request, context)
                call = Call(caller, answered.request_id, node=_metadata(context).get(NODE))
                async for answer in method(request, call):
                    yield answer
                if call.trailing:
                    context.set_trailing_metadata(tuple(call.trailing))
            except (asyncio.CancelledError, GeneratorExit):
                answered.cancelled()
                raise
            except Exception as error:
                answered.failed(error)
                await _abort(context, error, answered.request_id, around.hidden)

    return handle


class _Answered:
    """A call until its end, when it is counted, and the audit log is told of it."""

    def __init__(self, around: Around, context: Any, action: str, request: Any) -> None:
        self.caller = _NOBODY
        self.request_id = _request_id(context)
        self.result = "ok"
        self.status = 200
        self._metrics = around.metrics
        self._route = around.route
        self._audit = around.access.audit
        self._action = action
        self._context = context
        self._request = request
        self._started = _CLOCK.monotonic()

    def __enter__(self) -> Self:
        self._metrics.running += 1
        return self

    def cancelled(self) -> None:
        """Note that the client went away."""
        self.result, self.status = "cancelled", DISCONNECTED

    def failed(self, error: Exception) -> None:
        """Note an error, by the status that its kind has over HTTP."""
        codes = codes_of(error)
        self.result, self.status = codes.code, codes.http_status

    def __exit__(self, *_: object) -> None:
        seconds = _CLOCK.monotonic() - self._started
        self._metrics.running -= 1
        self._metrics.count(GRPC, self._route, "POST", self.status, seconds)
        if self._audit is None:
            return
        table = getattr(self._request, "table", None) or getattr(self._request, "table_name", None)
        sql = getattr(self._request, "sql", None)
        peer = self._context.peer()
        self._audit.request(
            AuditedRequest(self._action, self.caller, "grpc", peer, self.request_id, self.result, seconds, table, sql)
        )


def _admitted(access: Callers, caller: Caller, request: Any, context: Any) -> Any:
    """Take a call from the limits of its caller. Messages of a stream are read no faster than they allow."""
    limits = access.limits
    if not isinstance(request, AsyncIterator):
        limits.take(caller, request.ByteSize() if limits.counts_bytes(caller) else 0)
        return request
    limits.take(caller)
    return _paced(access, caller, request, context)


async def _paced(access: Callers, caller: Caller, messages: AsyncIterator[Any], context: Any) -> AsyncIterator[Any]:
    limits, counts = access.limits, access.limits.counts_bytes(caller)
    async for message in messages:
        # A stream may last for days: a key that is revoked, or whose rights have changed, ends it.
        if _caller(access, context, is_open=False) != caller:
            raise UnauthenticatedError("the API key of this stream was revoked or changed: begin another one")
        wait = limits.charge(caller, message.ByteSize()) if counts else 0.0
        yield message
        if wait:
            await asyncio.sleep(wait)


def _caller(access: Callers, context: Any, *, is_open: bool) -> Caller:
    authorization = _metadata(context).get("authorization")
    if is_open:
        return access.try_caller(authorization) or _NOBODY
    return access.caller(authorization)


def _request_id(context: Any) -> str:
    given = _metadata(context).get("x-request-id", "")
    return given if _REQUEST_ID.fullmatch(given) else _IDS.uuid()


def _metadata(context: Any) -> dict[str, str]:
    return {key: value for key, value in context.invocation_metadata() or () if isinstance(value, str)}


async def _abort(context: Any, error: Exception, request_id: str, hidden: Mapping[str, str]) -> None:
    """End a call with the status of an error."""
    codes = codes_of(error)
    detail = error_detail(error, request_id, _LOG, hidden)
    trailing = [("lakelet-code", codes.code), ("x-request-id", request_id), *getattr(error, "trailing", ())]
    for name in ("line", "column"):
        if isinstance(getattr(error, name, None), int):
            trailing.append((f"lakelet-{name}", str(getattr(error, name))))
    if isinstance(error, OverloadedError | UnavailableError):
        seconds = retry_after_seconds(error)
        trailing.append(("retry-after", str(seconds)))
        if isinstance(error, OverloadedError) or error.nothing_done:
            # By this one the retry policies of gRPC clients wait.
            wait = error.retry_after_seconds or seconds
            trailing.append(("grpc-retry-pushback-ms", str(math.ceil(wait * 1000))))
    if isinstance(error, UnavailableError) and error.nothing_done:
        trailing.append(("lakelet-nothing-done", "true"))
    await context.abort(grpc.StatusCode[codes.grpc_status], detail, tuple(trailing))
