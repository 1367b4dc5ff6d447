"""What Lakelet builds is not recorded by PySpark; what a program builds is."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import utils as recorder
from pyspark.sql import functions as F

import lakelet
import lakelet.spark as ls

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_only_a_programs_own_expressions_are_recorded(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "_enable_debugging_cache", None)
    recorded = []
    capture = recorder._capture_call_site
    monkeypatch.setattr(recorder, "_capture_call_site", lambda depth: recorded.append(capture(depth)) or capture(depth))
    lake = lakelet.connect(tmp_path)
    lake.create_database("d")
    lake.create_table("d.t", [("id", "BIGINT NOT NULL"), ("v", "STRING")], primary_key=["id"], options={"bucket": "2"})
    rows = spark.range(10).select("id", F.lit("x").alias("v"))
    assert recorded
    recorded.clear()
    ls.write(rows, tmp_path, "d.t")
    ls.write(rows, tmp_path, "d.t", driver_rows=0)
    ls.write_batch(rows, 1, tmp_path, "d.t", commit_user="job")
    ls.compact(spark, tmp_path, "d.t", full=True)
    found = ls.table(spark, tmp_path, "d.t", where="id < 4")
    assert recorded == []
    assert found.where(F.col("v") == "x").count() == 4
    assert any(Path(__file__).name in place for place in recorded)
