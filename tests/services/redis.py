"""Redis: `redis-server` of the PATH on a free loopback port, without persistence; it can be paused, killed and started again."""

import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.services.server import ServiceFailed, ServiceMissing, free_ports, running

START_SECONDS = 300


class RedisService:
    """A running server, and what can be done to it."""

    def __init__(self, program: str, folder: Path, port: int) -> None:
        self.port = port
        self.url = f"redis://127.0.0.1:{port}/0"
        self._program = program
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._stack = ExitStack()

    def start(self) -> None:
        """Start it, empty."""
        command = [self._program, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        log = self._folder / "redis.log"
        self._process = self._stack.enter_context(running(command, log=log))
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            if self._answers():
                return
            time.sleep(0.02)
        raise ServiceFailed(f"Redis at port {self.port} was not ready:\n{log.read_text(errors='replace')[-2000:]}")

    def kill(self) -> None:
        """Kill it; everything that it held is lost."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self._stack.close()

    def pause(self) -> None:
        """Have it answer nothing while its connections stay."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Have it go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        """End it."""
        if self._process is not None and self._process.poll() is None:
            self.resume()
        self._stack.close()

    def _answers(self) -> bool:
        with socket.socket() as client:
            client.settimeout(5)
            try:
                client.connect(("127.0.0.1", self.port))
                client.sendall(b"PING\r\n")
                return client.recv(16).startswith(b"+PONG")
            except OSError:
                return False


@contextmanager
def redis(folder: Path) -> Iterator[RedisService]:
    """A server of the test's own."""
    program = shutil.which("redis-server")
    if program is None:
        raise ServiceMissing("`redis-server` is not there: run scripts/install-redis.sh")
    folder.mkdir(parents=True, exist_ok=True)
    (port,) = free_ports(1)
    service = RedisService(program, folder, port)
    try:
        service.start()
        yield service
    finally:
        service.close()
