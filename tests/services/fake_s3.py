"""A tiny S3 server that misbehaves on request: what no real server can be made to do.

Single objects only (GET, HEAD, PUT with If-None-Match, bulk delete); signatures are not checked.
"""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit


class FakeS3(ThreadingHTTPServer):
    """The server and its faults; set an attribute to switch one on."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.lock = threading.Lock()
        self.objects: dict[str, bytes] = {}
        self.requests: list[tuple[str, str]] = []
        self.honours_conditions = True
        self.read_only = False
        self.fail_puts_after_keeping = 0
        self.conflicts = 0

    @property
    def options(self) -> dict[str, str]:
        return {
            "s3.endpoint": f"http://127.0.0.1:{self.server_address[1]}",
            "s3.access-key": "any",
            "s3.secret-key": "any",
        }


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FakeS3

    def do_PUT(self) -> None:
        path, body = self._begin()
        fake = self.server
        with fake.lock:
            if fake.read_only:
                return self._answer(403, b"<Error><Code>AccessDenied</Code></Error>")
            if fake.conflicts:
                fake.conflicts -= 1
                return self._answer(409, b"<Error><Code>ConditionalRequestConflict</Code></Error>")
            if self.headers.get("If-None-Match") == "*" and fake.honours_conditions and path in fake.objects:
                return self._answer(412, b"<Error><Code>PreconditionFailed</Code></Error>")
            fake.objects[path] = body
            if fake.fail_puts_after_keeping:
                fake.fail_puts_after_keeping -= 1
                return self._answer(503, b"<Error><Code>SlowDown</Code></Error>")
            self._answer(200, b"", ETag='"1"')

    def do_GET(self) -> None:
        path, _ = self._begin()
        found = self.server.objects.get(path)
        if found is None:
            return self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
        self._answer(200, found, ETag='"1"', Last_Modified="Thu, 01 Jan 2026 00:00:00 GMT")

    do_HEAD = do_GET

    def do_POST(self) -> None:
        path, body = self._begin()
        keys = re.findall(r"<Key>(.*?)</Key>", body.decode())
        with self.server.lock:
            for key in keys:
                self.server.objects.pop(f"{path}/{key}", None)
        deleted = "".join(f"<Deleted><Key>{key}</Key></Deleted>" for key in keys)
        self._answer(200, f"<DeleteResult>{deleted}</DeleteResult>".encode())

    def _begin(self) -> tuple[str, bytes]:
        path = unquote(urlsplit(self.path).path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.requests.append((self.command, path))
        return path, body

    def _answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@contextmanager
def fake_s3() -> Iterator[FakeS3]:
    """The server, running until the block is left."""
    server = FakeS3()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
