"""The session the tests run on, and its properties by lakelet.spark.session."""

import sys
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from lakelet.spark.session import default_parallelism, is_connect, settings, shuffle_partitions

pytestmark = [pytest.mark.spark]


def interpreter(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import lakelet

    for _ in batches:
        yield pa.RecordBatch.from_pydict({"python": [sys.executable], "lakelet": [lakelet.__file__]})


def test_workers_run_the_callers_python_and_its_lakelet(spark: SparkSession) -> None:
    import lakelet

    rows = spark.range(0, 2, 1, 2).mapInArrow(interpreter, "python string, lakelet string").collect()
    assert {(row.python, row.lakelet) for row in rows} == {(sys.executable, lakelet.__file__)}


def test_the_session_says_what_it_is(spark: SparkSession) -> None:
    assert not is_connect(spark)
    assert default_parallelism(spark) == 2
    assert shuffle_partitions(spark) == 4
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"


def test_settings_hold_for_a_block_only(spark: SparkSession) -> None:
    with settings(spark, {"spark.sql.shuffle.partitions": "7", "spark.sql.some.setting": "on"}):
        assert shuffle_partitions(spark) == 7
        assert spark.conf.get("spark.sql.some.setting") == "on"
    assert shuffle_partitions(spark) == 4
    assert spark.conf.get("spark.sql.some.setting", None) is None
