"""Where Java is. Spark needs no compiler, so a runtime is enough."""

import functools
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.spark.class_archive import class_archive

REPOSITORY = Path(__file__).parents[2]
# A JVM that lives for minutes does not earn back what its second compiler takes from two cores.
# The code of hundreds of queries fits into this cache: swept out, it is interpreted and compiled again.
BRIEF = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m"
# A busy machine is slow, not gone: what Spark gives a Python process, or a driver that asks it, to answer (15 s and 120 s).
PATIENT = {"spark.network.timeout": "600s", "spark.python.authenticate.socketTimeout": "300s"}


@functools.cache
def java_home() -> str | None:
    """The home of Java 17 or later, or None where there is none."""
    found = subprocess.run(
        [REPOSITORY / "scripts" / "setup-java.sh", "--runtime", "--print-home"], capture_output=True, text=True
    )
    return found.stdout.strip() if found.returncode == 0 else None


def spark_environment(home: str) -> dict[str, str]:
    """The variables a driver of these tests needs: workers run this Python and import these tests and this Lakelet."""
    return {
        "JAVA_HOME": home,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join([str(REPOSITORY / "src"), str(REPOSITORY)]),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_SUBMIT_OPTS": f"{BRIEF} {_archived_classes(home)}",
    }


def _archived_classes(home: str) -> str:
    """The options with which a driver has most of its classes from an archive, silently from its jars where it cannot."""
    archive = class_archive(home, BRIEF)
    return "" if archive is None else f"-XX:SharedArchiveFile={archive} -Xlog:cds=off -Xlog:cds+dynamic=off"


@contextmanager
def environment(values: dict[str, str]) -> Iterator[None]:
    """Variables for the time of a block; afterwards they are what they were."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                del os.environ[name]
            else:
                os.environ[name] = old
