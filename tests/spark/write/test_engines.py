"""Tables whose engines fold rows: written, read, compacted and refused on Spark."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import lakelet
from lakelet.sink.rows.refused_rows import RefusedRowsError
from lakelet.spark.jobs.compact import compact
from lakelet.spark.read.table_frame import table as read
from lakelet.spark.write.table_write import write

COLUMNS = [("id", "BIGINT NOT NULL"), ("n", "BIGINT"), ("t", "STRING")]


@pytest.fixture
def lake(tmp_path: Path) -> lakelet.Lake:
    lake = lakelet.connect(str(tmp_path / "wh"))
    lake.create_database("d")
    return lake


def test_all_rows_of_a_key_are_aggregated(spark: SparkSession, lake: lakelet.Lake) -> None:
    options = {"bucket": "2", "merge-engine": "aggregation", "write-only": "true"}
    functions = {"fields.n.aggregate-function": "sum", "fields.t.aggregate-function": "max"}
    lake.create_table("d.t", COLUMNS, primary_key=["id"], options={**options, **functions})
    frame = spark.range(0, 300, numPartitions=3).selectExpr("id % 10 AS id", "id AS n", "string(id) AS t")
    expected = {key: (sum(range(key, 300, 10)), max(map(str, range(key, 300, 10)))) for key in range(10)}
    for turn in (1, 2):
        write(frame, lake.location, "d.t")
        found = {row.id: (row.n, row.t) for row in read(spark, lake.location, "d.t").collect()}
        assert found == {key: (turn * total, text) for key, (total, text) in expected.items()}
    assert compact(spark, lake.location, "d.t", full=True) is not None
    found = {row.id: (row.n, row.t) for row in read(spark, lake.location, "d.t").collect()}
    assert found == {key: (2 * total, text) for key, (total, text) in expected.items()}
    assert read(spark, lake.location, "d.t").where("n > 9000").count() == sum(
        2 * total > 9000 for total, _ in expected.values()
    )


def test_rows_whose_order_decides_are_refused_and_updates_keep_columns(spark: SparkSession, lake: lakelet.Lake) -> None:
    options = {"bucket": "2", "merge-engine": "partial-update"}
    table = lake.create_table("d.t", COLUMNS, primary_key=["id"], options=options)
    write(spark.createDataFrame([(1, 5, "a"), (2, 6, None)], "id bigint, n bigint, t string"), lake.location, "d.t")
    write(spark.createDataFrame([(1, "b"), (2, "c")], "id bigint, t string"), lake.location, "d.t")
    twice = spark.createDataFrame([(1, 7), (1, 8)], "id bigint, n bigint")
    with pytest.raises(RefusedRowsError, match="with the primary key of another row"):
        write(twice, lake.location, "d.t")
    assert sorted(map(tuple, read(spark, lake.location, "d.t").collect())) == [(1, 5, "b"), (2, 6, "c")]
    write(twice, lake.location, "d.t", on_duplicate="any")
    assert table.get({"id": 1}, columns=["t"]) == {"t": "b"}
    lake.sql("MERGE INTO d.t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = 1")
    assert sorted(map(tuple, read(spark, lake.location, "d.t").collect())) == [(1, 1, "b"), (2, 6, "c")]
