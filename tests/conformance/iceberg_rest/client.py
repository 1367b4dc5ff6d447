"""`RestServer`: Iceberg's own REST catalog in a Java process, with faults that a test asks for.

    server.uri                                              what `catalog.prod.uri` is
    server.fault("after", 503)                              the next commit is carried out, and 503 is answered
    server.fault("die-after"); …; server.start_again()      the server ends with a commit, and comes back where it was

Every fault is for one request of a route; RestCatalogServer.java lists them.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from tests.conformance.line_process import CLOSE_TIMEOUT_S, HarnessError
from tests.services.server import free_ports

FOLDER = Path(__file__).parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lakelet" / "jars"
COMMIT = "UPDATE_TABLE"


def jars() -> list[Path]:
    """The jars that the server is started with, there or not."""
    folder = CACHE / (FOLDER / "cache").read_text().strip()
    return [folder / line.split()[1] for line in (FOLDER / "jars.sha256").read_text().splitlines()]


class RestServer:
    """One server, whose tables stand in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.uri = ""
        self._process: subprocess.Popen[str] | None = None
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 (it lives as long as the server)

    def start(self) -> None:
        """Starts it unless it runs, at an address of its own that it keeps when it is started again."""
        if self._process is not None and self._process.poll() is None:
            return
        self.stop()
        self._process = subprocess.Popen(
            [str(FOLDER / "server.sh"), str(self.folder), self.uri.rpartition(":")[2] or str(free_ports(1)[0])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            text=True,
        )
        assert self._process.stdout is not None
        port = self._process.stdout.readline().strip()
        if not port:
            self._stderr.seek(0)
            raise HarnessError(f"the REST catalog did not start: {self._stderr.read().decode(errors='replace')}")
        self.uri = f"http://127.0.0.1:{port}"

    def start_again(self) -> None:
        """Starts it where it was, once it has ended or been stopped."""
        self.stop()
        self.start()

    def stop(self) -> None:
        """Ends it by closing its input, as it expects; its tables stay."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        try:
            process.wait(timeout=CLOSE_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()

    def close(self) -> None:
        self.stop()
        self._stderr.close()

    def fault(self, kind: str, status: int = 503, *, route: str = COMMIT, times: int = 1) -> None:
        """Lets the next requests of a route, commits unless told otherwise, go wrong."""
        for _ in range(times):
            self._ask("fault", route=route, fault=kind, status=str(status))

    def release(self) -> None:
        """Carries out what was put off until later."""
        self._ask("release")

    def need_token(self, token: str) -> None:
        """Refuses requests without this token from now on; an empty one takes all."""
        self._ask("token", value=token)

    def seen(self) -> list[str]:
        """The routes that were asked for since this was asked last."""
        return self._ask("seen").split()

    def _ask(self, switch: str, **values: str) -> str:
        request = Request(f"{self.uri}/control/{switch}?{urlencode(values)}", method="POST")
        with urlopen(request, timeout=300) as answer:
            return str(answer.read().decode())
