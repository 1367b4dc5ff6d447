"""Register the tables of a database as temporary views of a session, for Spark's own SQL.

    views(spark, "./warehouse", "shop")
    spark.sql("SELECT count(*) FROM orders")

A view is named like its table, for Spark knows no database of ours and a temporary view has none. It replaces a
temporary view of that name and shows the current snapshot: calling `views` again refreshes all of them.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping

from pyspark.sql import SparkSession

from lakelet.errors import InvalidError, LakeletError
from lakelet.spark.column_names import quoted
from lakelet.spark.opened_lake import open_lake
from lakelet.spark.read.table_frame import table

_LOG = logging.getLogger(__name__)


def views(
    spark: SparkSession,
    warehouse: str | os.PathLike[str],
    database: str,
    options: Mapping[str, str] | None = None,
) -> list[str]:
    """Creates a temporary view of every table and returns their names.

    A table that cannot be read is left out with a warning that names it; InvalidError where that leaves none.
    """
    made: list[str] = []
    failed: list[str] = []
    for name in open_lake(warehouse, options).tables(database):
        try:
            if name.lower() in (other.lower() for other in made) and not _tells_case(spark):
                raise InvalidError("its name differs from another's only in case")
            frame = table(spark, warehouse, f"{database}.{name}", options=options)
        except LakeletError as error:
            failed.append(f"{database}.{name}: {error}")
            continue
        frame.createOrReplaceTempView(quoted(name))
        made.append(name)
    if failed and not made:
        raise InvalidError(f"no table of {database!r} can be read: {'; '.join(failed)}")
    for reason in failed:
        _LOG.warning("no view is made of %s", reason)
    return made


def _tells_case(spark: SparkSession) -> bool:
    return str(spark.conf.get("spark.sql.caseSensitive", "false")).lower() == "true"
