"""MinIO: `minio` on the PATH or where scripts/install-minio.sh puts it, on a free loopback port."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.services.server import (
    ACCESS_KEY,
    SECRET_KEY,
    S3Service,
    ServiceMissing,
    create_bucket,
    free_ports,
    running,
)


@contextmanager
def minio(folder: Path) -> Iterator[S3Service]:
    """A server whose data is below `folder`."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    cached = cache / "lakelet" / "bin" / "minio"
    program = shutil.which("minio") or (str(cached) if cached.exists() else None)
    if program is None:
        raise ServiceMissing("`minio` is not there: run scripts/install-minio.sh")
    s3, console = free_ports(2)
    data = folder / "data"
    data.mkdir(parents=True)
    command = [
        program,
        "server",
        str(data),
        "--address",
        f"127.0.0.1:{s3}",
        "--console-address",
        f"127.0.0.1:{console}",
    ]
    environment = {
        "MINIO_ROOT_USER": ACCESS_KEY,
        "MINIO_ROOT_PASSWORD": SECRET_KEY,
        "MINIO_BROWSER": "off",
        "MINIO_UPDATE": "off",
    }
    log = folder / "minio.log"
    service = S3Service("MinIO", f"http://127.0.0.1:{s3}", "lakelet")
    with running(command, log=log, environment=environment) as process:
        create_bucket(service, process, log)
        yield service
