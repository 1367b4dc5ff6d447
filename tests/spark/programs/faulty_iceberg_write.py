"""Inserts into Iceberg tables while things go wrong on the executors of a cluster with two hosts, and tells what is there
afterwards.

    faulty_iceberg_write.py FOLDER

A slow attempt is overtaken by its copy; an executor dies with the rows that were shuffled to it, and its stages are run again.
"""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import LongType, NestedField
from pyspark.sql import SparkSession

from lakelet.spark.iceberg.insert import insert_iceberg
from tests.spark.faults import Fault
from tests.spark.iceberg_lakes import IcebergLake, tasks_suffer
from tests.unit.iceberg.ice_tables import spec_of

ROWS = 4_000
CASES = ("hang", "kill-executor")


def main(folder: Path) -> None:
    spark = SparkSession.builder.getOrCreate()
    lake = IcebergLake.new(folder / "warehouse")
    report = {name: run(spark, lake, folder, name) for name in CASES}
    spark.stop()
    print(json.dumps(report))


def run(spark: SparkSession, lake: IcebergLake, folder: Path, name: str) -> dict[str, Any]:
    """One insert with one fault."""
    (folder / name).mkdir()
    fault = Fault(name, str(folder / name))
    table = "db." + name.replace("-", "_")
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "v", LongType()))
    lake.create(schema, spec_of((1, BucketTransform(4), "id_bucket")), table)
    rows = spark.range(0, ROWS, 1, 4).selectExpr("id", "id * 2 AS v")
    with pytest.MonkeyPatch.context() as patch:
        tasks_suffer(patch, fault)
        insert_iceberg(rows, "iceberg", table, warehouse=lake.location, parallelism=2)
    found = lake.table(table).scan().to_arrow()
    mine = {path for path in lake.unlisted(table) if f"/{table.split('.')[1]}/" in path}
    return {
        "struck": fault.count(),
        "rows": found.num_rows,
        "ids": len(set(found["id"].to_pylist())),
        "sum": sum(found["v"].to_pylist()),
        "snapshots": len(lake.table(table).snapshots()),
        "unlisted": sorted(mine),
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]))
