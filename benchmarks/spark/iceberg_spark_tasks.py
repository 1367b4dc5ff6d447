"""Tasks on Spark: write rows into the partitions of an Iceberg table, and as bare Parquet files.

The rows come from Parquet files on both sides, and rows of a partition are sent to one task on both sides, so that there are as
many files. Compression is that of the table.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import lakelet
import lakelet.spark as ls
from benchmarks.contender import serve
from benchmarks.spark.spark_turns import Turn, session, take_turns
from benchmarks.spark.spark_write_tasks import INPUT_SCHEMA, make_input

TABLE = "bench.parts"
ZSTD_LEVEL = "3"
COLUMNS = "id BIGINT, uuid STRING, order_no STRING, line INT, price DOUBLE, amount DECIMAL(12, 2), \
ordered_at TIMESTAMP(6), paid BOOLEAN, note STRING, part INT"
TRANSFORMS = {"identity": "part", "bucket": "bucket({partitions}, id)", "text": "bucket({partitions}, uuid)"}


def partitioned_write(folder: str, rows: int, partitions: int, transform: str, rounds: int) -> dict[str, Any]:
    """A load of a new table; the peer repartitions by the same column and writes one folder for each of its values."""
    make_input(f"{folder}/input", rows)
    place, parquet = f"{folder}/lake", f"{folder}/parquet"
    with session(folder) as spark:

        def peer(_: int) -> None:
            writer = frame_of(spark, folder, partitions).repartition("part").write.mode("overwrite").partitionBy("part")
            writer = writer.option("compression", "zstd").option("parquet.compression.codec.zstd.level", ZSTD_LEVEL)
            writer.parquet(parquet)

        def ours(_: int) -> None:
            ls.insert_iceberg(frame_of(spark, folder, partitions), "iceberg", TABLE, warehouse=place)

        def fresh(_: int) -> None:
            shutil.rmtree(place, ignore_errors=True)
            lake = lakelet.connect(place)
            lake.sql("CREATE DATABASE iceberg.bench")
            by = TRANSFORMS[transform].format(partitions=partitions)
            lake.sql(f"CREATE TABLE iceberg.{TABLE} ({COLUMNS}) USING iceberg PARTITIONED BY ({by})")

        found = take_turns(rounds, {"parquet": Turn(peer), "lakelet": Turn(ours, fresh)})
        assert ls.iceberg_table(spark, "iceberg", TABLE, warehouse=place).count() == rows
    for name, where in (("parquet", parquet), ("lakelet", place)):
        files = list(Path(where).rglob("*.parquet"))
        found[name] |= {"files": len(files), "bytes": sum(path.stat().st_size for path in files)}
    return found


def frame_of(spark: SparkSession, folder: str, partitions: int) -> DataFrame:
    """The rows with a column of a number of distinct values."""
    frame = spark.read.schema(INPUT_SCHEMA).parquet(f"{folder}/input")
    return frame.withColumn("part", (F.col("id") % partitions).cast("int"))


if __name__ == "__main__":
    serve(partitioned_write)
