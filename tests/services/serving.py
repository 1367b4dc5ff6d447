"""`lakelet serve` as a process of its own at free ports, for as long as a block runs."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import lakelet

# Only a hang takes longer, whatever else the machine does.
PATIENCE_SECONDS = 900


class Served:
    """A running process and its address."""

    def __init__(self, process: subprocess.Popen[str], address: str, told: list[str]) -> None:
        self.process = process
        self.address = address
        self.told = told


@contextmanager
def serving(folder: Path, *arguments: str, zone: str = "UTC") -> Iterator[Served]:
    command = [
        *(sys.executable, "-m", "lakelet", "serve", "--warehouse", str(folder / "warehouse")),
        *("--wal-folder", str(folder / "wal"), "--port", "0", "--grpc-port", "0", "--log-level", "warning", *arguments),
    ]
    with open(folder / "log", "a") as log:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, text=True, env={**os.environ, "TZ": zone}
        )
    try:
        told: list[str] = []
        assert process.stdout is not None
        for line in process.stdout:
            told.append(line.strip())
            if line.startswith("REST on "):
                break
        assert told, (folder / "log").read_text()
        yield Served(process, told[-1].removeprefix("REST on "), told)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def ids_in(folder: Path) -> list[str]:
    lake = lakelet.connect(str(folder / "warehouse"))
    return [row["id"] for row in lake.sql("SELECT id FROM t").to_arrow().to_pylist()]
