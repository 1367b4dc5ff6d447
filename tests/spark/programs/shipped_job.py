"""Upserts into a table and reads it, with whatever Lakelet it was sent along with.

    shipped_job.py WAREHOUSE

It imports nothing of the tests: where it runs there is nothing else.
"""

import json
import os
import sys
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

import lakelet
from lakelet.spark.read.table_frame import table
from lakelet.spark.write.table_write import write

ROWS = 20_000


def seen(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Where an executor has Lakelet from, and where it keeps compiled loops."""
    import lakelet
    from lakelet.format.rows import murmur

    murmur._hash_loop.load()
    for _ in batches:
        kept = murmur._hash_loop.compiled.stats.cache_path
        yield pa.RecordBatch.from_pydict({"lakelet": [os.path.abspath(lakelet.__file__)], "kept": [kept]})


def main(warehouse: str) -> None:
    spark = SparkSession.builder.getOrCreate()
    lake = lakelet.connect(warehouse)
    lake.create_database("d")
    lake.create_table("d.t", [("id", "BIGINT"), ("v", "STRING")], primary_key=["id"], options={"bucket": "4"})
    rows = spark.range(0, ROWS, 1, 4)
    write(rows.selectExpr("id", "concat('old ', id) AS v"), warehouse, "d.t", driver_rows=0)
    write(rows.filter("id % 2 = 0").selectExpr("id", "'new' AS v"), warehouse, "d.t", mode="upsert", driver_rows=0)
    found = table(spark, warehouse, "d.t").selectExpr("v = 'new' AS new").groupBy("new").count().collect()
    executors = spark.range(0, 8, 1, 8).mapInArrow(seen, "lakelet string, kept string").distinct().collect()
    report = {
        "driver": lakelet.__file__,
        "executors": sorted({row["lakelet"] for row in executors}),
        "kept": sorted({row["kept"] for row in executors}),
        "counts": {str(row[0]): row[1] for row in found},
        "snapshots": [snapshot.id for snapshot in lake.table("d.t").snapshots()],
    }
    spark.stop()
    print(json.dumps(report))


if __name__ == "__main__":
    main(sys.argv[1])
