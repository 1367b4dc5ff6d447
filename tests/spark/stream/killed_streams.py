"""A stream that is killed around a commit and run again, and what the tables must hold then."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import lakelet
from tests.spark.java import spark_environment
from tests.spark.programs import killed_sink
from tests.spark.stream.sink_tables import (
    MODES,
    add_file,
    file_stream,
    make_table,
    merged,
    ordered,
    rows_of,
    stored,
    two_tables,
)

BATCHES = 3


@dataclass(frozen=True)
class Kill:
    """Where a stream into two tables of these bucket modes is killed: around the n-th snapshot of the process."""

    first: str
    second: str
    moment: str
    number: int
    driver_rows: int = 100_000
    commit_user: str | None = None


def check_kill(spark: SparkSession, java: str, folder: Path, kill: Kill) -> None:
    """Kills a stream, runs it to its end, and compares the tables with what its batches make."""
    lake = lakelet.connect(str(folder / "wh"))
    lake.create_database("shop")
    tables = make_table(lake, kill.first, "shop.first"), make_table(lake, kill.second, "shop.second")
    batches = [rows_of(number) for number in range(BATCHES)]
    for number, rows in enumerate(batches):
        add_file(folder / "in", number, rows)
    arguments: dict[str, Any] = {
        "warehouse": lake.location,
        "source": str(folder / "in"),
        "checkpoint": str(folder / "checkpoint"),
        "driver_rows": kill.driver_rows,
        "commit_user": kill.commit_user,
        "moment": kill.moment,
        "number": kill.number,
    }
    command = [sys.executable, "-m", killed_sink.__name__, json.dumps(arguments)]
    killed = subprocess.run(command, env={**os.environ, **spark_environment(java)}, capture_output=True, timeout=600)
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-2000:]
    two_tables(file_stream(spark, folder / "in"), arguments).awaitTermination()
    odd = [[row for row in rows if row["id"] % 2] for rows in batches]
    for table, mode, own in zip(tables, (kill.first, kill.second), (batches, odd), strict=True):
        expected = merged(own, keyed="primary_key" in MODES[mode])
        assert stored(table) == ordered(expected), f"{table.name} after {kill}"
