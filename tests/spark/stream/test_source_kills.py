"""A query that is killed in a batch and started again: every change arrives once, whatever the window."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import lakelet
from lakelet import Lake, Table
from tests.spark.java import spark_environment
from tests.spark.programs import killed_stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark]

COLUMNS = [("id", "BIGINT NOT NULL"), ("p", "STRING NOT NULL"), ("v", "STRING")]
MODES = {
    "fixed": (["id", "p"], {"bucket": "3"}),
    "dynamic": (["id", "p"], {"dynamic-bucket.target-row-num": "4"}),
    "across partitions": (["id"], {}),
    "vectors": (["id", "p"], {"bucket": "2", "deletion-vectors.enabled": "true"}),
}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = lakelet.connect(str(tmp_path / "a lake"))
    lake.create_database("d")
    return lake


def made(lake: Lake, mode: str) -> tuple[Table, Table]:
    """A table with a history, and an empty one of the same columns."""
    key, options = MODES[mode]
    tables = [
        lake.create_table(f"d.{name}", COLUMNS, primary_key=key, partitioned_by=["p"], options=options)
        for name in ("source", "target")
    ]
    source = tables[0]
    for number in range(4):
        source.write(
            [{"id": one, "p": "ab"[(one + number) % 2], "v": f"v{number}"} for one in range(number, number + 9)]
        )
    source.delete(where="id = 5")
    source.compact(full=True)
    source.write([{"id": 2, "p": "a", "v": None}])
    return source, tables[1]


def rows(table: Table) -> list[tuple[object, ...]]:
    return sorted((row["id"], row["p"], row["v"] or "") for row in table.scan().to_arrow().to_pylist())


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("mode", MODES)
def test_a_killed_query_goes_on_where_it_was(
    spark: SparkSession, lake: Lake, java: str, tmp_path: Path, mode: str, moment: str
) -> None:
    source, target = made(lake, mode)
    arguments = (lake.location, "d.source", "d.target", str(tmp_path / "checkpoint"))
    command = [sys.executable, "-m", killed_stream.__name__, *arguments, "1", moment]
    killed = subprocess.run(command, env={**os.environ, **spark_environment(java)}, capture_output=True, timeout=1500)
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-2000:]
    assert rows(target) != rows(source)
    seen: list[int] = []
    killed_stream.replay(spark, *arguments, seen=seen)
    assert seen[0] == 1
    assert rows(target) == rows(source)
