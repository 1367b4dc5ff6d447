"""Writing and reading a bucket: executors go through our storage, for there is no Hadoop client on the class path."""

import io
from contextlib import redirect_stdout
from decimal import Decimal

import pytest
from pyspark.sql import SparkSession

import lakelet
from lakelet.errors import LakeletError
from lakelet.spark.read.table_frame import table as read_table
from lakelet.spark.write.table_write import write
from tests.services.server import S3Service

pytestmark = [pytest.mark.spark]
SCHEMA = "id bigint, dt string, amount decimal(10, 2)"


def test_rows_go_into_a_bucket_and_come_back(spark: SparkSession, s3_minio: S3Service) -> None:
    warehouse = f"s3://{s3_minio.bucket}/spark-warehouse"
    lake = lakelet.connect(warehouse, s3_minio.options)
    lake.create_database("shop")
    columns = [("id", "BIGINT NOT NULL"), ("dt", "STRING NOT NULL"), ("amount", "DECIMAL(10, 2)")]
    table = lake.create_table(
        "shop.orders", columns, primary_key=["id", "dt"], partitioned_by=["dt"], options={"bucket": 2}
    )
    rows = [(n, f"d{n % 2}", Decimal(n)) for n in range(40)]
    write(spark.createDataFrame(rows, SCHEMA), warehouse, "shop.orders", options=s3_minio.options)
    changed = [(n, f"d{n % 2}", Decimal(n + 100)) for n in range(5)]
    write(spark.createDataFrame(changed, SCHEMA), warehouse, "shop.orders", options=s3_minio.options)
    expected = {(n, f"d{n % 2}"): Decimal(n + 100 if n < 5 else n) for n in range(40)}
    frame = read_table(spark, warehouse, "shop.orders", options=s3_minio.options)
    assert {(row.id, row.dt): row.amount for row in frame.collect()} == expected
    assert table.scan().count() == len(expected)
    shown = io.StringIO()
    with redirect_stdout(shown):
        frame.explain(extended=True)
    plan = shown.getvalue()
    assert "MapInArrow" in plan
    assert s3_minio.options["s3.secret-key"] not in plan
    assert s3_minio.options["s3.access-key"] not in plan


def test_a_wrong_secret_is_one_clear_error_that_does_not_tell_it(spark: SparkSession, s3_minio: S3Service) -> None:
    options = {**s3_minio.options, "s3.secret-key": "not-the-secret-at-all"}
    with pytest.raises(LakeletError) as error:
        write(
            spark.createDataFrame([(1, "d", None)], SCHEMA), f"s3://{s3_minio.bucket}/w", "shop.orders", options=options
        )
    assert "not-the-secret-at-all" not in str(error.value)
