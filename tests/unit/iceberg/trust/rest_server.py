"""A REST catalog that answers what a test says, with one table, and notes what it was asked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, ClassVar

NAMESPACE, TABLE = "db", "t"


@dataclass
class Answers:
    """What the server says; `asked` are the paths of requests and the tokens that came with them."""

    defaults: dict[str, str] = field(default_factory=dict)
    overrides: dict[str, str] = field(default_factory=dict)
    config: dict[str, str] = field(default_factory=dict)
    credentials: list[dict[str, Any]] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)
    metadata_location: str = "file:///nowhere/00000-x.metadata.json"
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    tables: set[str] = field(default_factory=lambda: {TABLE})
    namespaces: set[str] = field(default_factory=lambda: {NAMESPACE})
    # Changes are carried out, or not, and then not answered; after that nothing is answered at all where `dies` is said.
    lost: str | None = None
    dies: bool = False
    # Where its clients are sent to instead of being answered.
    elsewhere: str | None = None
    headers: list[dict[str, str]] = field(default_factory=list)
    uri: str = ""


class _Handler(BaseHTTPRequestHandler):
    answers: ClassVar[Answers]

    def do_GET(self) -> None:
        self.answers.asked.append((self.path, self.headers.get("Authorization")))
        self.answers.headers.append(dict(self.headers))
        path = self.path.partition("?")[0]
        last = path.rpartition("/")[2]
        if self.answers.elsewhere is not None:
            self.send_response(307)
            self.send_header("Location", f"{self.answers.elsewhere}{self.path}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if self.answers.dies and self.answers.lost is None:
            self._cut()
        elif "/tables/" in path and last not in self.answers.tables:
            self._answer({"error": {"message": "x", "type": "NoSuchTableException", "code": 404}}, 404)
        elif "/namespaces/" in path and "/tables" not in path and last not in self.answers.namespaces:
            self._answer({"error": {"message": "x", "type": "NoSuchNamespaceException", "code": 404}}, 404)
        elif path.endswith("/config"):
            self._answer({"defaults": self.answers.defaults, "overrides": self.answers.overrides})
        elif "/tables/" in path:
            self._answer(
                {
                    "metadata-location": self.answers.metadata_location,
                    "metadata": self.answers.metadata,
                    "config": self.answers.config,
                    "storage-credentials": self.answers.credentials,
                }
            )
        elif path.endswith("/namespaces"):
            self._answer({"namespaces": [[NAMESPACE]]})
        elif path.endswith("/tables"):
            self._answer({"identifiers": [{"namespace": [NAMESPACE], "name": TABLE}]})
        else:
            self._answer({"namespace": [NAMESPACE], "properties": {}})

    def do_HEAD(self) -> None:
        there = self.path.partition("?")[0].rpartition("/")[2] in self.answers.tables | self.answers.namespaces
        if self.answers.dies and self.answers.lost is None:
            self._cut()
        else:
            self._answer({}, 200 if there else 404)

    def do_POST(self) -> None:
        self.answers.asked.append((self.path, self.headers.get("Authorization")))
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path.endswith("/tables/rename"):
            told = json.loads(body)
            self._change(lambda: self.answers.tables.symmetric_difference_update({told[at]["name"] for at in told}))
        else:
            self._answer({"access_token": "x", "token_type": "bearer"})

    def do_DELETE(self) -> None:
        self.answers.asked.append((self.path, self.headers.get("Authorization")))
        last = self.path.partition("?")[0].rpartition("/")[2]
        self._change(lambda: (self.answers.tables.discard(last), self.answers.namespaces.discard(last)))

    def _change(self, change: Callable[[], object]) -> None:
        lost, self.answers.lost = self.answers.lost, None
        if lost != "before":
            change()
        if lost is None:
            self._answer({}, 204)
        else:
            self._cut()

    def _cut(self) -> None:
        self.close_connection = True
        self.connection.close()

    def _answer(self, body: dict[str, Any], status: int = 200) -> None:
        data = json.dumps(body).encode() if self.command != "HEAD" and status != 204 else b""
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def rest_server(answers: Answers) -> Iterator[Answers]:
    """Runs the server while the block does."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"answers": answers}))
    answers.uri = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield answers
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
