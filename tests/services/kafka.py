"""A Kafka broker in KRaft mode on loopback ports, from the jars of tests/spark/kafka."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.services.server import ServiceFailed, ServiceMissing, free_ports, running

START_SECONDS = 300
_CLUSTER = "bGFrZWxldC10ZXN0cy1rZg"
_CLIENTS = ("spark-sql-kafka", "spark-token-provider-kafka", "kafka-clients", "commons-pool2")


@dataclass(frozen=True, slots=True)
class KafkaService:
    """A running broker, and the jars with which Spark reads it."""

    bootstrap: str
    spark_jars: str


def kafka_jars() -> list[Path]:
    """The jars; ServiceMissing where they were not fetched."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "lakelet" / "jars" / "kafka"
    wanted = [line.split()[1] for line in (Path("tests/spark/kafka/jars.sha256")).read_text().splitlines()]
    if not all((folder / name).exists() for name in wanted):
        raise ServiceMissing("Kafka's jars are not there: run scripts/setup-jars.sh tests/spark/kafka")
    return [folder / name for name in wanted]


@contextmanager
def kafka(folder: Path, java: str) -> Iterator[KafkaService]:
    """A broker whose data is below `folder`."""
    jars = kafka_jars()
    port, controller = free_ports(2)
    settings = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "log.dirs": folder / "data",
        "num.partitions": 3,
        "offsets.topic.replication.factor": 1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
    }
    file = folder / "server.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    # Names below and not the folder's `*`: what else lies there is none of ours.
    run = [f"{java}/bin/java", "-Xmx256m", "-cp", ":".join(map(str, jars))]
    subprocess.run(
        [*run, "kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(file)], check=True, capture_output=True
    )
    log = folder / "kafka.log"
    with running([*run, "kafka.Kafka", str(file)], log=log) as process:
        _wait(port, process, log)
        chosen = [str(jar) for jar in jars if jar.name.startswith(_CLIENTS)]
        yield KafkaService(f"127.0.0.1:{port}", ",".join(chosen))


def _wait(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with socket.socket() as client:
            client.settimeout(1)
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise ServiceFailed(f"Kafka at port {port} was not ready:\n{log.read_text(errors='replace')[-2000:]}")
