"""Tables of every bucket mode for tests of the sink, the batches that go into them, and files that a stream reads."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import lakelet
import lakelet.spark as ls
from lakelet import Table

COLUMNS = [("id", "BIGINT NOT NULL"), ("dt", "STRING NOT NULL"), ("v", "BIGINT"), ("note", "STRING")]
SCHEMA = "id bigint, dt string, v bigint, note string"
Row = dict[str, Any]

MODES: dict[str, dict[str, Any]] = {
    "append": {"partitioned_by": ["dt"]},
    "append-buckets": {"options": {"bucket": "2", "bucket-key": "id"}},
    "fixed": {"primary_key": ["id", "dt"], "partitioned_by": ["dt"], "options": {"bucket": "2"}},
    "dynamic": {"primary_key": ["id"], "options": {"bucket": "-1"}},
    "crossing": {"primary_key": ["id"], "partitioned_by": ["dt"], "options": {"bucket": "-1"}},
    "postpone": {"primary_key": ["id", "dt"], "partitioned_by": ["dt"], "options": {"bucket": "-2"}},
    "vectors": {"primary_key": ["id"], "options": {"bucket": "2", "deletion-vectors.enabled": "true"}},
}


def make_table(lake: lakelet.Lake, mode: str, name: str = "shop.orders") -> Table:
    """An empty table of a bucket mode."""
    return lake.create_table(name, COLUMNS, **MODES[mode])


def rows_of(batch: int, count: int = 10) -> list[Row]:
    """The rows of a batch; half of the keys are those of the batch before."""
    first = batch * count // 2
    return [
        {"id": n, "dt": f"d{n % 2}", "v": batch * 1000 + n, "note": None if n % 3 else f"n{n}"}
        for n in range(first, first + count)
    ]


def merged(batches: list[list[Row]], *, keyed: bool) -> list[Row]:
    """The rows that a table has after these batches."""
    if not keyed:
        return ordered([row for batch in batches for row in batch])
    return ordered(list({row["id"]: row for batch in batches for row in batch}.values()))


def ordered(rows: list[Row]) -> list[Row]:
    """Rows in an order of their own."""
    return sorted(rows, key=lambda row: tuple((value is None, value) for value in row.values()))


def stored(table: Table) -> list[Row]:
    """The rows of a table, in that order; postponed ones get their buckets first."""
    if table.options.get("bucket") == "-2":
        table.compact()
    return ordered(table.scan().to_arrow().to_pylist())


def add_file(folder: Path, number: int, rows: list[Row]) -> None:
    """A file of rows that a stream takes as one batch (maxFilesPerTrigger = 1)."""
    folder.mkdir(exist_ok=True)
    pq.write_table(
        pa.Table.from_pylist(rows, pa.schema([("id", "int64"), ("dt", "string"), ("v", "int64"), ("note", "string")])),
        folder / f"part-{number:04}.parquet",
    )


def file_stream(spark: SparkSession, folder: Path, per_batch: int = 1) -> DataFrame:
    """The files of a folder as a stream, so many each batch."""
    folder.mkdir(exist_ok=True)
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", per_batch).parquet(str(folder))


def run(start: Callable[[], StreamingQuery]) -> StreamingQuery:
    """A query that has ended, with its failure raised."""
    query = start()
    query.awaitTermination()
    return query


def two_tables(stream: DataFrame, arguments: dict[str, Any]) -> StreamingQuery:
    """A query into `shop.first` and, the rows with an odd id alone, `shop.second`."""
    return ls.write_stream(
        stream,
        arguments["warehouse"],
        {"shop.first": None, "shop.second": lambda batch: batch.where("id % 2 = 1")},
        checkpoint=arguments["checkpoint"],
        mode="append",
        driver_rows=arguments["driver_rows"],
        commit_user=arguments.get("commit_user"),
        compact_every=2,
    )
