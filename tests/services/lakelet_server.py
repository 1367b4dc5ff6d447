"""`lakelet serve` as a process of its own, started, killed and started again at the same addresses."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.services.server import free_ports

# Only a hang takes longer, whatever else the machine does.
PATIENCE_SECONDS = 900


class LakeletServer:
    """One service over all its lives: the same folders, ports and arguments."""

    def __init__(
        self,
        folder: Path,
        arguments: Sequence[str] = (),
        *,
        warehouse: str | None = None,
        zone: str = "UTC",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.warehouse = warehouse or str(folder / "warehouse")
        self.wal_folder = str(folder / "wal")
        self.log = folder / "log"
        self.told: list[str] = []
        rest, rpc = free_ports(2)
        self.address, self.grpc_address = f"127.0.0.1:{rest}", f"127.0.0.1:{rpc}"
        self._command = [
            *(sys.executable, "-m", "lakelet", "serve", "--warehouse", self.warehouse, "--wal-folder", self.wal_folder),
            *("--port", str(rest), "--grpc-port", str(rpc), "--log-level", "warning", *arguments),
        ]
        self._environment = {**os.environ, "TZ": zone, **(environment or {})}
        self._process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        """The address of REST."""
        return f"http://{self.address}"

    def launch(self) -> None:
        """Start the process and do not wait for it."""
        assert self._process is None
        with open(self.log, "a") as log:
            self._process = subprocess.Popen(
                self._command, stdout=subprocess.PIPE, stderr=log, text=True, env=self._environment
            )

    def start(self) -> None:
        """Start the process and wait until it takes requests."""
        self.launch()
        assert self._process is not None
        assert self._process.stdout is not None
        self.told = []
        for line in self._process.stdout:
            self.told.append(line.strip())
            if line.startswith("REST on "):
                return
        raise AssertionError(f"the service did not start: {self.log.read_text()[-4000:]}")

    def kill(self) -> None:
        """End the process by SIGKILL."""
        assert self._process is not None
        assert self._process.poll() is None, f"the service ended by itself: {self.log.read_text()[-4000:]}"
        self._process.kill()
        self._forget()

    def stop(self) -> int:
        """End the process by SIGTERM; its exit status."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        status = self._process.wait(PATIENCE_SECONDS)
        self._forget()
        return status

    def close(self) -> None:
        """End whatever still runs."""
        if self._process is not None:
            self._process.kill()
            self._forget()

    def _forget(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        self._process.wait()
        self._process.stdout.close()
        self._process = None


@contextmanager
def lakelet_server(
    folder: Path,
    arguments: Sequence[str] = (),
    *,
    warehouse: str | None = None,
    zone: str = "UTC",
    environment: Mapping[str, str] | None = None,
) -> Iterator[LakeletServer]:
    """A service that is ended when the block is left; it has not been started yet."""
    made = LakeletServer(folder, arguments, warehouse=warehouse, zone=zone, environment=environment)
    try:
        yield made
    finally:
        made.close()
