"""Spark's classes, parsed and verified once for a checkout and mapped into every driver that the tests start.

Most of what a short driver costs is the loading of some twenty thousand classes: with the archive it costs two thirds. The JVM
checks that it and the jars are those of the archive, and loads classes as usual where they are not.
"""

import fcntl
import functools
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pyspark

from tests.spark.programs import class_archive_training

REPOSITORY = Path(__file__).parents[2]
# With pytest's cache: it goes with `make clean`.
FOLDER = REPOSITORY / ".pytest_cache" / "d" / "spark-classes"
TRAINING_SECONDS = 300


@functools.cache
def class_archive(java: str, options: str) -> Path | None:
    """The archive of this Java with these options and the installed Spark; None where this Java cannot make one."""
    archive = FOLDER / f"{_key(java, options)}.jsa"
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        # Another worker may be making it: waiting costs nobody a processor.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not archive.exists():
            _make(java, options, archive)
    return archive if archive.exists() else None


def _key(java: str, options: str) -> str:
    """What the archive holds for: the JVM, its options, and the jars where they are."""
    jars = Path(pyspark.__file__).parent / "jars"
    release = Path(java, "release")
    parts = [options, java, release.read_text() if release.exists() else "", str(jars), *sorted(os.listdir(jars))]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _make(java: str, options: str, archive: Path) -> None:
    """Runs a driver that dumps at its end the classes which it has loaded. Under its name the archive is whole."""
    for old in FOLDER.glob("*.jsa"):
        old.unlink()
    made = archive.with_suffix(".new")
    variables = {
        **os.environ,
        "JAVA_HOME": java,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join([str(REPOSITORY / "src"), str(REPOSITORY)]),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_SUBMIT_OPTS": f"{options} -XX:ArchiveClassesAtExit={made}",
    }
    # The JVM has the same output as the program, which so ends with the last of the two.
    command = [sys.executable, class_archive_training.__file__]
    try:
        subprocess.run(command, env=variables, cwd=FOLDER, capture_output=True, timeout=TRAINING_SECONDS, check=True)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        # Drivers are dearer without it, not wrong.
        return
    if made.exists():
        made.rename(archive)
