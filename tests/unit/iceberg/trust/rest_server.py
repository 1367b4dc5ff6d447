"""A REST catalog that answers what a test says, with one table, and notes what it was asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

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
    uri: str = ""


@contextmanager
def rest_server(answers: Answers) -> Iterator[Answers]:
    """Runs the server while the block does."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answers.asked.append((self.path, self.headers.get("Authorization")))
            path = self.path.partition("?")[0]
            if path.endswith("/config"):
                self._answer({"defaults": answers.defaults, "overrides": answers.overrides})
            elif path.endswith(f"/tables/{TABLE}"):
                self._answer(
                    {
                        "metadata-location": answers.metadata_location,
                        "metadata": answers.metadata,
                        "config": answers.config,
                        "storage-credentials": answers.credentials,
                    }
                )
            elif path.endswith("/namespaces"):
                self._answer({"namespaces": [[NAMESPACE]]})
            elif path.endswith("/tables"):
                self._answer({"identifiers": [{"namespace": [NAMESPACE], "name": TABLE}]})
            else:
                self._answer({"namespace": [NAMESPACE], "properties": {}})

        def do_POST(self) -> None:
            answers.asked.append((self.path, self.headers.get("Authorization")))
            self._answer({"access_token": "x", "token_type": "bearer"})

        def _answer(self, body: dict[str, Any]) -> None:
            data = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    answers.uri = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield answers
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
