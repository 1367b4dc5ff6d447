"""The other implementations as session fixtures.

What is not set up skips the tests that need it, except with CI=true, where it fails them.
"""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.iceberg_rest import client as rest_client
from tests.conformance.iceberg_rest.client import RestServer
from tests.conformance.iceberg_spark import client as iceberg_client
from tests.conformance.iceberg_spark.client import IcebergSpark
from tests.conformance.java.client import JavaPaimon
from tests.conformance.pypaimon.client import PYTHON, PyPaimon
from tests.conformance.tables import Warehouse

REPOSITORY = Path(__file__).parents[2]
JARS = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lakelet" / "jars"
JARS_LIST = Path(__file__).parent / "java" / "jars.sha256"
MARKS = {
    "java_paimon": "java",
    "pypaimon": "pypaimon",
    "iceberg_spark": "iceberg_spark",
    "iceberg_rest": "iceberg_rest",
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests by what they ask for."""
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        for fixture, mark in MARKS.items():
            if fixture in fixtures:
                item.add_marker(mark)


@pytest.fixture(scope="session")
def java_paimon() -> Iterator[JavaPaimon]:
    """Java Paimon 1.4.2."""
    found = subprocess.run([REPOSITORY / "scripts" / "setup-java.sh", "--print-home"], capture_output=True)
    if found.returncode != 0:
        _unavailable("no Java 17 or later with javac (make setup-java)")
    missing = [name for name in _jar_names() if not (JARS / name).is_file()]
    if missing:
        _unavailable(f"{', '.join(missing)} not in {JARS} (make setup-conformance)")
    client = JavaPaimon()
    yield client
    client.close()


@pytest.fixture(scope="session")
def pypaimon() -> Iterator[PyPaimon]:
    """pypaimon 2.1 and pypaimon-rust 0.4."""
    if not PYTHON.exists():
        _unavailable(f"{PYTHON.parents[1].name} does not exist (make setup-conformance)")
    client = PyPaimon()
    yield client
    client.close()


@pytest.fixture(scope="session")
def iceberg_spark() -> Iterator[IcebergSpark]:
    """Iceberg 1.12 in Spark 4.1, and DuckDB 1.5 with its Iceberg extension."""
    home = subprocess.run(
        [REPOSITORY / "scripts" / "setup-java.sh", "--runtime", "--print-home"], capture_output=True, text=True
    )
    if home.returncode != 0:
        _unavailable("no Java 17 or later (make setup-java)")
    missing = [path.name for path in [*iceberg_client.jars(), iceberg_client.PYTHON] if not path.exists()]
    if missing:
        _unavailable(f"{', '.join(missing)} not there (make setup-conformance)")
    client = IcebergSpark(home.stdout.strip())
    yield client
    client.close()


@pytest.fixture(scope="module")
def iceberg_rest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestServer]:
    """The REST catalog of Iceberg 1.11, for one module."""
    found = subprocess.run([REPOSITORY / "scripts" / "setup-java.sh", "--print-home"], capture_output=True)
    if found.returncode != 0:
        _unavailable("no Java 17 or later with javac (make setup-java)")
    missing = [path.name for path in rest_client.jars() if not path.is_file()]
    if missing:
        _unavailable(f"{', '.join(missing)} not there (make setup-conformance)")
    server = RestServer(tmp_path_factory.mktemp("rest"))
    server.start()
    yield server
    server.close()


@pytest.fixture
def warehouse(java_paimon: JavaPaimon, pypaimon: PyPaimon, tmp_path: Path) -> Warehouse:
    """A folder that all implementations work in."""
    return Warehouse(tmp_path, java_paimon, pypaimon)


def _jar_names() -> list[str]:
    return [line.split()[1] for line in JARS_LIST.read_text().splitlines()]


def _unavailable(reason: str) -> None:
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
