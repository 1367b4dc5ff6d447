"""Quote identifiers for Spark SQL and column expressions, whatever characters they contain."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F


def quoted(name: str) -> str:
    """The identifier in backquotes."""
    return "`" + name.replace("`", "``") + "`"


def column_named(name: str) -> Column:
    """The column of exactly that name."""
    return F.col(quoted(name))
