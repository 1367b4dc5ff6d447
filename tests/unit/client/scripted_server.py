"""An HTTP server that answers each request as a test says, or breaks where a test says."""

import json
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

# What is done with a request that has come whole.
CUT, HANG = "cut", "hang"


@dataclass(frozen=True)
class Answer:
    """An answer; with `closes` the server closes the connection behind it and does not say so before."""

    status: int = 200
    document: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    closes: bool = False
    length: int | None = None

    def encoded(self) -> bytes:
        body = json.dumps(self.document).encode() if self.body is None else self.body
        kind = "application/problem+json" if self.status >= 400 else "application/json"
        headers = {
            "content-type": kind,
            "content-length": str(len(body) if self.length is None else self.length),
            **self.headers,
        }
        lines = [f"HTTP/1.1 {self.status} ", *(f"{name}: {value}" for name, value in headers.items())]
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


@dataclass(frozen=True)
class Seen:
    """A request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


def problem(code: str, status: int, **more: Any) -> Answer:
    """A problem document."""
    headers = more.pop("headers", {})
    return Answer(status, {"code": code, "detail": f"found {code}", "status": status, **more}, headers)


class ScriptedServer:
    """Takes connections; each request takes the next step of the script."""

    def __init__(self, steps: Sequence[Answer | str]) -> None:
        self._steps = list(steps)
        self.seen: list[Seen] = []
        self.connections = 0
        self.closed = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        for one in (self._listener, *self._open):
            # A thread that waits in accept or recv is woken by this alone.
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue
            finally:
                one.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._open.append(connection)
            self.connections += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as stream:
            try:
                while (seen := _request(stream)) is not None:
                    self.seen.append(seen)
                    step = self._steps.pop(0)
                    if step == HANG:
                        continue
                    if isinstance(step, Answer):
                        connection.sendall(step.encoded())
                        if not step.closes:
                            continue
                    break
            except OSError:
                return
        self.closed.set()


def _request(stream: Any) -> Seen | None:
    line = stream.readline().decode("latin-1").split()
    if len(line) < 2:
        return None
    headers = {}
    while (text := stream.readline().decode("latin-1").strip()) != "":
        name, _, value = text.partition(":")
        headers[name.lower()] = value.strip()
    body = stream.read(int(headers.get("content-length", "0")))
    return Seen(line[0], line[1], headers, body)


@contextmanager
def scripted(*steps: Answer | str) -> Iterator[ScriptedServer]:
    """A server with a script."""
    server = ScriptedServer(steps)
    try:
        yield server
    finally:
        server.close()
