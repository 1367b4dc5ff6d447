"""A server as a process of its own, and what it takes: processor time and memory, as the system counts them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from benchmarks.rounds import REPOSITORY, ContenderError

_TICKS = os.sysconf("SC_CLK_TCK")
# Fields of /proc/<pid>/stat after the name.
_USER_AND_SYSTEM = slice(11, 13)
_SCRIPTS = {"fastapi": "fastapi_server.py", "orjson": "orjson_server.py"}
_LAKELET = "lakelet_server.py"


class ServerProcess:
    """A server from its start to its end: a kind of `lakelet_server`, or that of a peer."""

    def __init__(self, kind: str, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        begin = time.perf_counter()
        path = os.pathsep.join(
            [str(REPOSITORY / "src"), str(REPOSITORY), *filter(None, [os.environ.get("PYTHONPATH")])]
        )
        self._log = folder / f"{kind}.log"
        with self._log.open("w", encoding="utf-8") as log:
            self._process = subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name(_SCRIPTS.get(kind, _LAKELET))), kind, str(folder)],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, "PYTHONPATH": path},
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.strip().isdigit():
            self.stop()
            raise ContenderError(f"{kind}: did not start:\n{self._log.read_text(encoding='utf-8')[-2000:]}")
        self.port = int(line)
        self.start_seconds = time.perf_counter() - begin
        self.start_processor_seconds = self.processor_seconds()

    def processor_seconds(self) -> float:
        """User and system time of all its threads so far, also of those that have ended."""
        text = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="utf-8")
        return sum(map(int, text.rpartition(")")[2].split()[_USER_AND_SYSTEM])) / _TICKS

    @staticmethod
    def clock() -> float:
        """Seconds on the clock."""
        return time.perf_counter()

    def resident_bytes(self) -> int:
        """The memory that it has resident now."""
        text = Path(f"/proc/{self._process.pid}/status").read_text(encoding="utf-8")
        line = next(line for line in text.splitlines() if line.startswith("VmRSS:"))
        return int(line.split()[1]) * 1024

    def stop(self) -> None:
        """End it as a service manager would."""
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(120)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
