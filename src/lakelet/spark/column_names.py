"""Names as Spark's SQL and expressions take them, whatever characters they have."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F


def quoted(name: str) -> str:
    """An identifier as Spark's SQL takes any."""
    return "`" + name.replace("`", "``") + "`"


def column_named(name: str) -> Column:
    """The column of exactly that name."""
    return F.col(quoted(name))
