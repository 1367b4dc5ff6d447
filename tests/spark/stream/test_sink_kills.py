"""A driver killed at an aimed moment of a batch: the rows are those of the batches, none lost and none twice (rule 30)."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.stream.killed_streams import Kill, check_kill

# Each batch makes a snapshot of the first table and then one of the second. Where a table is compacted after its rows are written
# there are more, so that the same numbers fall on other moments.
KILLS = [
    Kill("fixed", "append", "before", 3),
    Kill("fixed", "append", "after", 3, driver_rows=0),
    Kill("append", "dynamic", "after", 4),
    Kill("vectors", "postpone", "after", 1, commit_user="named user"),
    Kill("crossing", "append-buckets", "before", 2, driver_rows=0),
]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("kill", KILLS, ids=str)
def test_rule_30_a_killed_stream_goes_on_where_it_was(
    spark: SparkSession, java: str, tmp_path: Path, kill: Kill
) -> None:
    check_kill(spark, java, tmp_path, kill)
