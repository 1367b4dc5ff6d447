"""Inserts by Spark into tables of Iceberg's own REST catalog, which the driver alone talks to."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import lakelet
import lakelet.spark as ls
from lakelet.errors import CommitUnknownError, PermissionDeniedError
from tests.conformance.conftest import iceberg_rest  # noqa: F401 - a fixture
from tests.conformance.iceberg_rest.client import RestServer

pytestmark = pytest.mark.iceberg_rest


def test_inserts_and_reads(spark: SparkSession, iceberg_rest: RestServer, tmp_path: Path) -> None:  # noqa: F811
    server, warehouse = iceberg_rest, str(tmp_path / "lake")
    properties = {"type": "rest", "uri": server.uri}
    lake = lakelet.connect(warehouse)
    lake.sql(f"CREATE CATALOG prod WITH ('type' = 'rest', 'uri' = '{server.uri}')")
    lake.sql("CREATE DATABASE prod.db")
    lake.sql("CREATE TABLE prod.db.t (id BIGINT, p BIGINT) PARTITIONED BY (p, bucket(4, id))")
    frame = spark.range(40).select("id", (F.col("id") % 2).alias("p"))

    server.fault("after", 503)
    made = ls.insert_iceberg(frame, properties, "db.t")
    assert made is not None
    assert made.added_rows == 40
    frame.where("p = 1").limit(3).write.format("lakelet-iceberg").option("warehouse", warehouse).option(
        "catalog", "prod"
    ).mode("append").save("db.t")
    ls.sql(spark, warehouse, "INSERT INTO prod.db.t SELECT 1000 AS id, 7 AS p")
    assert lake.sql("SELECT count(*), max(id) FROM prod.db.t").rows() == [(44, 1000)]
    assert ls.iceberg_table(spark, "prod", "db.t", warehouse=warehouse, where="p = 1").count() == 23
    read = spark.read.format("lakelet-iceberg").option("catalog.type", "rest").option("catalog.uri", server.uri)
    assert read.load("db.t").where("id >= 1000").collect() == [(1000, 7)]
    made = ls.insert_iceberg(frame.where("id < 2"), "prod", "db.t", "overwrite_partitions", warehouse=warehouse)
    assert made is not None
    assert lake.catalogs.open("prod").table("db.t").snapshot_id() == made.id

    count = lake.sql("SELECT count(*) FROM prod.db.t").rows()
    files = sorted(server.folder.rglob("*.parquet"))
    server.fault("before", 403)
    with pytest.raises(PermissionDeniedError, match=r"table prod\.db\.t: FaultException"):
        ls.insert_iceberg(frame, "prod", "db.t", warehouse=warehouse)
    assert sorted(server.folder.rglob("*.parquet")) == files, "nothing is left of a refused commit"
    server.fault("later", 503)
    with pytest.raises(CommitUnknownError):
        ls.insert_iceberg(frame.limit(1), "prod", "db.t", warehouse=warehouse)
    assert lake.sql("SELECT count(*) FROM prod.db.t").rows() == count
    server.release()
    assert lake.sql("SELECT count(*) FROM prod.db.t").rows() == [(count[0][0] + 1,)]
