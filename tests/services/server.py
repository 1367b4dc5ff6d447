"""Starting and stopping a real S3 server for a test session: free ports, readiness, a bucket."""

import http.client
import os
import random
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow.fs

ACCESS_KEY = "lakelet-test-key"
SECRET_KEY = "lakelet-test-secret"
START_SECONDS = 300
PORTS = range(10_000, 32_000)
_CHANCE = random.SystemRandom()


class ServiceMissing(Exception):
    """The server's program is not on this machine."""


class ServiceFailed(Exception):
    """The server was started and did not become ready."""


@dataclass(frozen=True, slots=True)
class S3Service:
    """A running server, and how to reach it."""

    name: str
    endpoint: str
    bucket: str
    access_key: str = ACCESS_KEY
    secret_key: str = SECRET_KEY
    region: str = "us-east-1"

    @property
    def options(self) -> dict[str, str]:
        """The options `lakelet.connect` and `open_store` take."""
        return {
            "s3.endpoint": self.endpoint,
            "s3.access-key": self.access_key,
            "s3.secret-key": self.secret_key,
            "s3.region": self.region,
        }

    def url(self, prefix: str) -> str:
        return f"s3://{self.bucket}/{prefix}"


def free_ports(count: int, *, also_above: int = 0) -> list[int]:
    """Ports nobody listens on; with `also_above`, port + also_above is free as well (SeaweedFS's gRPC).

    All are below those that the system gives to connections, one of which might have the port before its server does.
    """
    ports: list[int] = []
    taken: set[int] = set()
    while len(ports) < count:
        port = _CHANCE.randrange(PORTS.start, PORTS.stop - also_above)
        wanted = {port, port + also_above}
        if not wanted & taken and all(map(_is_free, wanted)):
            ports.append(port)
            taken |= wanted
    return ports


def _is_free(port: int) -> bool:
    with socket.socket() as tried:
        try:
            tried.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


@contextmanager
def running(
    command: Sequence[str], *, log: Path, environment: dict[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """The process, ended when the block is left."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*_ends_with_the_tests(), *command],
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
            cwd=log.parent,
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _ends_with_the_tests() -> list[str]:
    """The command that has Linux end the server when the test process is killed and cannot."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "TERM", "--"] if setpriv else []


def create_bucket(service: S3Service, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until the server answers, and make its bucket."""
    deadline = time.monotonic() + START_SECONDS
    problem: Exception | None = None
    while time.monotonic() < deadline and process.poll() is None:
        try:
            _answers(service.endpoint)
            filesystem = pyarrow.fs.S3FileSystem(
                endpoint_override=service.endpoint.removeprefix("http://"),
                scheme="http",
                access_key=service.access_key,
                secret_key=service.secret_key,
                region=service.region,
                allow_bucket_creation=True,
                retry_strategy=pyarrow.fs.AwsStandardS3RetryStrategy(max_attempts=1),
            )
            filesystem.create_dir(service.bucket)
            with filesystem.open_output_stream(f"{service.bucket}/ready") as stream:
                stream.write(b"ready")
            filesystem.delete_file(f"{service.bucket}/ready")
            return
        except OSError as error:
            problem = error
            time.sleep(0.1)
    tail = log.read_text(errors="replace")[-2000:]
    raise ServiceFailed(f"{service.name} at {service.endpoint} was not ready: {problem}\n{tail}")


def _answers(endpoint: str) -> None:
    connection = http.client.HTTPConnection(endpoint.removeprefix("http://"), timeout=30)
    try:
        connection.request("GET", "/")
        connection.getresponse().read()
    except http.client.HTTPException as error:
        raise ConnectionError(str(error)) from error
    finally:
        connection.close()
