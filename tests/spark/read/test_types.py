"""What a task yields is what Spark shows: every table type there and back through a real session."""

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from lakelet.model.arrow.arrow_types import arrow_schema
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field
from lakelet.spark.session import settings
from lakelet.spark.types import arrow_of_spark, from_spark_arrow, spark_schema, to_spark_arrow

pytestmark = [pytest.mark.spark]

TYPES = {
    "o": "BOOLEAN",
    "i1": "TINYINT",
    "i2": "SMALLINT",
    "i4": "INT NOT NULL",
    "i8": "BIGINT",
    "f": "FLOAT",
    "d": "DOUBLE",
    "m": "DECIMAL(38, 10)",
    "c": "CHAR(2)",
    "s": "STRING",
    "b": "BYTES",
    "day": "DATE",
    "t": "TIME(3)",
    "n3": "TIMESTAMP(3)",
    "n9": "TIMESTAMP(9)",
    "z6": "TIMESTAMP(6) WITH LOCAL TIME ZONE",
    "r": "ROW<`t` TIME(3), `a` ARRAY<TIMESTAMP(9) NOT NULL>, `m` MAP<STRING, TIME(3)>>",
    "u": "MULTISET<STRING>",
}


@pytest.mark.sampled(at_most=1)
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_every_type_passes_through_spark_unchanged(spark: SparkSession, zone: str) -> None:
    columns = [Field(index, name, parse_type(text)) for index, (name, text) in enumerate(TYPES.items())]
    before = dt.datetime(1969, 12, 31, 23, 59, 59, 999000)
    full = {
        "o": True,
        "i1": -128,
        "i2": -1,
        "i4": 7,
        "i8": 2**63 - 1,
        "f": 0.5,
        "d": -0.0,
        "m": Decimal("-1234567890123456789012345678.0123456789"),
        "c": "é",
        "s": "",
        "b": b"\x00\xff",
        "day": dt.date(1, 1, 1),
        "t": dt.time(23, 59, 59, 999000),
        "n3": before,
        "n9": before,
        "z6": before.replace(tzinfo=dt.UTC),
        "r": {"t": dt.time(1), "a": [before], "m": [("k", dt.time(2)), ("l", None)]},
        "u": [("x", 2)],
    }
    rows = [full, {**dict.fromkeys(TYPES), "i4": 1}]
    table = pa.Table.from_pylist(rows, schema=arrow_schema(columns))
    batches = to_spark_arrow(table, columns).to_batches()

    def given(_: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    def received(sent: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in sent:
            taken = from_spark_arrow(batch, columns)
            yield pa.RecordBatch.from_arrays([pa.array([str(taken.schema.field("t").type)])], names=["t"])

    with settings(spark, {"spark.sql.session.timeZone": zone}):
        frame = spark.range(0, 1, 1, 1).mapInArrow(given, spark_schema(columns))
        assert frame.schema == spark_schema(columns)
        found = frame.toArrow()
        kinds = frame.mapInArrow(received, "t string").collect()
    assert to_spark_arrow(found, columns).to_pylist() == pa.Table.from_batches(batches).to_pylist()
    assert found.cast(arrow_of_spark(columns)).schema.equals(arrow_of_spark(columns))
    assert [tuple(kind) for kind in kinds] == [("time32[ms]",)]
