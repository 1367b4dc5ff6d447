"""MinIO: `minio` on the PATH or where scripts/install-minio.sh puts it, on a free loopback port."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Self

from tests.services.server import (
    ACCESS_KEY,
    SECRET_KEY,
    S3Service,
    ServiceMissing,
    create_bucket,
    free_ports,
    running,
)


class RestartableMinio:
    """A server that can hang, go away and come back, with the same data at the same address."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._program = _program()
        self._ports = free_ports(2)
        self._running = ExitStack()
        self._process: subprocess.Popen[bytes] | None = None
        self.service = S3Service("MinIO", f"http://127.0.0.1:{self._ports[0]}", "lakelet")
        (folder / "data").mkdir(parents=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.go_on()
        self._running.close()

    def start(self) -> None:
        """Start it and wait until it answers."""
        log = self._folder / "minio.log"
        self._process = self._running.enter_context(
            running(_command(self._program, self._folder, *self._ports), log=log, environment=_ENVIRONMENT)
        )
        create_bucket(self.service, self._process, log)

    def end(self) -> None:
        """End it: connections are refused."""
        self._running.close()

    def hang(self) -> None:
        """Let it answer nothing any more; connections to it are made all the same."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it answer again."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)


@contextmanager
def minio(folder: Path) -> Iterator[S3Service]:
    """A server whose data is below `folder`."""
    with RestartableMinio(folder) as started:
        yield started.service


_ENVIRONMENT = {
    "MINIO_ROOT_USER": ACCESS_KEY,
    "MINIO_ROOT_PASSWORD": SECRET_KEY,
    "MINIO_BROWSER": "off",
    "MINIO_UPDATE": "off",
}


def _command(program: str, folder: Path, s3: int, console: int) -> list[str]:
    address, browser = f"127.0.0.1:{s3}", f"127.0.0.1:{console}"
    return [program, "server", str(folder / "data"), "--address", address, "--console-address", browser]


def _program() -> str:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    cached = cache / "lakelet" / "bin" / "minio"
    program = shutil.which("minio") or (str(cached) if cached.exists() else None)
    if program is None:
        raise ServiceMissing("`minio` is not there: run scripts/install-minio.sh")
    return program
