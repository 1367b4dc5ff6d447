"""Tables with a changelog producer: written, compacted and followed by Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import lakelet
import lakelet.spark as ls
from tests.spark.stream.test_source import COLUMNS, Run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark]


@pytest.mark.parametrize(
    ("producer", "write_only"), [("input", "false"), ("lookup", "false"), ("full-compaction", "true")]
)
def test_what_spark_writes_is_told_of(spark: SparkSession, tmp_path: Path, producer: str, write_only: str) -> None:
    lake = lakelet.connect(str(tmp_path / "lake"))
    lake.create_database("d")
    options = {"bucket": "2", "changelog-producer": producer, "write-only": write_only}
    table = lake.create_table("d.k", COLUMNS, primary_key=["id"], options=options)
    run = Run(lambda: ls.read_stream(spark, lake.location, "d.k", changelog=True), tmp_path / "c")

    def put(*rows: tuple[int, str]) -> None:
        ls.write(spark.createDataFrame(rows, "id BIGINT, v STRING"), lake.location, "d.k", mode="upsert")
        if write_only == "true":
            ls.compact(spark, lake.location, "d.k", full=True)

    put((1, "a"), (2, "a"), (3, "a"))
    assert run() == [[("+I", 1, "a"), ("+I", 2, "a"), ("+I", 3, "a")]]
    put((2, "b"), (3, "a"), (4, "b"))
    if producer == "input":
        assert run() == [[("+I", 2, "b"), ("+I", 3, "a"), ("+I", 4, "b")]]
    else:
        changes = [("+I", 4, "b"), ("+U", 2, "b"), ("+U", 3, "a"), ("-U", 2, "a"), ("-U", 3, "a")]
        assert run() == [changes]
    assert all(snapshot.changelog_manifest_list for snapshot in table.snapshots() if snapshot.changelog_record_count)
    assert sum(snapshot.changelog_record_count or 0 for snapshot in table.snapshots()) == (
        6 if producer == "input" else 8
    )
