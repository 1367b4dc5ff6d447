"""Reads a table in a bucket with Hadoop's S3 client on the class path, so that Spark's own reader opens the plain files.

    s3a_read.py WAREHOUSE OPTIONS      options of the connection as JSON

It says on its last line which rows it found, and the plans they came by.
"""

import io
import json
import sys
from contextlib import redirect_stdout

from pyspark.sql import DataFrame, SparkSession

from lakelet.spark.read.table_frame import table
from lakelet.spark.write.table_write import write


def plan(frame: DataFrame) -> str:
    """What Spark will do, as EXPLAIN shows it."""
    shown = io.StringIO()
    with redirect_stdout(shown):
        frame.explain(extended=True)
    return shown.getvalue()


def main(warehouse: str, given: str) -> None:
    spark = SparkSession.builder.getOrCreate()
    options = json.loads(given)
    report = {}
    for name in ("d.plain", "d.upserted", "d.vectors", "d.orc", "d.evolved"):
        frame = table(spark, warehouse, name, options=options)
        report[name] = {"plan": plan(frame), "rows": sorted([row.id, row.v] for row in frame.collect())}
    filtered = table(spark, warehouse, "d.plain", options=options, where="id >= 30", columns=["id"])
    report["filtered"] = {"plan": plan(filtered), "rows": sorted([row.id, None] for row in filtered.collect())}
    write(spark.createDataFrame([(100, "new")], "id bigint, v string"), warehouse, "d.plain", options=options)
    report["count"] = table(spark, warehouse, "d.plain", options=options).count()
    spark.stop()
    print(json.dumps(report))


if __name__ == "__main__":
    main(*sys.argv[1:])
