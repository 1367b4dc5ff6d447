"""The writer of the demo: rows put one at a time, by a process that is killed before it commits them; nothing is lost."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

from lakelet.catalog.lake import Lake
from lakelet.cli.output.output import Output

_ROWS = ((1, "book"), (2, "lamp"), (3, "chair"))
_PROGRAM = """
import os, signal, sys
from lakelet.cli.deferred_pandas import defer_pandas
defer_pandas()
import lakelet
warehouse, table, logs = sys.argv[1:]
writer = lakelet.connect(warehouse).table(table).writer(wal_folder=logs)
for number, item in {rows!r}:
    writer.put({{"shipment": number, "item": item}})
os.kill(os.getpid(), signal.SIGKILL)
"""


def show_writer(lake: Lake, database: str, output: Output) -> None:
    """Puts rows, kills the writer, and opens the next one, which commits them; adds one more and reads it before its commit."""
    shipments = lake.create_table(
        f"{database}.shipments",
        [("shipment", "BIGINT NOT NULL"), ("item", "STRING")],
        primary_key=["shipment"],
        options={"bucket": "1"},
        comment="rows that came one at a time",
    )
    with tempfile.TemporaryDirectory(prefix="lakelet-demo-") as folder:
        logs = os.path.join(folder, "wal")
        if "://" not in lake.location:
            program = _PROGRAM.format(rows=_ROWS)
            subprocess.run([sys.executable, "-c", program, lake.location, shipments.name, logs], check=False)
        else:
            # Another process may not reach such a store as this one does.
            output.note("   not killed: the warehouse is not a folder of this machine")
            with shipments.writer(wal_folder=logs) as writer:
                writer.put_many([{"shipment": number, "item": item} for number, item in _ROWS])
        with shipments.writer(wal_folder=logs) as writer:
            recovered = sum(log.records for log in writer.recovered if log.outcome == "committed")
            writer.put({"shipment": 2, "item": "desk"})
            found, committed = writer.get({"shipment": 2}), shipments.get({"shipment": 2})
            assert found is not None
            shown = {"rows recovered": recovered, "read through the writer": found["item"]}
            output.values("writer", {**shown, "committed so far": None if committed is None else committed["item"]})
    rows = shipments.scan().to_arrow().sort_by("shipment").to_pylist()
    output.rows("after it was closed", ("shipment", "item"), [tuple(row.values()) for row in rows])


def show_cache(lake: Lake, output: Output) -> None:
    """How often the metadata that the demo needed was in memory."""
    ratios = {str(row[0]): row[1] for row in lake.sql("SHOW PROC '/tiered_cache_stats'").rows()}
    output.values("metadata found in memory", ratios)
