"""Streams killed around random commits, longer than `make test` has time for."""

import os
import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.conftest import java, spark  # noqa: F401 - fixtures
from tests.spark.stream.killed_streams import BATCHES, Kill, check_kill
from tests.spark.stream.sink_tables import MODES

pytestmark = [
    pytest.mark.soak,
    pytest.mark.spark,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not os.environ.get("LAKELET_SOAK"), reason="only in `make soak`"),
]


@pytest.mark.parametrize("seed", range(50))
def test_many_kills(spark: SparkSession, java: str, tmp_path: Path, seed: int) -> None:  # noqa: F811
    chosen = random.Random(seed)
    modes = list(MODES)
    kill = Kill(
        chosen.choice(modes),
        chosen.choice(modes),
        chosen.choice(["before", "after"]),
        chosen.randint(1, 2 * BATCHES),
        chosen.choice([0, 100_000]),
        chosen.choice([None, "named"]),
    )
    check_kill(spark, java, tmp_path, kill)
