"""Spark plans by file indexes: files without a value between their least and greatest are not even opened."""

from __future__ import annotations

from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import DataFrame

from lakelet.spark.read.table_frame import table as read
from tests.unit.scan.spread_values import spread

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark]


@pytest.mark.parametrize("keyed", [False, True], ids=["append", "keyed"])
def test_files_that_indexes_leave_out_are_not_opened(spark: SparkSession, tmp_path: Path, keyed: bool) -> None:
    key: dict[str, Any] = {"primary_key": ["n"], "options": {"bucket": "1"}} if keyed else {}
    table = spread(tmp_path, **key)
    wheres = ["n = 16", "n > 15 AND n < 17", *([] if keyed else ["s = 's16'", "b = 16"])]
    for where in wheres:
        assert table.scan(where=where).plan().files == 1, where
    frames = [read(spark, tmp_path, "d.t", where=where).select("id") for where in wheres]
    source = spark.read.format("lakelet").option("warehouse", str(tmp_path)).option("where", "n BETWEEN 16 AND 16")
    frames.append(source.load("d.t").select("id"))
    assert [row.id for row in reduce(DataFrame.union, frames).collect()] == [16] * len(frames)
    assert read(spark, tmp_path, "d.t", where="n BETWEEN 101 AND 1000").collect() == []
