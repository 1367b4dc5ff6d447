"""A stream that is killed in a window of a batch and run again, and what the tables must hold then."""

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
from lakelet import Table
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
# In the order in which a batch comes to them.
WINDOWS = ("called", "before first", "after first", "before second", "after second", "returned")
# Tables with deletion vectors are compacted after each batch, in a commit of its own.
COMPACTION_WINDOWS = tuple(
    f"{moment} compaction of {name}" for name in ("first", "second") for moment in ("before", "after")
)


@dataclass(frozen=True)
class Kill:
    """In which window of which batch a stream into two tables of these bucket modes is killed."""

    first: str
    second: str
    window: str
    batch: int
    driver_rows: int = 100_000
    commit_user: str | None = None

    @property
    def applied(self) -> tuple[int, int]:
        """How many batches each of the tables has then."""
        place = WINDOWS.index(self.window.replace("compaction of ", ""))
        is_after_first = place >= WINDOWS.index("after first") or "compaction of first" in self.window
        is_after_second = place >= WINDOWS.index("after second") or "compaction of second" in self.window
        return self.batch + is_after_first, self.batch + is_after_second


def every_window() -> list[Kill]:
    """Kills of every bucket mode in every window of its own commits, by the driver and by tasks, at every batch."""
    modes = list(MODES)
    kills: list[Kill] = []

    def add(mode: str, window: str) -> None:
        number = len(kills)
        other = modes[(modes.index(mode) + 1 + number) % len(modes)]
        first, second = (other, mode) if "second" in window or window == "returned" else (mode, other)
        driver_rows = 100_000 if (number + number // len(WINDOWS)) % 2 else 0
        kills.append(Kill(first, second, window, number % BATCHES, driver_rows, "named" if number % 4 > 1 else None))

    for mode in modes:
        for window in WINDOWS:
            add(mode, window)
    for _ in range(2):
        for window in COMPACTION_WINDOWS:
            add("vectors", window)
    return kills


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
        "window": kill.window,
        "batch": kill.batch,
    }
    command = [sys.executable, "-m", killed_sink.__name__, json.dumps(arguments)]
    killed = subprocess.run(command, env={**os.environ, **spark_environment(java)}, capture_output=True, timeout=1500)
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-2000:]
    assert tuple(map(_applied, tables)) == kill.applied, f"the kill missed its window: {kill}"
    logged = [int(log.name) for log in (folder / "checkpoint" / "commits").glob("[0-9]*")]
    assert sorted(logged) == list(range(kill.batch))
    two_tables(file_stream(spark, folder / "in"), arguments).awaitTermination()
    odd = [[row for row in rows if row["id"] % 2] for rows in batches]
    for table, mode, own in zip(tables, (kill.first, kill.second), (batches, odd), strict=True):
        expected = merged(own, keyed="primary_key" in MODES[mode])
        assert stored(table) == ordered(expected), f"{table.name} after {kill}"


def _applied(table: Table) -> int:
    """How many batches a table has."""
    return sum(snapshot.commit_kind.value != "COMPACT" for snapshot in table.snapshots())
