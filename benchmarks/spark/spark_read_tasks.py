"""Tasks on Spark: read tables, and the same rows from bare Parquet files.

Both sides are counted from opening, planning included. The Parquet side is told the schema, which saves it a look into the files.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import lakelet
import lakelet.spark as ls
from benchmarks.contender import serve
from benchmarks.keyed.keyed_tasks import TABLE as KEYED
from benchmarks.spark.spark_tables import MANY, PLAIN, delete_share, make_many_files, make_parquet, make_plain, paths_of
from benchmarks.spark.spark_turns import Turn, consume, session, take_turns
from benchmarks.table_copies import linked
from lakelet.spark.types import spark_schema
from lakelet.table import Table

FILES = 8


def plain_scan(folder: str, rows: int, shares: list[float], rounds: int) -> dict[str, Any]:
    """An append table, and copies of it of which some rows are deleted; Spark reads the same files and all rows."""
    table = make_plain(f"{folder}/table", rows, FILES)
    paths = paths_of(f"{folder}/table", table)
    gone = {}
    for share in shares:
        linked(f"{folder}/table", f"{folder}/{share}")
        gone[share] = delete_share(_open(f"{folder}/{share}", PLAIN), share)
    with session(folder) as spark:

        def ours(place: str, _: int) -> None:
            consume(ls.table(spark, f"{folder}/{place}", PLAIN))

        turns = {
            "parquet": Turn(lambda _: consume(_parquet(spark, table, paths))),
            "lakelet": Turn(partial(ours, "table")),
            "parquet sum": Turn(lambda _: _sum(_parquet(spark, table, paths))),
            "lakelet sum": Turn(lambda _: _sum(ls.table(spark, f"{folder}/table", PLAIN))),
            **{f"deleted {share}": Turn(partial(ours, str(share))) for share in shares},
        }
        found = take_turns(rounds, turns)
        assert ls.table(spark, f"{folder}/table", PLAIN).count() == rows
        for share in shares:
            assert ls.table(spark, f"{folder}/{share}", PLAIN).count() == rows - gone[share]
    return found


def many_files(folder: str, files: int, rounds: int) -> dict[str, Any]:
    """Planning a table of many files, from opening it to Spark's physical plan, and reading it after that."""
    table = make_many_files(f"{folder}/table", files)
    paths = paths_of(f"{folder}/table", table)
    with session(folder) as spark:
        turns = {
            "parquet plan": Turn(lambda _: _planned(_parquet(spark, table, paths))),
            "lakelet plan": Turn(lambda _: _planned(ls.table(spark, f"{folder}/table", MANY))),
            "parquet": Turn(lambda _: consume(_parquet(spark, table, paths))),
            "lakelet": Turn(lambda _: consume(ls.table(spark, f"{folder}/table", MANY))),
        }
        return take_turns(rounds, turns, warm_up=1)


def merge_scan(folder: str, merged: str, rounds: int) -> dict[str, Any]:
    """A primary-key table of several runs; Spark reads the merged rows as bare files."""
    table = _open(folder, KEYED)
    schema = table.scan().arrow_schema
    rows = table.scan(ordered=True).to_arrow()
    make_parquet(merged, rows.to_batches(), schema, -(-rows.num_rows // FILES))
    two = ["id", "price"]
    with session(merged + "-session") as spark:

        def parquet(columns: list[str], _: int) -> None:
            consume(_parquet(spark, table, [merged]).select(*columns))

        def ours(columns: list[str] | None, _: int) -> None:
            consume(ls.table(spark, folder, KEYED, columns=columns))

        turns = {
            "parquet": Turn(partial(parquet, schema.names)),
            "lakelet": Turn(partial(ours, None)),
            "parquet two": Turn(partial(parquet, two)),
            "lakelet two": Turn(partial(ours, two)),
        }
        found = take_turns(rounds, turns, warm_up=4)
        assert ls.table(spark, folder, KEYED).count() == rows.num_rows
    return found


def _open(folder: str, name: str) -> Table:
    return lakelet.connect(folder).table(name)


def _parquet(spark: SparkSession, table: Table, paths: list[str]) -> DataFrame:
    return spark.read.schema(spark_schema(table.schema.fields)).parquet(*paths)


def _sum(frame: DataFrame) -> None:
    frame.groupBy("paid").agg(F.sum("amount"), F.max("note"), F.avg("price")).collect()


def _planned(frame: DataFrame) -> None:
    frame._jdf.queryExecution().executedPlan()


if __name__ == "__main__":
    serve(plain_scan, many_files, merge_scan)
