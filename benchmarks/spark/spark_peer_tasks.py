"""Table formats beside bare Parquet in one Spark session: a load, an upsert, a scan after it.

Rows are merged on read where a connector can do that: Iceberg with positional deletes, Delta with deletion vectors.
"""

from __future__ import annotations

import shutil
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import lakelet.spark as ls
from benchmarks.contender import serve
from benchmarks.spark.spark_tables import KEYED
from benchmarks.spark.spark_turns import ZSTD_LEVEL, Turn, session, take_turns, write_parquet
from benchmarks.spark.spark_write_tasks import create, frame_of, make_input, make_upsert

ICEBERG = "iceberg.bench.keyed"
_EXTENSIONS = (
    "io.delta.sql.DeltaSparkSessionExtension,org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
)
_MERGE = "USING changes s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
_PROPERTIES = {
    "format-version": "2",
    "write.merge.mode": "merge-on-read",
    "write.parquet.compression-codec": "zstd",
    "write.parquet.compression-level": ZSTD_LEVEL,
}


def compare(
    folder: str, formats: list[str], jars: list[str], rows: int, count: int, buckets: int, rounds: int
) -> dict[str, Any]:
    """A load of rows, an upsert of `count` half known ones, and a scan of the resulting table."""
    make_input(f"{folder}/first", rows)
    make_upsert(f"{folder}/input", rows, count)
    with session(folder, _config(folder, jars) if jars else None) as spark:
        frame_of(spark, f"{folder}/input").createOrReplaceTempView("changes")
        loads = {
            "parquet": partial(_load_parquet, spark, folder),
            "lakelet": partial(_load_lakelet, spark, folder, buckets),
            "iceberg": partial(_load_iceberg, spark, folder),
            "delta": partial(_load_delta, spark, folder),
        }
        upserts = {
            "parquet": lambda: write_parquet(spark.table("changes"), f"{folder}/parquet", "append"),
            "lakelet": lambda: ls.write(spark.table("changes"), f"{folder}/lakelet", KEYED, "upsert"),
            "iceberg": lambda: spark.sql(f"MERGE INTO {ICEBERG} t {_MERGE}").collect(),
            "delta": lambda: spark.sql(f"MERGE INTO delta.`{folder}/delta` t {_MERGE}").collect(),
        }
        scans = {
            "parquet": lambda: spark.read.parquet(f"{folder}/parquet"),
            "lakelet": lambda: ls.table(spark, f"{folder}/lakelet", KEYED),
            "iceberg": lambda: spark.table(ICEBERG),
            "delta": lambda: spark.read.format("delta").load(f"{folder}/delta"),
        }
        found = {
            "load": take_turns(rounds, {name: Turn(lambda _, do=loads[name]: do()) for name in formats}),
            "upsert": take_turns(
                rounds,
                {name: Turn(lambda _, do=upserts[name]: do(), lambda _, do=loads[name]: do()) for name in formats},
            ),
            "scan": take_turns(rounds, {name: Turn(lambda _, of=scans[name]: _hash_all(of())) for name in formats}),
        }
        for name in formats:
            assert scans[name]().count() == rows + (count if name == "parquet" else count // 2), name
    return found


def _hash_all(frame: DataFrame) -> None:
    """Makes Spark read every value; Delta cannot be read into a no-op sink."""
    frame.agg(F.bit_xor(F.xxhash64(*frame.columns))).collect()


def _config(folder: str, jars: list[str]) -> dict[str, str]:
    return {
        "spark.driver.extraClassPath": ":".join(jars),
        "spark.sql.extensions": _EXTENSIONS,
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalog.iceberg": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.iceberg.type": "hadoop",
        "spark.sql.catalog.iceberg.warehouse": f"{folder}/iceberg",
        "spark.databricks.delta.properties.defaults.enableDeletionVectors": "true",
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.hadoop.parquet.compression.codec.zstd.level": ZSTD_LEVEL,
    }


def _load_parquet(spark: SparkSession, folder: str) -> None:
    write_parquet(frame_of(spark, f"{folder}/first"), f"{folder}/parquet")


def _load_lakelet(spark: SparkSession, folder: str, buckets: int) -> None:
    shutil.rmtree(f"{folder}/lakelet", ignore_errors=True)
    create(f"{folder}/lakelet", "BIGINT", buckets)
    ls.write(frame_of(spark, f"{folder}/first"), f"{folder}/lakelet", KEYED)


def _load_iceberg(spark: SparkSession, folder: str) -> None:
    spark.sql(f"DROP TABLE IF EXISTS {ICEBERG} PURGE")
    writer = frame_of(spark, f"{folder}/first").writeTo(ICEBERG).using("iceberg")
    for name, value in _PROPERTIES.items():
        writer = writer.tableProperty(name, value)
    writer.create()


def _load_delta(spark: SparkSession, folder: str) -> None:
    shutil.rmtree(f"{folder}/delta", ignore_errors=True)
    frame_of(spark, f"{folder}/first").write.format("delta").save(f"{folder}/delta")


if __name__ == "__main__":
    serve(compare)
