"""A PostgreSQL server of its own on a Unix socket, from Debian's package or the PATH."""

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.services.server import ServiceFailed, ServiceMissing, running

START_SECONDS = 300
_USER = "postgres"


@dataclass(frozen=True, slots=True)
class PostgresService:
    """A running server."""

    psql: str
    folder: Path

    def run(self, sql: str) -> str:
        """What psql prints for these statements, values alone."""
        command = [self.psql, "-h", str(self.folder), "-U", _USER, "-d", "postgres", "-X", "-q", "-A", "-t"]
        done = subprocess.run(
            [*command, "-v", "ON_ERROR_STOP=1", "-f", "-"], input=sql, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise ServiceFailed(f"psql: {done.stderr}")
        return done.stdout


def _program(name: str) -> str:
    found = shutil.which(name) or next(map(str, sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))), None)
    if found is None:
        raise ServiceMissing(f"`{name}` is not there: run scripts/install-postgres.sh")
    return found


@contextmanager
def postgres() -> Iterator[PostgresService]:
    """A server whose data is in a temporary folder; it refuses to run as root, so its own user does."""
    initdb, server, psql = _program("initdb"), _program("postgres"), _program("psql")
    as_root = os.geteuid() == 0
    folder = Path(tempfile.mkdtemp(prefix="lakelet-pg-", dir="/tmp"))
    data = folder / "data"
    try:
        prefix: list[str] = []
        if as_root:
            account = pwd.getpwnam(_USER)
            os.chown(folder, account.pw_uid, account.pw_gid)
            setpriv = shutil.which("setpriv")
            if setpriv is None:
                raise ServiceMissing("`setpriv` is not there, and PostgreSQL does not run as root")
            prefix = [setpriv, f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups", "--"]
        made = [*prefix, initdb, "-D", str(data), "-A", "trust", "-U", _USER, "-E", "UTF8", "--no-sync", "--locale=C"]
        subprocess.run(made, check=True, capture_output=True, cwd="/tmp")
        command = [*prefix, server, "-D", str(data), "-k", str(folder), "-c", "listen_addresses=", "-c", "fsync=off"]
        log = folder / "server.log"
        with running(command, log=log) as process:
            service = PostgresService(psql, folder)
            _wait(service, process, log)
            yield service
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _wait(service: PostgresService, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            service.run("SELECT 1")
            return
        except ServiceFailed:
            time.sleep(0.2)
    raise ServiceFailed(f"PostgreSQL was not ready:\n{log.read_text(errors='replace')[-2000:]}")
