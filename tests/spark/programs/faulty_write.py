"""Writes while things go wrong on the executors of a cluster with two hosts, and tells what is in the tables afterwards.

    faulty_write.py FOLDER

A slow attempt is overtaken by its copy; an executor dies with the rows that were shuffled to it, and its stages are run again.
"""

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import lakelet
from lakelet.spark.write.table_write import write
from tests.spark.faults import Fault, OnExecutors, opening_with, write_module

ROWS = 4_000
# What goes wrong, and in which table: fixed buckets, or dynamic ones, which are assigned in a stage before.
CASES = {
    "hang": {"bucket": "4"},
    "kill-executor": {"bucket": "4"},
    "kill-executor-dynamic": {"bucket": "-1", "dynamic-bucket.target-row-num": "500"},
}


def main(folder: Path) -> None:
    spark = SparkSession.builder.getOrCreate()
    lake = lakelet.connect(str(folder / "warehouse"))
    lake.create_database("d")
    report = {name: run(spark, lake, folder, name, options) for name, options in CASES.items()}
    spark.stop()
    print(json.dumps(report))


def run(spark: SparkSession, lake: lakelet.Lake, folder: Path, name: str, options: dict[str, str]) -> dict[str, Any]:
    """One write with one fault."""
    seen = folder / name
    seen.mkdir()
    fault = Fault(name.removesuffix("-dynamic"), str(seen))
    table = lake.create_table(
        "d." + name.replace("-", "_"), [("id", "BIGINT"), ("v", "BIGINT")], primary_key=["id"], options=options
    )
    rows = spark.range(0, ROWS, 1, 4).selectExpr("id", "id * 2 AS v")
    write_module().open_table = opening_with(lambda store: OnExecutors(store, fault))
    write(rows, lake.location, table.name, parallelism=2, driver_rows=0)
    found = table.scan().to_arrow()
    listed = {file.name for split in table.scan().plan().splits for file in split.files}
    there = {path.name for path in Path(table.location).glob("**/bucket-*/[!.]*")}
    return {
        "struck": fault.count(),
        "rows": found.num_rows,
        "keys": len(set(found["id"].to_pylist())),
        "sum": sum(found["v"].to_pylist()),
        "snapshots": [snapshot.id for snapshot in table.snapshots()],
        "missing": sorted(listed - there),
        "unlisted": sorted(there - listed),
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]))
