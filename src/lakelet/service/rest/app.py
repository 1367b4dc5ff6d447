"""The HTTP edge as one ASGI application: who asks, which operation, and a problem document for every error.

request ── request id ── Host, Origin, API key ── POST /v1/data, /v1/data/batch: plain ASGI
                                               └─ everything else: Starlette's router ── routes
"""

from __future__ import annotations

import itertools
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.routing import Router

from lakelet.error_codes import codes_of
from lakelet.errors import InternalError
from lakelet.ids import RandomIds
from lakelet.service.access.access import Access
from lakelet.service.access.audit_log import AuditedRequest
from lakelet.service.access.caller import Caller
from lakelet.service.error_detail import hidden_paths
from lakelet.service.request_metrics import DISCONNECTED, REST, RequestMetrics
from lakelet.service.rest.docs_page import DOCS_PATHS
from lakelet.service.rest.ingest_endpoints import write_batch, write_one
from lakelet.service.rest.problem import CONTENT_TYPE, Headers, plain_problem, problem_of
from lakelet.service.rest.request_body import AUDITED_TABLE, DisconnectedError, Receive, Scope, Send, header
from lakelet.service.rest.routes import routes
from lakelet.service.running_queries import GoneError, RunningQueries
from lakelet.service.service import Service

_LOG = logging.getLogger("lakelet.service.rest")
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
# What may be asked without a key, by probes and browsers: none of it tells anything about tables.
_OPEN_PATHS = frozenset(("/v1/health", "/v1/health/live", "/v1/health/ready")) | DOCS_PATHS
_LONGEST_ACTION = 200
_JSON: tuple[bytes, bytes] = (b"content-type", b"application/json")
_NOBODY = Caller("nobody")

Endpoint = Callable[[Service, Scope, Receive, Caller], Awaitable[bytes]]


class RestApp:
    """The ASGI application over a service."""

    def __init__(
        self,
        service: Service,
        access: Access,
        queries: RunningQueries | None = None,
        metrics: RequestMetrics | None = None,
    ) -> None:
        """`queries` and `metrics` are shared with the other edge."""
        self._service = service
        self._access = access
        self._hidden = hidden_paths(service.lake.location, service.settings.wal_folder)
        self.metrics = metrics or RequestMetrics()
        self._endpoints: dict[tuple[str, str], Endpoint] = {
            ("POST", "/v1/data"): write_one,
            ("POST", "/v1/data/batch"): write_batch,
        }
        self._router = Router(
            routes(service, self.metrics, access, queries or RunningQueries(service)), redirect_slashes=False
        )
        self._first_ids = RandomIds().uuid()[:8]
        self._numbers = itertools.count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            raise InternalError(f"expected a request of HTTP, found {scope['type']!r}")
        started = self._service.clock.monotonic()
        request_id = self._request_id(scope)
        answer = _Answer(send, request_id, self._hidden)
        method, path = scope["method"], scope["path"]
        self.metrics.running += 1
        caller = _NOBODY
        try:
            caller = self._caller(scope, path)
            if path not in _OPEN_PATHS:
                receive = self._admitted(scope, receive, caller)
            endpoint = self._endpoints.get((method, path))
            if endpoint is not None:
                await answer.whole(200, [_JSON], await endpoint(self._service, scope, receive, caller))
            else:
                # With an application in the scope the router raises its errors, instead of answering in a form of its own.
                scope["app"] = self
                scope["state"] = {"caller": caller, "request_id": request_id, "audited": {}}
                await self._router(scope, receive, answer.send)
        except (DisconnectedError, GoneError):
            answer.status, answer.result = DISCONNECTED, "disconnected"
        except Exception as error:
            await answer.problem(error)
        finally:
            self.metrics.running -= 1
            seconds = self._service.clock.monotonic() - started
            is_row, audit = method == "POST" and endpoint_is_row(path), self._access.audit
            self._note(scope, method, answer, seconds, is_row=is_row)
            if audit is not None and not (is_row and audit.write(caller, scope.get(AUDITED_TABLE), answer.result)):
                audit.request(_audited(scope, caller, answer, seconds))

    def _caller(self, scope: Scope, path: str) -> Caller:
        if path in _OPEN_PATHS:
            found = self._access.try_caller(header(scope, b"authorization"))
            return _NOBODY if found is None else found
        self._access.check_origin(header(scope, b"host"), header(scope, b"origin"))
        return self._access.caller(header(scope, b"authorization"))

    def _admitted(self, scope: Scope, receive: Receive, caller: Caller) -> Receive:
        """Take a request from the limits of its caller; the bytes of a body of unknown length are counted as they come."""
        limits = self._access.limits
        if not limits.counts_bytes(caller):
            limits.take(caller)
            return receive
        length = header(scope, b"content-length")
        if length is not None and length.isdigit():
            # Beyond the largest body the request is refused, and not sent.
            limits.take(caller, min(int(length), self._service.settings.most_body_bytes))
            return receive
        limits.take(caller)

        async def counted() -> Any:
            message = await receive()
            limits.charge(caller, len(message.get("body", b"")))
            return message

        return counted

    def _request_id(self, scope: Scope) -> str:
        given = header(scope, b"x-request-id")
        if given is not None and _REQUEST_ID.fullmatch(given):
            return given
        return f"{self._first_ids}-{next(self._numbers)}"

    def _note(self, scope: Scope, method: str, answer: _Answer, seconds: float, *, is_row: bool) -> None:
        """Count a request and log it; rows that were written are not worth a line each."""
        route = scope["path"] if is_row else _route_of(scope)
        self.metrics.count(REST, route, method, answer.status, seconds)
        level = logging.DEBUG if is_row and answer.status == 200 else logging.INFO
        if _LOG.isEnabledFor(level):
            _LOG.log(
                level,
                "%s %s %d",
                method,
                scope["path"],
                answer.status,
                extra={"request_id": answer.request_id, "status": answer.status, "ms": round(seconds * 1000, 3)},
            )


def _audited(scope: Scope, caller: Caller, answer: _Answer, seconds: float) -> AuditedRequest:
    """A request as the audit log tells it. What only the body says is noted by the handler that read it."""
    action = {"/v1/data": "write", "/v1/data/batch": "write_batch"}.get(scope["path"])
    told: dict[str, str] = scope.get("state", {}).get("audited", {})
    if action is None or scope["method"] != "POST":
        handler = scope.get("endpoint")
        # A request that was denied before its operation was known is told by its path.
        action = f"{scope['method']} {scope['path']}"[:_LONGEST_ACTION] if handler is None else handler.__name__
        found = scope.get("path_params", {})
        table = told.get("table") or found.get("table") or found.get("table_name")
    else:
        table = scope.get(AUDITED_TABLE)
    client = scope.get("client")
    peer = f"{client[0]}:{client[1]}" if client else ""
    return AuditedRequest(
        action, caller, "rest", peer, answer.request_id, answer.result, seconds, table, told.get("sql")
    )


def endpoint_is_row(path: str) -> bool:
    """Whether a path is one of ingest."""
    return path in ("/v1/data", "/v1/data/batch")


class _Answer:
    """What is sent back: every answer carries the id of its request."""

    def __init__(self, send: Send, request_id: str, hidden: Mapping[str, str]) -> None:
        self._send = send
        self._hidden = hidden
        self.request_id = request_id
        self.status = 500
        self.result = "ok"
        self._begun = False

    async def send(self, message: Any) -> None:
        """Pass a message of the router on."""
        if message["type"] == "http.response.start":
            self._begun = True
            self.status = message["status"]
            message = {**message, "headers": [*message.get("headers", []), (b"x-request-id", self.request_id.encode())]}
        await self._send(message)

    async def whole(self, status: int, headers: Headers, body: bytes) -> None:
        """Send a whole answer."""
        self._begun = True
        self.status = status
        length = (b"content-length", str(len(body)).encode())
        found = [*headers, length, (b"x-request-id", self.request_id.encode())]
        await self._send({"type": "http.response.start", "status": status, "headers": found})
        await self._send({"type": "http.response.body", "body": body})

    async def problem(self, error: Exception) -> None:
        """Send a problem document, unless an answer is under way: that one ends where it is, and its client sees that it did."""
        self.result = codes_of(error).code
        if isinstance(error, HTTPException):
            await self._http_problem(error)
            return
        status, headers, body = problem_of(error, self.request_id, self._hidden)
        if self._begun:
            raise error
        await self.whole(status, headers, body)

    async def _http_problem(self, error: HTTPException) -> None:
        """An error of the router: an unknown path, or a method that a path does not have."""
        code = self.result = {404: "not-found", 405: "method-not-allowed"}.get(error.status_code, "invalid")
        body = plain_problem(error.status_code, code, error.detail, self.request_id)
        headers = [(name.lower().encode(), value.encode()) for name, value in (error.headers or {}).items()]
        await self.whole(error.status_code, [(b"content-type", CONTENT_TYPE), *headers], body)


def _route_of(scope: Scope) -> str:
    """The path with the names of its parameters, so that metrics do not grow with tables and ids."""
    route = scope.get("route")
    return getattr(route, "path", "other")
