"""`SET execution.engine = 'spark'`: run the query of an INSERT into an Iceberg table on the active Spark session.

The text of the query reaches Spark unchanged, with tables of the lake resolved as in `ls.sql`. Frames of the calling code
are not visible to Spark, and parameters are bound by name only.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from lakelet.errors import InvalidError
from lakelet.iceberg.schema.column_types import identity_columns, model_schema
from lakelet.spark.iceberg.insert import IcebergInsert
from lakelet.spark.iceberg.types import spark_columns
from lakelet.spark.sql.statement import query
from lakelet.spark.write.matched_columns import literal
from lakelet.sql.engine.execution import EngineInsert
from lakelet.table.write.table_commit import partition_spec


def insert_rows_of_query(insert: EngineInsert) -> tuple[int | None, int]:
    """Runs the query and inserts its rows; returns the snapshot (None where none was needed) and the number of rows."""
    spark = SparkSession.getActiveSession()
    if spark is None:
        raise InvalidError("setting 'execution.engine' is 'spark', and no Spark session is active")
    location = insert.lake.location
    if location.startswith("memory:"):
        raise InvalidError(f"{location}: Spark's executors cannot reach the memory of this process")
    if insert.params:
        raise InvalidError("parameters are not handed on to Spark: write the values into the query")
    catalog, database, table = insert.table
    found = insert.lake.catalogs.open(catalog).table(f"{database}.{table}")
    rows = _rows(spark, insert)
    schema = replace(spark_columns(model_schema(found)), partition_keys=identity_columns(found))
    fixed = partition_spec(insert.fixed or {}, schema)
    if not insert.by_name:
        left = tuple(name for name in schema.names if name not in fixed)
        rows = _named(rows, insert.columns or left)
    for name, value in fixed.items():
        rows = rows.withColumn(name, literal(value, schema.field(name)))
    made = IcebergInsert(found, insert.mode, insert.partition, insert.branch, None, {}).run(rows)
    return (None, 0) if made is None else (made.id, made.added_rows)


def _rows(spark: SparkSession, insert: EngineInsert) -> DataFrame:
    try:
        return query(spark, insert.lake, insert.query)
    except AnalysisException as error:
        reason = next((line for line in str(error).splitlines() if line.strip()), "no reason given")
        raise InvalidError(f"Spark does not understand the query: {reason}") from None


def _named(rows: DataFrame, names: tuple[str, ...]) -> DataFrame:
    if len(names) != len(rows.columns):
        raise InvalidError(
            f"INSERT: the query gives {len(rows.columns)} columns, expected {len(names)}: {', '.join(names)}"
        )
    return rows.toDF(*names)
