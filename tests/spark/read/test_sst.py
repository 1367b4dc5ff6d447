"""Tables with SST files on Spark: splits that are merged, splits that are not, and files beside Parquet ones."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import lakelet
from lakelet import Table
from lakelet.spark.write.table_write import write
from tests.spark.same_rows import assert_reads_like_scan

pytestmark = [pytest.mark.spark]


def _rows(first: int, last: int, version: int) -> pa.Table:
    ids = list(range(first, last))
    tags = [None if number % 5 == 0 else {"a": number, "b": [f"{version}", None]} for number in ids]
    return pa.table({"id": ids, "v": [f"{version}-{number}" for number in ids], "tags": tags})


def _formats(table: Table) -> set[tuple[int, str]]:
    return {(file.level, file.name.rsplit(".", 1)[1]) for _, file in table.files()}


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_sst_files_beside_parquet_ones(spark: SparkSession, tmp_path: Path, vectors: str) -> None:
    lake = lakelet.connect(str(tmp_path))
    lake.create_database("d")
    options = {"bucket": "2", "file.format.per.level": "0:sst", "deletion-vectors.enabled": vectors, "num-levels": "6"}
    columns = [("id", "BIGINT"), ("v", "STRING"), ("tags", "ROW<a INT, b ARRAY<STRING>>")]
    table = lake.create_table("d.t", columns, primary_key=["id"], options=options)
    for version, (first, last) in enumerate([(0, 300), (200, 400)]):
        table.write(_rows(first, last, version))
        assert_reads_like_scan(spark, str(tmp_path), table)
    table.compact(full=True)
    assert {ending for _, ending in _formats(table)} == {"parquet"}
    table.set_options({"file.format": "sst", "file.format.per.level": "5:sst"})
    table.write(_rows(100, 150, 3))
    table.delete(where="id < 20")
    assert {"parquet", "sst"} <= {ending for _, ending in _formats(table)}
    assert_reads_like_scan(spark, str(tmp_path), table)
    assert_reads_like_scan(spark, str(tmp_path), table, columns=["id"], where="id between 90 and 130")
    table.set_options({"compaction.force-rewrite-all-files": "true"})
    table.compact(full=True)
    # One run without deletes: rows of these splits are read as they are.
    assert _formats(table) == {(5, "sst")}
    table.rename_column("v", "label")
    assert_reads_like_scan(spark, str(tmp_path), table)
    assert_reads_like_scan(spark, str(tmp_path), table, columns=["tags", "label"], where="id >= 390")


def test_executors_write_sst_files(spark: SparkSession, tmp_path: Path) -> None:
    lake = lakelet.connect(str(tmp_path))
    lake.create_database("d")
    options = {"bucket": "2", "file.format": "sst"}
    table = lake.create_table("d.t", [("id", "BIGINT"), ("v", "STRING")], primary_key=["id"], options=options)
    frame = spark.range(500).selectExpr("id", "concat('v', id) AS v")
    write(frame, str(tmp_path), "d.t")
    write(frame.where("id < 100").selectExpr("id", "'new' AS v"), str(tmp_path), "d.t")
    assert {ending for _, ending in _formats(table)} == {"sst"}
    found = table.scan().to_arrow().to_pylist()
    assert len(found) == 500
    assert sum(row["v"] == "new" for row in found) == 100
    assert table.check().damages == ()
    assert_reads_like_scan(spark, str(tmp_path), table)
