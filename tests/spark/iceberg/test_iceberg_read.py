"""Iceberg tables read by Spark: by function, by source, by SQL; what pyiceberg reads is what is expected."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.types import DoubleType, IntegerType, LongType, NestedField, StringType
from pyspark.sql import DataFrame, SparkSession

import lakelet.spark as ls
from lakelet.errors import InvalidError, LakeletError, NotFoundError
from tests.iceberg.delete_commits import commit_deletes, position_deletes
from tests.spark.iceberg_lakes import IcebergLake
from tests.spark.same_rows import counted
from tests.unit.iceberg.ice_tables import spec_of

pytestmark = [pytest.mark.spark]

SCHEMA = Schema(
    NestedField(1, "id", IntegerType()),
    NestedField(2, "v", StringType()),
    NestedField(3, "x", DoubleType()),
)


@pytest.fixture
def lake(tmp_path: Path) -> IcebergLake:
    made = IcebergLake.new(tmp_path / "wh")
    made.create(SCHEMA, spec_of((1, BucketTransform(2), "id_bucket")))
    return made


def rows(first: int, count: int) -> pa.Table:
    ids = range(first, first + count)
    columns: dict[str, Any] = {
        "id": pa.array(ids, pa.int32()),
        "v": [None if one % 3 == 0 else f"v{one % 5}" for one in ids],
        "x": [float("nan") if one % 4 == 0 else -0.0 if one % 4 == 1 else one / 2 for one in ids],
    }
    return pa.table(columns)


def read(spark: SparkSession, lake: IcebergLake, **more: Any) -> DataFrame:
    return ls.iceberg_table(spark, "iceberg", "db.t", warehouse=lake.location, **more)


def test_versions_columns_and_conditions(spark: SparkSession, lake: IcebergLake) -> None:
    assert read(spark, lake).collect() == []
    lake.table().append(rows(0, 20))
    first = lake.table().current_snapshot()
    assert first is not None
    lake.table().manage_snapshots().create_tag(first.snapshot_id, "one").create_branch(
        first.snapshot_id, "dev"
    ).commit()
    lake.table().append(rows(20, 20))
    pinned = read(spark, lake)
    lake.table().append(rows(40, 5))
    assert counted(pinned.toArrow()) == counted(rows(0, 40))
    for version in ({"version": first.snapshot_id}, {"tag": "one"}, {"branch": "dev"}, {"version": "one"}):
        assert counted(read(spark, lake, **version).toArrow()) == counted(rows(0, 20)), version
    assert read(spark, lake, timestamp=first.timestamp_ms).count() == 20
    found = read(spark, lake, where="x > 3 AND v = 'v1'", columns=["v", "id"])
    # NaN is the greatest number.
    expected = [(row["v"], row["id"]) for row in rows(0, 45).to_pylist() if row["v"] == "v1" and not row["x"] <= 3]
    assert sorted(found.collect()) == sorted(expected)
    assert "FileScan parquet" in plan_of(found)
    for wrong, match in (
        ({"columns": ["nope"]}, "nope"),
        ({"where": "nope = 1"}, "nope"),
        ({"version": 1, "tag": "one"}, "one version"),
        ({"columns": []}, "columns"),
    ):
        with pytest.raises(InvalidError, match=match):
            read(spark, lake, **wrong)
    with pytest.raises(NotFoundError, match="17"):
        read(spark, lake, version=17)


def plan_of(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().toString())


def test_evolved_columns_and_deleted_rows(spark: SparkSession, lake: IcebergLake) -> None:
    lake.table().append(rows(0, 10))
    with lake.table().update_schema() as change:
        change.update_column("id", LongType())
        change.rename_column("v", "v 2")
        change.delete_column("x")
    with lake.table().update_schema() as change:
        change.add_column("v", IntegerType())
    table = lake.table()
    table.append(pa.table({"id": pa.array([100], pa.int64()), "v 2": ["new"], "v": pa.array([7], pa.int32())}))
    frame = read(spark, lake)
    assert frame.columns == ["id", "v 2", "v"]
    assert dict(frame.dtypes)["id"] == "bigint"
    assert counted(frame.toArrow()) == counted(lake.table().scan().to_arrow())
    assert "MapInArrow" not in plan_of(frame)
    table = lake.table()
    file = next(iter(table.scan(row_filter="id = 5").plan_files())).file
    before = table.scan().to_arrow().num_rows
    commit_deletes(table, position_deletes(table, {file.file_path: [0, 2]}, partition=file.partition))
    merged = read(spark, lake)
    assert merged.count() == before - 2
    assert counted(merged.toArrow()) == counted(lake.table().scan().to_arrow())
    assert "MapInArrow" in plan_of(merged)
    assert "FileScan parquet" in plan_of(merged)


def test_a_file_that_has_vanished_is_an_error(spark: SparkSession, lake: IcebergLake) -> None:
    lake.table().append(rows(0, 10))
    frame = read(spark, lake)
    for task in lake.table().scan().plan_files():
        Path(task.file.file_path.removeprefix("file://")).unlink()
    with pytest.raises(Exception, match=r"FILE_NOT_EXIST|does not exist"):
        frame.collect()
    with pytest.raises(LakeletError, match="parquet"):
        read(spark, lake)


def test_the_source_reads_and_writes(spark: SparkSession, lake: IcebergLake) -> None:
    def source() -> Any:
        return spark.read.format("lakelet-iceberg").option("warehouse", lake.location)

    frame = spark.createDataFrame(rows(0, 30))

    def write(mode: str, rows: DataFrame = frame, **options: str) -> None:
        writer = rows.write.format("lakelet-iceberg").option("warehouse", lake.location)
        writer.options(**options).mode(mode).save("db.t")

    write("append")
    assert counted(source().load("db.t").toArrow()) == counted(rows(0, 30))
    assert len(lake.table().snapshots()) == 1
    assert source().option("columns", "v").option("where", "id < 3").load("db.t").count() == 3
    assert source().schema("v string, id int").load("db.t").columns == ["v", "id"]
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW ice_view USING `lakelet-iceberg` OPTIONS (warehouse '{lake.location}', table 'db.t')"
    )
    assert spark.sql("SELECT count(*) FROM ice_view").collect()[0][0] == 30
    only = spark.createDataFrame(rows(0, 1))
    write("overwrite", only, partitionOverwriteMode="dynamic", **{"commit-id": "j1"})
    write("overwrite", only, partitionOverwriteMode="dynamic", **{"commit-id": "j1"})
    kept = [row for row in rows(0, 30)["id"].to_pylist() if bucket(row) != bucket(0)]
    assert sorted(row["id"] for row in source().load("db.t").collect()) == sorted([0, *kept])
    assert len(lake.table().snapshots()) == 2
    write("overwrite", only)
    assert lake.rows() == counted(rows(0, 1))
    properties = {"catalog.uri": f"sqlite:///{lake.location}/iceberg/catalog.db", "catalog.type": "sql"}
    assert spark.read.format("lakelet-iceberg").options(**properties).load("db.t").count() == 1
    assert lake.unlisted() == set()


def bucket(number: int) -> Any:
    return BucketTransform(2).transform(IntegerType())(number)


def test_what_the_source_refuses(spark: SparkSession, lake: IcebergLake) -> None:
    lake.table().append(rows(0, 3))

    def refused(match: str, table: str = "db.t", **options: str) -> None:
        with pytest.raises(Exception, match=match):
            spark.read.format("lakelet-iceberg").options(**options).load(table)

    refused("needs the option 'catalog'")
    refused("'wharehouse'", warehouse=lake.location, wharehouse="x")
    refused("means nothing to reads", warehouse=lake.location, partitionOverwriteMode="dynamic")
    refused(r"db\.none", "db.none", warehouse=lake.location)
    frame = spark.createDataFrame(rows(0, 3)).withColumnRenamed("v", "w")
    with pytest.raises(Exception, match="w"):
        frame.write.format("lakelet-iceberg").option("warehouse", lake.location).mode("append").save("db.t")
    assert sum(lake.rows().values()) == 3
    assert lake.unlisted() == set()


def test_sql_over_three_parts(spark: SparkSession, lake: IcebergLake) -> None:
    lake.lake.create_database("shop")
    lake.lake.create_table("shop.names", [("v", "STRING"), ("name", "STRING")]).write(
        pa.table({"v": ["v1", "v2"], "name": ["one", "two"]})
    )

    def run(text: str) -> DataFrame:
        return ls.sql(spark, lake.location, text)

    made = run("INSERT INTO iceberg.db.t SELECT id, concat('v', id % 5), id / 2 FROM range(20)").collect()[0]
    assert made["rows"] == 20
    assert made["snapshot_id"] == lake.table().current_snapshot().snapshot_id  # type: ignore[union-attr]
    joined = run(
        "SELECT n.name, count(*) AS c FROM iceberg.db.t JOIN shop.names n USING (v) WHERE iceberg.db.t.id > 2 GROUP BY n.name"
    )
    assert sorted(tuple(row) for row in joined.collect()) == [("one", 3), ("two", 3)]
    run("INSERT OVERWRITE iceberg.db.t (v, id) VALUES ('only', 1)")
    assert [tuple(row) for row in run("SELECT * FROM iceberg.DB.T").collect()] == [(1, "only", None)]
    old = run(f"SELECT count(*) FROM iceberg.db.t VERSION AS OF {made['snapshot_id']}").collect()[0][0]
    assert old == 20
    with pytest.raises(NotFoundError, match=r"iceberg\.db\.nope"):
        run("SELECT * FROM iceberg.db.nope")
    with pytest.raises(InvalidError, match="is no partition column"):
        run("INSERT OVERWRITE iceberg.db.t PARTITION (id = 1) SELECT 'x', 1.0D")
    assert lake.unlisted() == set()


def test_inserts_of_lake_sql_run_on_spark(spark: SparkSession, lake: IcebergLake) -> None:
    lake.create(SCHEMA, spec_of((2, IdentityTransform(), "v")), "db.p")
    lake.lake.sql("SET execution.engine = 'spark'")
    try:
        lake.lake.sql("INSERT INTO iceberg.db.p SELECT CAST(id AS INT), concat('v', id % 2), 0.5D FROM range(10)")
        lake.lake.sql("INSERT OVERWRITE iceberg.db.p PARTITION (v = 'v1') SELECT 77, 1.0D")
        with pytest.raises(InvalidError, match="nowhere"):
            lake.lake.sql("INSERT INTO iceberg.db.p SELECT * FROM nowhere_to_be_found")
    finally:
        lake.lake.sql("SET execution.engine = 'local'")
    found = lake.table("db.p").scan().to_arrow().to_pylist()
    assert Counter(row["v"] for row in found) == {"v0": 5, "v1": 1}
    files = [task.file.file_path for task in lake.table("db.p").scan().plan_files()]
    # Names of tasks on Spark have their partition and attempt in them.
    assert all(re.search(r"-\d{5}-\d+-\d+\.parquet$", path) for path in files), files
