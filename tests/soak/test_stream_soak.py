"""Streams killed in every window of a batch, in all bucket modes, longer than `make test` has time for."""

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.conftest import java, spark  # noqa: F401 - fixtures
from tests.spark.stream.killed_streams import Kill, check_kill, every_window

pytestmark = [
    pytest.mark.soak,
    pytest.mark.spark,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not os.environ.get("LAKELET_SOAK"), reason="only in `make soak`"),
]


@pytest.mark.parametrize("kill", every_window(), ids=str)
def test_rule_30_every_window(spark: SparkSession, java: str, tmp_path: Path, kill: Kill) -> None:  # noqa: F811
    check_kill(spark, java, tmp_path, kill)
