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

_FEWER = 8
_SKIPPED = 8
_ROW = "row"
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
        found = self._first(df, what)
        if found.num_rows > self.rows:
            self.skips = _SKIPPED
            return None
        if found.column_names != [_ROW]:
            return found
        row = found.column(_ROW)
        if row.null_count:
            self.rows //= _FEWER
            return None
        return pa.table(row.flatten(), schema=pa.schema([row.type.field(place) for place in range(len(df.columns))]))

    def _first(self, df: DataFrame, what: str) -> pa.Table:
        """One row more than the driver writes, if there are as many: by one task, which reads no further."""
        fields = df.schema.fields
        names = df.columns
        if len({name.casefold() for name in names}) < len(names):
            names = [f"c{place}" for place in range(len(names))]
            df = df.toDF(*names)
        quoted = [f"`{name.replace('`', '``')}`" for name in names]
        sizes = [size for size in map(_size, quoted, fields) if size is not None]
        if sizes or names == [_ROW]:
            bound = self.limit_bytes // self.rows
            fits = f"{' + '.join(sizes) or '0L'} <= {bound}L"
            df = df.selectExpr(f"if({fits}, struct({', '.join(quoted)}), null) AS {_ROW}")
        with readable(what):
            return df.coalesce(1).limit(self.rows + 1).toArrow()


def _size(name: str, field: T.StructField) -> str | None:
    """The bytes of a value as a Spark expression, None where they are few and always as many."""
    if isinstance(field.dataType, _WIDE):
        return f"coalesce(octet_length({name}), 0L)"
    if isinstance(field.dataType, _NESTED):
        # As text: about as long as the value.
        return f"coalesce(octet_length(cast({name} AS STRING)), 0L)"
    return None


def has_void(found: T.DataType) -> bool:
    """Whether a type has VOID at any depth: Spark gives such values the table's type, the driver could not."""
    match found:
        case T.NullType():
            return True
        case T.ArrayType():
            return has_void(found.elementType)
        case T.MapType():
            return has_void(found.keyType) or has_void(found.valueType)
        case T.StructType():
            return any(has_void(field.dataType) for field in found.fields)
        case _:
            return False
