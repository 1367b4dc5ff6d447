"""Decide by size whether a batch is written on the driver, without running it twice: collect its first rows within a bound.

    batch ─ limit(n + 1), rows over the byte bound as NULL ─ Arrow on the driver ─┬─ at most n rows, none too wide: these are all
                                                                                  └─ more: dropped, tasks write the batch itself

A row may take the n-th part of the byte bound, so that what is collected stays within it. Where rows are wider, n is an eighth
from the next batch on; where batches are larger than n, several of the next ones are not collected at all.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from lakelet.spark.failures import readable
from lakelet.spark.session import settings
from lakelet.spark.write.write_job import ARROW_SETTINGS

_FEWER = 8
_SKIPPED = 8
_WIDE = (T.StringType, T.BinaryType)
_NESTED = (T.ArrayType, T.MapType, T.StructType, T.VariantType)


@dataclass(slots=True)
class DriverRows:
    """Collects the rows of small batches; what it learned of one batch holds for the next."""

    rows: int
    limit_bytes: int
    skips: int = 0

    def collect(self, df: DataFrame, what: str) -> pa.Table | None:
        """All rows of a batch, with the columns of the frame in order; None where it is to be written by tasks."""
        if not self.rows or not self.limit_bytes:
            return None
        if self.skips:
            self.skips -= 1
            return None
        names = [f"c{place}" for place in range(len(df.columns))]
        first = df.toDF(*names).limit(self.rows + 1)
        sizes = [size for size in map(_size, names, df.schema.fields) if size is not None]
        if sizes:
            bound = self.limit_bytes // self.rows
            first = first.selectExpr(f"if({' + '.join(sizes)} > {bound}L, null, struct({', '.join(names)})) AS row")
        with readable(what), settings(df.sparkSession, ARROW_SETTINGS):
            found = first.toArrow()
        if found.num_rows > self.rows:
            self.skips = _SKIPPED
            return None
        if not sizes:
            return found
        row = found.column(0)
        if row.null_count:
            self.rows //= _FEWER
            return None
        flat = row.flatten()
        return pa.table(flat, schema=pa.schema([row.type.field(place) for place in range(len(names))]))


def _size(name: str, field: T.StructField) -> str | None:
    """The bytes of a value as a Spark expression, None where they are few and always as many."""
    if isinstance(field.dataType, _WIDE):
        return f"coalesce(octet_length({name}), 0L)"
    if isinstance(field.dataType, _NESTED):
        # As text: about as long as the value.
        return f"coalesce(octet_length(cast({name} AS STRING)), 0L)"
    return None
