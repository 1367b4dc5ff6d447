"""What Spark reads beside what a scan reads: the same rows, however often each."""

from collections import Counter
from contextlib import redirect_stdout
from io import StringIO
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import lakelet.spark.read.table_frame as spark_read
from lakelet import Table
from lakelet.spark.types import spark_schema, to_spark_arrow


def counted(rows: pa.Table) -> Counter[Any]:
    """The rows as values that can be counted: NaN equals itself and -0.0 is not 0.0."""
    return Counter(_frozen(row) for row in rows.to_pylist(maps_as_pydicts=None))


def _frozen(value: Any) -> Any:
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, dict):
        return tuple((name, _frozen(inner)) for name, inner in value.items())
    if isinstance(value, (list, tuple)):
        return tuple(_frozen(inner) for inner in value)
    return value


def assert_same(expected: Counter[Any], found: Counter[Any]) -> None:
    """Fails with what is missing and what should not be there."""
    missing, wrong = expected - found, found - expected
    assert not missing, f"missing {list(missing)[:5]}; instead there are {list(wrong)[:5]}"
    assert not wrong, f"there should not be {list(wrong)[:5]}"


def assert_reads_like_scan(spark: SparkSession, warehouse: str, table: Table, **arguments: Any) -> DataFrame:
    """Reads a table both ways, with the arguments that both take; the frame, for a look at its plan."""
    scan = table.scan(**arguments)
    fields = [scan.schema.field(name) for name in scan.columns]
    frame = spark_read.table(spark, warehouse, table.name, **arguments)
    assert frame.schema == spark_schema(fields)
    assert_same(counted(to_spark_arrow(scan.to_arrow(), fields)), counted(frame.toArrow()))
    return frame


def plan_text(frame: DataFrame) -> str:
    """The physical plan, as `explain` shows it."""
    with redirect_stdout(StringIO()) as text:
        frame.explain()
    return text.getvalue()
