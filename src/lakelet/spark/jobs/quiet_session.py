"""A local Spark session whose log does not reach the terminal.

The JVM writes its log to where its standard error was when it started. That is a file here, of which the last lines are reported
if it does not start.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakelet.errors import UnavailableError
from lakelet.spark.session import local_session

_OLDEST_JAVA = 17
_VERSION = re.compile(r'version "(\d+)')
_TOLD_LINES = 3


@contextmanager
def quiet_session(name: str, *, config: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """A session for the duration of a block; UnavailableError where there is no Java for it."""
    check_java()
    with tempfile.TemporaryFile() as log, warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"pyspark\.")
        try:
            with _standard_error_to(log):
                spark = local_session(name, config={"spark.log.level": "ERROR", **(config or {})})
        except PySparkException as error:
            raise UnavailableError(f"Spark did not start: {_last_lines(log) or error}") from None
        try:
            yield spark
        finally:
            spark.stop()


def check_java() -> None:
    """UnavailableError where there is no Java that Spark runs on."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    told = "" if java is None else _version_text(java)
    found = _VERSION.search(told)
    if found is None or int(found[1]) < _OLDEST_JAVA:
        there = f"{java} is Java {found[1]}" if found else f"there is none at {java or 'any place of PATH'}"
        raise UnavailableError(f"Spark needs Java {_OLDEST_JAVA} or later (set JAVA_HOME to it, or PATH); {there}")


def _version_text(java: str) -> str:
    try:
        return subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    except OSError:
        return ""


@contextmanager
def _standard_error_to(log: IO[bytes]) -> Iterator[None]:
    """Redirects the standard error of processes started in the block to `log`, for as long as they live."""
    sys.stderr.flush()
    before = os.dup(2)
    os.dup2(log.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)


def _last_lines(log: IO[bytes]) -> str:
    log.seek(0)
    lines = [line.strip() for line in log.read().decode(errors="replace").splitlines() if line.strip()]
    return " ".join(lines[-_TOLD_LINES:])
