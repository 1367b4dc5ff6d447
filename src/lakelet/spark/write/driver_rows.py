"""Decide by size whether a batch is written on the driver, without running it twice: collect its first rows within a bound.

    batch ─ limit(n + 1), rows over the byte bound left out ─ Arrow on the driver ─┬─ at most n rows, none too wide: these are all
                                                                                   └─ more: dropped, tasks write the batch itself

A row may take the n-th part of the byte bound, so that what is collected stays within it; n is less from the outset where columns
of fixed width alone would take more. Where rows are wider, n is an eighth from the next batch on; where batches are larger,
several of the next ones are not collected at all.

A row that is too wide travels without its texts and nested values, and a last column tells so. One column of whole rows would be
less to say, but costs more on both sides. PySpark refuses NULL in place of a value that is promised to have none, so that types
lose that promise at any depth on the way.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakelet.spark.failures import readable

_FEWER = 8
_SKIPPED = 8
_FITS = "fits"
_WIDE = (T.StringType, T.BinaryType)
_NESTED = (T.ArrayType, T.MapType, T.StructType, T.VariantType)
# Bytes of a value in Arrow: of other types an offset or more.
_WIDTH = 16
_WIDTHS: dict[type[T.DataType], int] = {
    T.BooleanType: 1,
    T.ByteType: 1,
    T.ShortType: 2,
    T.IntegerType: 4,
    T.FloatType: 4,
    T.DateType: 4,
    T.LongType: 8,
    T.DoubleType: 8,
    T.TimestampType: 8,
    T.TimestampNTZType: 8,
    T.StringType: 8,
    T.BinaryType: 8,
}


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
        fixed = sum(_WIDTHS.get(type(field.dataType), _WIDTH) for field in df.schema.fields)
        self.rows = min(self.rows, self.limit_bytes // max(fixed, 1))
        if not self.rows:
            return None
        found = self._first(df, self.limit_bytes // self.rows - fixed, what)
        if found.num_rows > self.rows:
            self.skips = _SKIPPED
            return None
        if found.num_columns == len(df.columns):
            return found
        if not pc.all(found.column(len(df.columns)), min_count=0).as_py():
            self.rows //= _FEWER
            return None
        return found.select(range(len(df.columns)))

    def _first(self, df: DataFrame, bound: int, what: str) -> pa.Table:
        """One row more than the driver writes, if there are as many: by one task, which reads no further. Of rows whose texts and
        nested values take more than `bound` bytes these are not there; where there may be such, a last column tells of each row
        whether it fits."""
        fields = df.schema.fields
        names = df.columns
        if len({name.casefold() for name in names}) < len(names):
            names = [f"c{place}" for place in range(len(names))]
            df = df.toDF(*names)
        quoted = [f"`{name.replace('`', '``')}`" for name in names]
        strict = {
            name: field for name, field in zip(quoted, fields, strict=True) if _open(field.dataType) != field.dataType
        }
        if strict:
            columns = [
                F.col(name).cast(_open(strict[name].dataType)) if name in strict else F.col(name) for name in quoted
            ]
            df = df.select(*(column.alias(name) for column, name in zip(columns, names, strict=True)))
        sizes = {name: size for name, field in zip(quoted, fields, strict=True) if (size := _size(name, field))}
        if sizes:
            fits = f"{' + '.join(sizes.values())} <= {bound}L"
            kept = [f"if({fits}, {name}, NULL) AS {name}" if name in sizes else name for name in quoted]
            df = df.selectExpr(*kept, f"{fits} AS {_free(names)}")
        with readable(what):
            return df.coalesce(1).limit(self.rows + 1).toArrow()


def _free(names: list[str]) -> str:
    """A name that no column has."""
    taken, name = {one.casefold() for one in names}, _FITS
    while name in taken:
        name += "_"
    return name


def _open(found: T.DataType) -> T.DataType:
    """A type that takes NULL at any depth."""
    match found:
        case T.ArrayType():
            return T.ArrayType(_open(found.elementType))
        case T.MapType():
            return T.MapType(_open(found.keyType), _open(found.valueType))
        case T.StructType():
            return T.StructType([T.StructField(field.name, _open(field.dataType)) for field in found.fields])
        case _:
            return found


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
