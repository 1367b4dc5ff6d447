"""Requests and answers of a client, and HTTP connections to one service, kept open between requests, for any number of threads.

What went wrong says whether the service can have seen the request: `NotSentError` where it cannot, for the last byte never left
this machine, and `UnansweredError` where it may have.
"""

from __future__ import annotations

import http.client
import os
import select
import ssl
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import urlsplit

from lakelet.clock import Clock
from lakelet.errors import InvalidError, NotFoundError

# Shorter than servers and proxies keep a connection: one that the other side is about to close must not take a write.
_IDLE_SECONDS = 20.0
_MOST_IDLE = 32
_DEFAULT_PORTS = {"http": 80, "https": 443, "grpc": 50051, "grpcs": 50051}


class NotSentError(Exception):
    """The request did not leave this machine whole: the service has not seen it."""


class UnansweredError(Exception):
    """The request was sent and not answered: the service may have done it."""

    def __init__(self, message: str, *, timed_out: bool) -> None:
        super().__init__(message)
        self.timed_out = timed_out


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request. One that is `repeatable` may be done twice without harm; one that is `keyed` has an idempotency key, by which
    the service recognises it: it may be sent twice. With `fresh` the key was made for it."""

    method: str
    path: str
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    repeatable: bool = False
    keyed: bool = False
    fresh: bool = False
    timeout_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An answer, read whole."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def media_type(self) -> str:
        """The content type without its parameters."""
        return (self.headers.get("content-type") or "").split(";", 1)[0].strip().lower()


class Transport(Protocol):
    """What carries requests to a service: connections of HTTP, or a channel of gRPC."""

    @property
    def address(self) -> Address:
        """Where the service is."""

    def send(self, request: HttpRequest) -> HttpAnswer:
        """Send a request and read its answer; NotSentError or UnansweredError where there is none."""

    def close(self) -> None:
        """Close what is open."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a service is."""

    scheme: str
    host: str
    port: int
    prefix: str

    @classmethod
    def parse(cls, text: str) -> Address:
        """The address of a URL such as https://lake.example:8080; InvalidError where it is none."""
        expected = f"address: expected http:// or https://host:port, grpc:// or grpcs://host:port, found {text!r}"
        try:
            parts = urlsplit(text)
            port = parts.port
        except ValueError:
            raise InvalidError(expected) from None
        if parts.scheme not in _DEFAULT_PORTS or not parts.hostname or parts.query or parts.fragment:
            raise InvalidError(expected)
        if parts.scheme.startswith("grpc") and parts.path not in ("", "/"):
            raise InvalidError(expected)
        if parts.username is not None:
            raise InvalidError("address: expected no user name in it; a key is given as api_key")
        if not text.isascii() or not text.isprintable() or " " in text:
            raise InvalidError(expected)
        return cls(parts.scheme, parts.hostname, port or _DEFAULT_PORTS[parts.scheme], parts.path.rstrip("/"))

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.prefix}"


@dataclass(frozen=True, slots=True)
class TlsChoice:
    """By which certificates a service is trusted, and the certificate that the client shows; PEM files."""

    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None

    def check(self) -> None:
        """NotFoundError or InvalidError where the files cannot be what they are given as."""
        if (self.certificate_file is None) != (self.key_file is None):
            raise InvalidError("certificate_file, key_file: expected both or none, found one of them")
        for name in ("ca_file", "certificate_file", "key_file"):
            path = getattr(self, name)
            if path is not None and not os.path.exists(path):
                raise NotFoundError(f"{name}: there is no file {path}")

    def context(self) -> ssl.SSLContext:
        """The context of connections."""
        self.check()
        try:
            made = ssl.create_default_context(cafile=self.ca_file)
        except (ssl.SSLError, OSError) as error:
            raise InvalidError(f"ca_file: {self.ca_file} has no certificates: {error}") from error
        if self.certificate_file is not None:
            try:
                # An empty password instead of a question on the terminal.
                made.load_cert_chain(self.certificate_file, self.key_file, password="")
            except (ssl.SSLError, OSError) as error:
                shown = f"{self.certificate_file}, {self.key_file}"
                raise InvalidError(
                    f"certificate_file, key_file: {shown} are no certificate and its key: {error}"
                ) from error
        return made


@dataclass(slots=True)
class _Idle:
    connection: http.client.HTTPConnection
    since: float


class Connections:
    """Sends requests, each over a connection that no other thread uses meanwhile."""

    def __init__(
        self, address: Address, *, headers: Mapping[str, str], timeout_seconds: float, tls: TlsChoice, clock: Clock
    ) -> None:
        self.address = address
        self._headers = dict(headers)
        self._timeout = timeout_seconds
        self._tls = tls.context() if address.scheme == "https" else None
        self._clock = clock
        self._lock = threading.Lock()
        self._idle: list[_Idle] = []
        self._closed = False

    def send(self, request: HttpRequest) -> HttpAnswer:
        """Send a request and read its answer; NotSentError or UnansweredError where there is none."""
        connection = self._taken(request.timeout_seconds or self._timeout)
        try:
            answer, reusable = self._exchange(connection, request)
        except BaseException:
            connection.close()
            raise
        if reusable:
            self._give_back(connection)
        else:
            connection.close()
        return answer

    def close(self) -> None:
        """Close idle connections; requests that are under way end by themselves."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for one in idle:
            one.connection.close()

    def _exchange(self, connection: http.client.HTTPConnection, request: HttpRequest) -> tuple[HttpAnswer, bool]:
        refused = self._begin(connection, request)
        try:
            answer = connection.getresponse() if refused is None else refused
            body = answer.read()
        except TimeoutError as error:
            raise UnansweredError(f"no answer within {connection.timeout:g} seconds", timed_out=True) from error
        except (OSError, http.client.HTTPException) as error:
            raise UnansweredError(f"the connection broke: {_shown(error)}", timed_out=False) from error
        return HttpAnswer(answer.status, answer.headers, body), refused is None and not answer.will_close

    def _begin(self, connection: http.client.HTTPConnection, request: HttpRequest) -> http.client.HTTPResponse | None:
        """Send a request. A service that refuses a body closes the connection before it has read all of it: its answer then."""
        try:
            if connection.sock is None:
                connection.connect()
        except (OSError, http.client.HTTPException) as error:
            raise NotSentError(f"no connection: {_shown(error)}") from error
        try:
            headers = {**self._headers, **request.headers}
            connection.request(request.method, self.address.prefix + request.path, request.body, headers)
        except TimeoutError as error:
            raise NotSentError(f"the request could not be sent within {connection.timeout:g} seconds") from error
        except (OSError, http.client.HTTPException) as error:
            try:
                return connection.getresponse()
            except (OSError, http.client.HTTPException):
                raise NotSentError(f"the connection broke while the request was sent: {_shown(error)}") from error
        return None

    def _taken(self, timeout_seconds: float) -> http.client.HTTPConnection:
        """A connection for one request: an idle one that is still open, or a new one."""
        while True:
            with self._lock:
                if self._closed:
                    raise InvalidError("the client is closed")
                found = self._idle.pop() if self._idle else None
            if found is None:
                return self._new(timeout_seconds)
            connection = found.connection
            if self._clock.monotonic() - found.since < _IDLE_SECONDS and _is_open(connection):
                connection.timeout = timeout_seconds
                connection.sock.settimeout(timeout_seconds)
                return connection
            connection.close()

    def _new(self, timeout_seconds: float) -> http.client.HTTPConnection:
        if self._tls is None:
            return http.client.HTTPConnection(self.address.host, self.address.port, timeout=timeout_seconds)
        return http.client.HTTPSConnection(
            self.address.host, self.address.port, timeout=timeout_seconds, context=self._tls
        )

    def _give_back(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if not self._closed and len(self._idle) < _MOST_IDLE:
                self._idle.append(_Idle(connection, self._clock.monotonic()))
                return
        connection.close()


def _is_open(connection: http.client.HTTPConnection) -> bool:
    """Whether nothing has come on an idle connection: what comes there is its end."""
    if connection.sock is None:
        return False
    poll = select.poll()
    poll.register(connection.sock, select.POLLIN | select.POLLHUP | select.POLLERR)
    return not poll.poll(0)


def _shown(error: Exception) -> str:
    return str(error) or type(error).__name__
