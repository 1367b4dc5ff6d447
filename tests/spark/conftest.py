"""The one Spark session that the tests of this folder share.

Where there is no Java the tests skip, except with CI=true, where they fail.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.spark.java import PATIENT, environment, java_home, spark_environment
from tests.spark.warm_python import warm_processes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOLDER = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what is in this folder, whether or not its module did."""
    for item in items:
        if item.path.is_relative_to(FOLDER) and item.get_closest_marker("spark") is None:
            item.add_marker("spark")


@pytest.fixture(scope="session")
def java() -> str:
    """The home of a Java that Spark runs on."""
    home = java_home()
    if home is None:
        reason = "no Java 17 or later (make setup-java)"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return home


@pytest.fixture(scope="session")
def spark(java: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator["SparkSession"]:
    """Two cores that try a task four times. Settings that a test changes it puts back (lakelet.spark.session.settings)."""
    from lakelet.spark.session import local_session

    folder = tmp_path_factory.mktemp("spark")
    config = {
        **PATIENT,
        "spark.driver.memory": "1500m",
        "spark.local.dir": str(folder / "local"),
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.warehouse.dir": str(folder / "spark-warehouse"),
    }
    with environment(spark_environment(java)), warm_processes() as forked, environment(forked):
        session = local_session("lakelet-tests", config=config)
        yield session
        session.stop()
