"""One rule of conversion for `write`, Spark's `write`, `insert_iceberg` and INSERT: what one takes or refuses, all do."""

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import DateType, DecimalType, DoubleType, FloatType, LongType, NestedField, TimestampType
from pyspark.sql import SparkSession

import lakelet
import lakelet.spark as ls
from lakelet.errors import LakeletError
from tests.spark.iceberg_lakes import IcebergLake

pytestmark = [pytest.mark.spark]

_KINDS = {
    "BIGINT": LongType(),
    "DOUBLE": DoubleType(),
    "FLOAT": FloatType(),
    "DECIMAL(10, 2)": DecimalType(10, 2),
    "DATE": DateType(),
    "TIMESTAMP(6)": TimestampType(),
}
# Name, type of the column, and a value as SQL that every entry takes; the value that comes out.
TAKEN = [
    ("a", "DOUBLE", "CAST(0.5 AS DECIMAL(3, 1))", 0.5),
    ("b", "DOUBLE", "CAST(0.1 AS DECIMAL(3, 1))", 0.1),
    ("c", "FLOAT", "CAST(1.5 AS DOUBLE)", 1.5),
    ("d", "BIGINT", "CAST(7 AS DOUBLE)", 7),
    ("e", "BIGINT", "CAST(7.00 AS DECIMAL(5, 2))", 7),
    ("f", "DECIMAL(10, 2)", "CAST(0.25 AS DOUBLE)", 0.25),
    ("g", "DECIMAL(10, 2)", "CAST(3 AS INT)", 3),
    ("h", "DOUBLE", "CAST(3 AS BIGINT)", 3.0),
    ("i", "TIMESTAMP(6)", "DATE '2024-01-02'", dt.datetime(2024, 1, 2)),
]
REFUSED = [
    ("BIGINT", "CAST(1.5 AS DOUBLE)"),
    ("DOUBLE", "CAST(9007199254740993 AS DECIMAL(20, 0))"),
    ("DECIMAL(10, 2)", "CAST(0.125 AS DOUBLE)"),
]


@pytest.fixture
def lake(tmp_path: Path) -> IcebergLake:
    made = IcebergLake.new(tmp_path)
    made.lake.create_database("d")
    return made


def created(lake: IcebergLake, columns: list[tuple[str, str]]) -> lakelet.Table:
    fields = [NestedField(number, name, _KINDS[kind]) for number, (name, kind) in enumerate(columns, 1)]
    lake.create(Schema(*fields))
    return lake.lake.create_table("d.t", columns)


def arrow(lake: IcebergLake, query: str) -> pa.Table:
    """The rows in the types they have in SQL."""
    return lake.lake.sql(query).to_arrow()


def test_what_every_entry_takes(spark: SparkSession, lake: IcebergLake) -> None:
    table = created(lake, [(name, kind) for name, kind, _, _ in TAKEN])
    query = f"SELECT {', '.join(f'{value} AS {name}' for name, _, value, _ in TAKEN)}"
    table.write(arrow(lake, query))
    lake.lake.sql(f"INSERT INTO d.t {query}")
    ls.write(spark.sql(query), lake.location, "d.t")
    ls.insert_iceberg(spark.sql(query), "iceberg", "db.t", warehouse=lake.location)
    expected = {name: value for name, _, _, value in TAKEN}
    rows = [*table.scan().to_arrow().to_pylist(), *lake.table().scan().to_arrow().to_pylist()]
    assert rows == [expected] * 4


def test_half_of_a_number_in_spark_goes_into_a_double(spark: SparkSession, lake: IcebergLake) -> None:
    table = created(lake, [("id", "BIGINT"), ("v", "DOUBLE")])
    frame = spark.range(3).selectExpr("id", "id * 0.5 AS v")
    ls.write(frame, lake.location, "d.t")
    ls.insert_iceberg(frame, "iceberg", "db.t", warehouse=lake.location)
    for found in (table.scan().to_arrow(), lake.table().scan().to_arrow()):
        assert sorted(found["v"].to_pylist()) == [0.0, 0.5, 1.0]


@pytest.mark.sampled(at_most=3)
@pytest.mark.parametrize(("kind", "value"), REFUSED)
def test_what_every_entry_refuses(spark: SparkSession, lake: IcebergLake, kind: str, value: str) -> None:
    table = created(lake, [("v", kind)])
    query = f"SELECT {value} AS v"
    for refused in (
        lambda: table.write(arrow(lake, query)),
        lambda: lake.lake.sql(f"INSERT INTO d.t {query}"),
        lambda: ls.write(spark.sql(query), lake.location, "d.t"),
        lambda: ls.insert_iceberg(spark.sql(query), "iceberg", "db.t", warehouse=lake.location),
    ):
        with pytest.raises(LakeletError, match="'v'"):
            refused()
    assert table.scan().count() == 0
