"""Inserts into Iceberg tables on Spark: what pyiceberg reads back, in how many files, and what is refused."""

import datetime as dt
import math
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.sorting import SortField, SortOrder
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
)
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import lakelet.spark as ls
from lakelet.errors import InvalidError, LakeletError, NotFoundError, UnavailableError
from lakelet.spark.session import settings
from tests.spark.iceberg_lakes import IcebergLake
from tests.spark.same_rows import counted
from tests.unit.iceberg.ice_tables import spec_of

pytestmark = [pytest.mark.spark]

ORDERS = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "ts", TimestampType()),
    NestedField(3, "at", TimestamptzType()),
    NestedField(4, "name", StringType()),
    NestedField(5, "amount", DecimalType(9, 2)),
    NestedField(6, "x", DoubleType()),
)
TRANSFORMS: dict[str, list[tuple[int, Transform[Any, Any], str]]] = {
    "identity": [(4, IdentityTransform(), "name")],
    "number": [(6, IdentityTransform(), "x")],
    "day": [(2, DayTransform(), "ts_day")],
    "hour of an instant": [(3, HourTransform(), "at_hour")],
    "month": [(3, MonthTransform(), "at_month")],
    "year": [(2, YearTransform(), "ts_year")],
    "bucket and truncate": [(1, BucketTransform(3), "id_bucket"), (4, TruncateTransform(2), "name_trunc")],
    "bucket of text": [(4, BucketTransform(4), "name_bucket")],
    "truncated decimal": [(5, TruncateTransform(100), "amount_trunc")],
    "void and bucket": [(4, VoidTransform(), "name_void"), (1, BucketTransform(2), "id_bucket")],
}
ROWS = 120


@pytest.fixture
def lake(tmp_path: Path) -> IcebergLake:
    return IcebergLake.new(tmp_path / "wh")


def orders(spark: SparkSession, first: int = 0, rows: int = ROWS) -> DataFrame:
    """Rows before and after 1970, with NULL, NaN, -0.0, and the text 'null'."""
    return (
        spark.range(first, first + rows, 1, 3)
        .selectExpr(
            "id",
            "IF(id % 11 = 0, NULL, timestamp_ntz'1969-12-30 23:00:00' + make_interval(0, 0, 0, 0, INT(id % 5) * 13)) AS ts",
            "timestamp_micros((id % 7 - 3) * 3599999999) AS at",
            "element_at(array(NULL, 'null', '', 'ä/b=c %', '日本語', 'abc'), INT(id % 6) + 1) AS name",
            "CAST(id % 9 - 4 AS DECIMAL(9, 2)) / 3 AS amount",
            "CASE id % 4 WHEN 0 THEN double('NaN') WHEN 1 THEN -0.0D WHEN 2 THEN NULL ELSE id / 2 END AS x",
        )
        .withColumn("amount", F.col("amount").cast("decimal(9, 2)"))
    )


def expected(frame: DataFrame) -> Counter[Any]:
    """The rows as pyiceberg gives them."""
    with settings(frame.sparkSession, {"spark.sql.session.timeZone": "UTC"}):
        return counted(frame.toArrow())


@pytest.mark.sampled(at_most=3)
@pytest.mark.parametrize("name", TRANSFORMS)
def test_every_transform_and_mode(spark: SparkSession, lake: IcebergLake, name: str) -> None:
    table = lake.create(ORDERS, spec_of(*TRANSFORMS[name]))
    rows = orders(spark)
    with settings(spark, {"spark.sql.session.timeZone": "America/Sao_Paulo"}):
        made = ls.insert_iceberg(rows, "iceberg", "db.t", warehouse=lake.location)
    assert made is not None
    assert (made.operation, made.added_rows) == ("append", ROWS)
    assert lake.rows() == expected(rows)
    wanted = Counter(_partition(table, row) for row in _plain(rows))
    assert {repr(key): count for key, count in lake.partitions().items()} == wanted
    # Rows of a partition meet in one task, unlike those that are written where they stand.
    assert made.added_files == len(wanted)
    more = orders(spark, ROWS, 40)
    ls.insert_iceberg(more, "iceberg", "db.t", warehouse=lake.location, options={"write.distribution-mode": "none"})
    assert lake.rows() == expected(rows) + expected(more)
    one = orders(spark, 1000, 3)
    replaced = ls.insert_iceberg(one, "iceberg", "db.t", "overwrite_partitions", warehouse=lake.location)
    assert replaced is not None
    assert replaced.operation == "overwrite"
    touched = {_partition(table, row) for row in _plain(one)}
    kept = [row for row in (*_plain(rows), *_plain(more)) if _partition(table, row) not in touched]
    assert sum(lake.rows().values()) == len(kept) + 3
    assert len(lake.table().snapshots()) == 3
    ls.insert_iceberg(one, "iceberg", "db.t", "overwrite", warehouse=lake.location)
    assert lake.rows() == expected(one)
    assert lake.unlisted() == set()


def _plain(frame: DataFrame) -> list[dict[str, Any]]:
    with settings(frame.sparkSession, {"spark.sql.session.timeZone": "UTC"}):
        return list(frame.toArrow().to_pylist())


def _partition(table: Table, row: dict[str, Any]) -> str:
    """The partition of a row by pyiceberg's transforms, as text: NaN equals itself there."""
    found = []
    for field in table.spec().fields:
        source = table.schema().find_field(field.source_id)
        value = row[source.name]
        if isinstance(value, dt.datetime):
            value = (value - dt.datetime(1970, 1, 1, tzinfo=value.tzinfo)) // dt.timedelta(microseconds=1)
        found.append(field.transform.transform(source.field_type)(value))
    return repr(tuple(found))


@pytest.mark.parametrize("mode", ["none", "hash", "range"])
@pytest.mark.parametrize("parallelism", [None, 2])
def test_distribution_and_parallelism(
    spark: SparkSession, lake: IcebergLake, mode: str, parallelism: int | None
) -> None:
    order = SortOrder(SortField(1, IdentityTransform()))
    lake.create(ORDERS, spec_of((4, IdentityTransform(), "name")), sort_order=order)
    frame = orders(spark).repartition(3)
    made = ls.insert_iceberg(
        frame,
        "iceberg",
        "db.t",
        warehouse=lake.location,
        options={"write.distribution-mode": mode},
        parallelism=parallelism,
    )
    assert made is not None
    assert lake.rows() == expected(orders(spark))
    if mode == "none":
        assert made.added_files == 6 * (parallelism or 3)
    else:
        assert 6 <= made.added_files <= (6 if mode == "hash" else 12)
    for task in lake.table().scan().plan_files():
        ids = lake.table().scan(row_filter="id >= 0").to_arrow().column("id")
        assert len(ids) == ROWS, task


def test_types_of_all_kinds(spark: SparkSession, lake: IcebergLake) -> None:
    inner = StructType(NestedField(20, "t.x", TimeType()), NestedField(21, "u", UUIDType()))
    schema = Schema(
        NestedField(1, "b", BooleanType()),
        NestedField(2, "i", IntegerType()),
        NestedField(3, "d", DateType()),
        NestedField(4, "t", TimeType()),
        NestedField(5, "u", UUIDType()),
        NestedField(6, "f", FixedType(3)),
        NestedField(7, "by", BinaryType()),
        NestedField(8, "a.b c", StringType()),
        NestedField(9, "l", ListType(30, inner, element_required=False)),
        NestedField(10, "m", MapType(31, StringType(), 32, TimeType(), value_required=False)),
        NestedField(11, "big", DecimalType(38, 10)),
    )
    lake.create(
        schema,
        spec_of((5, BucketTransform(4), "u_b"), (4, IdentityTransform(), "t"), (11, BucketTransform(3), "big_b")),
    )
    rows = [
        (
            True, 7, dt.date(1960, 2, 29), 86_399_999_999, "550e8400-e29b-41d4-a716-446655440000", bytearray(b"abc"),
            bytearray(b"\x00\xff"), "ünï", [(1, "f79c3e09-677c-4bbd-a479-3f349cb785e7"), None, (None, None)],
            {"k": 5, "": None}, Decimal("-12345678901234567890.0123456789"),
        ),
        (None,) * 11,
    ]  # fmt: skip
    spelled = (
        "b boolean, i bigint, d date, t bigint, u string, f binary, `by` binary, `a.b c` string, "
        "l array<struct<`t.x`: bigint, u: string>>, m map<string, bigint>, big decimal(38, 10)"
    )
    frame = spark.createDataFrame(rows, spelled)
    made = ls.insert_iceberg(frame, "iceberg", "db.t", warehouse=lake.location)
    assert made is not None
    assert made.added_rows == 2
    read = ls.iceberg_table(spark, "iceberg", "db.t", warehouse=lake.location)
    assert read.columns == frame.columns
    assert sorted(map(repr, read.collect())) == sorted(map(repr, frame.collect()))
    assert read.schema["t"].dataType.simpleString() == "bigint"
    with pytest.raises(InvalidError, match=r"'t' is a time.*found 86400000000"):
        ls.insert_iceberg(frame.withColumn("t", F.lit(86_400_000_000)), "iceberg", "db.t", warehouse=lake.location)
    with pytest.raises(InvalidError, match=r"u|uuid"):
        ls.insert_iceberg(frame.withColumn("u", F.lit("no uuid")), "iceberg", "db.t", warehouse=lake.location)
    assert lake.unlisted() == set()


def test_a_static_partition(spark: SparkSession, lake: IcebergLake) -> None:
    lake.create(ORDERS, spec_of((4, IdentityTransform(), "name"), (1, BucketTransform(2), "id_bucket")))
    ls.insert_iceberg(orders(spark), "iceberg", "db.t", warehouse=lake.location)
    new = orders(spark, 500, 4).drop("name")
    made = ls.insert_iceberg(new, "iceberg", "db.t", "overwrite", {"name": "abc"}, warehouse=lake.location)
    assert made is not None
    names = Counter(row["name"] for row in lake.table().scan().to_arrow().to_pylist())
    assert names == Counter({None: 20, "null": 20, "": 20, "ä/b=c %": 20, "日本語": 20, "abc": 4})
    for partition, match in (({"id_bucket": 1}, "id_bucket"), ({"id": 1}, "id"), ({"nope": 1}, "nope")):
        with pytest.raises(InvalidError, match=match):
            ls.insert_iceberg(new, "iceberg", "db.t", "overwrite", partition, warehouse=lake.location)
    with pytest.raises(InvalidError):
        ls.insert_iceberg(orders(spark, 1, 3), "iceberg", "db.t", "overwrite", {"name": "abc"}, warehouse=lake.location)
    assert lake.unlisted() == set()


def test_a_branch_and_an_empty_frame(spark: SparkSession, lake: IcebergLake) -> None:
    table = lake.create(ORDERS)
    assert ls.insert_iceberg(orders(spark, 0, 0), "iceberg", "db.t", warehouse=lake.location) is None
    first = ls.insert_iceberg(orders(spark, 0, 5), "iceberg", "db.t", warehouse=lake.location)
    assert first is not None
    table.refresh().manage_snapshots().create_branch(first.id, "dev").commit()
    ls.insert_iceberg(orders(spark, 5, 5), "iceberg", "db.t", branch="dev", warehouse=lake.location)
    assert sum(lake.rows().values()) == 5
    assert ls.iceberg_table(spark, "iceberg", "db.t", branch="dev", warehouse=lake.location).count() == 10
    emptied = ls.insert_iceberg(orders(spark, 0, 0), "iceberg", "db.t", "overwrite", warehouse=lake.location)
    assert emptied is not None
    assert sum(lake.rows().values()) == 0


def test_a_commit_id_is_applied_once(spark: SparkSession, lake: IcebergLake) -> None:
    lake.create(ORDERS)
    made = [
        ls.insert_iceberg(orders(spark, 0, 5), "iceberg", "db.t", commit_id="job-1", warehouse=lake.location)
        for _ in range(2)
    ]
    assert made[0] is not None
    assert made[1] is not None
    assert made[0].id == made[1].id
    assert sum(lake.rows().values()) == 5


def test_catalogs_by_properties_and_by_configuration(
    spark: SparkSession, lake: IcebergLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.create(ORDERS)
    properties = {
        "type": "sql",
        "uri": f"sqlite:///{lake.location}/iceberg/catalog.db",
        "warehouse": f"file://{lake.location}/iceberg",
        "name": "iceberg",
    }
    ls.insert_iceberg(orders(spark, 0, 5), properties, "db.t")
    assert sum(lake.rows().values()) == 5
    with pytest.raises(InvalidError, match="warehouse="):
        ls.insert_iceberg(orders(spark), properties, "db.t", warehouse=lake.location)
    with pytest.raises(InvalidError, match="no properties"):
        ls.insert_iceberg(orders(spark), {}, "db.t")
    with pytest.raises(NotFoundError, match="nowhere"):
        ls.insert_iceberg(orders(spark), "nowhere", "db.t", warehouse=lake.location)
    with pytest.raises(LakeletError):
        ls.insert_iceberg(orders(spark), "unheard-of", "db.t")
    with pytest.raises(UnavailableError):
        ls.insert_iceberg(orders(spark), {**properties, "uri": "sqlite:////nowhere/at/all.db"}, "db.t")


def test_what_does_not_fit_is_told_before_any_task(spark: SparkSession, lake: IcebergLake) -> None:
    lake.create(ORDERS)
    rows = orders(spark, 0, 5)

    def refused(frame: DataFrame, match: str, **more: Any) -> None:
        with pytest.raises(InvalidError, match=match) as caught:
            ls.insert_iceberg(frame, "iceberg", "db.t", warehouse=lake.location, **more)
        assert len(str(caught.value)) < 600

    refused(rows.drop("id"), "'id'")
    refused(rows.withColumn("extra", F.lit(1)), "'extra'")
    refused(rows.withColumn("ts", F.lit("2024-01-01")), "'ts'")
    refused(rows.withColumn("ts", F.col("at")), "ts")
    refused(rows.withColumn("ID", F.col("id")).select("*", F.col("id").alias("Id")), "id")
    refused(rows, "distribution-mode", options={"write.distribution-mode": "sideways"})
    refused(rows, "'compression'", options={"compression": "x"})
    refused(rows, "mode 'upsert'", mode="upsert")
    refused(rows, "partition= goes with", partition={"name": "x"})
    refused(rows, "parallelism", parallelism=0)
    with pytest.raises(NotFoundError, match=r"db\.none"):
        ls.insert_iceberg(rows, "iceberg", "db.none", warehouse=lake.location)
    nulls = spark.range(6).selectExpr("IF(id % 2 = 0, NULL, id) AS id", "string(id) AS name")
    with pytest.raises(InvalidError, match=r"3 rows with NULL in a column that is NOT NULL \(id\)"):
        ls.insert_iceberg(nulls, "iceberg", "db.t", warehouse=lake.location)
    no_text = spark.range(2).selectExpr("id", "CAST(X'ff' AS STRING) AS name")
    with pytest.raises(InvalidError, match="'name' holds bytes that are no text"):
        ls.insert_iceberg(no_text, "iceberg", "db.t", warehouse=lake.location)
    assert lake.rows() == Counter()
    assert lake.unlisted() == set()


def test_small_numbers_go_where_they_fit(spark: SparkSession, lake: IcebergLake) -> None:
    lake.create(
        Schema(NestedField(1, "i", IntegerType()), NestedField(2, "x", DoubleType())),
        spec_of((1, BucketTransform(4), "b")),
    )
    frame = spark.range(0, 50, 1, 4).selectExpr("id AS I", "float(id) AS x")
    made = ls.insert_iceberg(frame, "iceberg", "db.t", warehouse=lake.location)
    assert made is not None
    assert made.added_files == 4
    with pytest.raises(InvalidError, match="'i'"):
        ls.insert_iceberg(spark.sql("SELECT 3000000000 AS i"), "iceberg", "db.t", warehouse=lake.location)
    assert math.fsum(row["x"] for row in lake.table().scan().to_arrow().to_pylist()) == sum(range(50))
    assert lake.unlisted() == set()
