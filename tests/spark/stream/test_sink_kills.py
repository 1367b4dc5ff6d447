"""A driver killed at an aimed moment of a batch: the rows are those of the batches, none lost and none twice (rule 30)."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.stream.killed_streams import Kill, check_kill

# One of each kind; `make soak` has every window in every bucket mode.
KILLS = [
    Kill("fixed", "append", "before first", 1),
    Kill("fixed", "append", "after first", 1, driver_rows=0),
    Kill("append", "dynamic", "returned", 1),
    Kill("vectors", "postpone", "before compaction of first", 0, commit_user="named user"),
    Kill("crossing", "append-buckets", "before second", 0, driver_rows=0),
]


@pytest.mark.parametrize("kill", KILLS, ids=str)
def test_rule_30_a_killed_stream_goes_on_where_it_was(
    spark: SparkSession, java: str, tmp_path: Path, kill: Kill
) -> None:
    check_kill(spark, java, tmp_path, kill)
