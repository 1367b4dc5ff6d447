"""Clusters on this machine: a driver submitted in a folder of its own, and a standalone master with workers on two hosts.

Two loopback addresses are two hosts to Spark, which never starts a speculative copy on the host of the first attempt.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from tests.spark.java import BRIEF, PATIENT

START_SECONDS = 240
RUN_SECONDS = 500
HOSTS = ("127.0.0.1", "127.0.0.2")
_INSTALLED = Path(pyspark.__file__).parent
# A small driver without a web page, quick to notice what it lost.
SMALL = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "768m",
    "spark.executor.extraJavaOptions": BRIEF,
    "spark.log.level": "ERROR",
    "spark.python.authenticate.socketTimeout": PATIENT["spark.python.authenticate.socketTimeout"],
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "4",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


class ClusterFailed(Exception):
    """A master or a worker did not come up."""


def spark_home(folder: Path) -> Path:
    """A Spark home whose work folder is not that of the installed package."""
    home = folder / "spark-home"
    home.mkdir(parents=True, exist_ok=True)
    for part in ("bin", "jars", "python"):
        if not (home / part).exists():
            (home / part).symlink_to(_INSTALLED / part)
    return home


def bare_environment(java: str, folder: Path) -> dict[str, str]:
    """What a driver on a cluster finds: no PYTHONPATH, and a HOME in which nothing can be made."""
    temporary = folder / "tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    return {
        "HOME": "/dev/null/nowhere",
        "JAVA_HOME": java,
        "PATH": os.environ["PATH"],
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_DAEMON_JAVA_OPTS": BRIEF,
        "SPARK_HOME": str(spark_home(folder)),
        "SPARK_LOCAL_DIRS": str(temporary),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_SUBMIT_OPTS": BRIEF,
        "TMPDIR": str(temporary),
    }


def submit(
    java: str,
    folder: Path,
    *,
    master: str,
    program: Path,
    arguments: Sequence[str] = (),
    config: Mapping[str, str] | None = None,
    flags: Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Runs spark-submit in a folder of its own until the driver ends."""
    settings = [f"--conf={name}={value}" for name, value in {**SMALL, **(config or {})}.items()]
    command = [_INSTALLED / "bin" / "spark-submit", "--master", master, *settings, *flags, program, *arguments]
    environment = {**bare_environment(java, folder), **(variables or {})}
    return subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, timeout=RUN_SECONDS, check=False
    )


@contextmanager
def standalone(java: str, folder: Path, variables: Mapping[str, str] | None = None) -> Iterator[str]:
    """A master with a one-core worker on each of HOSTS, ended with the block; gives the master's address."""
    environment = {**bare_environment(java, folder), **(variables or {})}
    with ExitStack() as running:

        def start(name: str, host: str, *arguments: str) -> "_Server":
            own = {**environment, "SPARK_LOCAL_IP": host}
            command = [
                str(_INSTALLED / "bin" / "spark-class"),
                f"org.apache.spark.deploy.{name}",
                "--host",
                host,
                *arguments,
            ]
            server = _Server(command, own, folder)
            running.callback(server.stop)
            return server

        master = start("master.Master", HOSTS[0], "--port", "0", "--webui-port", "0")
        address = master.line_with("Starting Spark master at ").rsplit(" ", 1)[-1]
        workers = [
            start(
                "worker.Worker", host, "--cores", "1", "--memory", "1g", "--webui-port", "0",
                "--work-dir", str(folder / f"work-{host}"), address,
            )
            for host in HOSTS
        ]  # fmt: skip
        for worker in workers:
            worker.line_with("Successfully registered with master")
        yield address


class _Server:
    """A process that tells on standard error what it does."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], folder: Path) -> None:
        self._process = subprocess.Popen(
            command,
            env=dict(environment),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._drain: threading.Thread | None = None

    def line_with(self, text: str) -> str:
        """Waits for a line that holds a text; afterwards nothing more is looked at."""
        assert self._process.stderr is not None
        overdue = threading.Timer(START_SECONDS, self._process.kill)
        overdue.start()
        said = []
        try:
            for line in self._process.stderr:
                said.append(line)
                if text in line:
                    self._drain = threading.Thread(target=self._process.stderr.read, daemon=True)
                    self._drain.start()
                    return line.strip()
        finally:
            overdue.cancel()
        raise ClusterFailed(f"never said {text!r}: {''.join(said[-20:])}")

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        if self._drain is not None:
            self._drain.join()
        if self._process.stderr is not None:
            self._process.stderr.close()
