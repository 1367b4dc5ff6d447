"""Iceberg's partition transforms as Spark expressions, used as shuffle keys.

The partition of a row is computed by the writer, over Arrow. These expressions only decide which task a row goes to, so
that each partition is written by few tasks: two rows of one partition have equal values here, whatever the settings
of the session (time zone, ANSI mode, case). Values are not always those of Iceberg: truncated numbers are counted in widths, for
the value itself may lie beyond the type.

A column has no expression where Spark cannot compute it exactly (decimals over 18 digits that are bucketed or truncated),
or where the data has it in a type that the writer converts. Then the other columns of the spec decide.
"""

from __future__ import annotations

import re

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakelet.spark.column_names import column_named
from lakelet.spark.iceberg.bucket_hash import Let, bucket_of_bytes, bucket_of_long, bucket_of_unscaled
from lakelet.spark.iceberg.fields import TransformedField

_WHOLE = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_KINDS: dict[str, tuple[type[T.DataType], ...]] = {
    "boolean": (T.BooleanType,),
    "int": _WHOLE,
    "long": _WHOLE,
    "float": (T.FloatType,),
    "double": (T.DoubleType,),
    "date": (T.DateType,),
    "time": _WHOLE,
    "timestamp": (T.TimestampNTZType,),
    "timestamptz": (T.TimestampType,),
    "string": (T.StringType,),
    "uuid": (T.StringType,),
    "binary": (T.BinaryType,),
}
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)")
_LONG_DIGITS = 18
_HOUR_MICROS = 3_600_000_000
_DAY_MICROS = 24 * _HOUR_MICROS
_DAY_HOURS, _HOUR_MINUTES, _MINUTE_SECONDS = 24, 60, 60
_YEAR_MONTHS = 12
_MICROS = 1_000_000
_EPOCH_YEAR = 1970


class Keyed:
    """A frame and the shuffle keys that distinguish its partitions, with columns for intermediate results."""

    def __init__(self, frame: DataFrame) -> None:
        self._schema = frame.schema
        self._taken = {name.lower() for name in frame.columns}
        self._made: list[str] = []
        self.frame = frame

    def key(self, field: TransformedField) -> Column | None:
        """The shuffle key of one partition field, over `frame` as it is afterwards."""
        column = _source(field, self._schema)
        if column is None:
            return None
        match field.transform:
            case "identity":
                return F.lower(column) if field.type == "uuid" else column
            case "bucket":
                return _bucket(column, field, self.let)
            case "truncate":
                return _truncated(column, field)
            case "year" | "month" | "day" | "hour":
                return _period(column, field)
            case _:
                return None

    def let(self, value: Column) -> Column:
        """A value that is used more than once, as a column of its own."""
        number = len(self._made)
        while f"key{number}" in self._taken:
            number += 1
        self._made.append(f"key{number}")
        self._taken.add(f"key{number}")
        self.frame = self.frame.withColumn(f"key{number}", value)
        return F.col(f"key{number}")

    def without_keys(self, frame: DataFrame) -> DataFrame:
        """A frame derived from `frame`, projected to the original columns."""
        return frame.drop(*self._made) if self._made else frame


def _source(field: TransformedField, schema: T.StructType) -> Column | None:
    """The column in the type the table has it in; None where the data has another that Spark does not convert alike."""
    column, found = column_named(field.place[0]), _type_of(schema, field.place[0])
    for name in field.place[1:]:
        if not isinstance(found, T.StructType):
            return None
        column, found = column.getField(name), _type_of(found, name)
    decimal = _DECIMAL.fullmatch(field.type)
    if decimal is not None:
        target = T.DecimalType(int(decimal[1]), int(decimal[2]))
        return column.cast(target) if _is_within(found, target) else None
    kinds = _KINDS.get("binary" if field.type.startswith("fixed") else field.type, ())
    if not isinstance(found, kinds):
        return None
    return column.cast("bigint") if isinstance(found, _WHOLE) else column


def _type_of(schema: T.StructType, name: str) -> T.DataType | None:
    return next((field.dataType for field in schema.fields if field.name == name), None)


def _is_within(found: T.DataType | None, target: T.DecimalType) -> bool:
    if not isinstance(found, T.DecimalType):
        return False
    return found.scale <= target.scale and found.precision - found.scale <= target.precision - target.scale


def _bucket(column: Column, field: TransformedField, let: Let) -> Column | None:
    match field.type:
        case "int" | "long" | "time":
            return bucket_of_long(column, field.argument)
        case "date":
            return bucket_of_long(F.unix_date(column).cast("bigint"), field.argument)
        case "timestamp" | "timestamptz":
            return bucket_of_long(_micros(column, field.type), field.argument)
        case "string":
            return bucket_of_bytes(column.cast("binary"), field.argument, let)
        case "uuid":
            return bucket_of_bytes(F.unhex(F.replace(column, F.lit("-"), F.lit(""))), field.argument, let)
    unscaled = _unscaled(column, field.type)
    if unscaled is not None:
        return bucket_of_unscaled(unscaled, field.argument, let)
    return None if _DECIMAL.fullmatch(field.type) else bucket_of_bytes(column, field.argument, let)


def _truncated(column: Column, field: TransformedField) -> Column | None:
    if field.type in ("string", "binary"):
        return F.substring(column, 1, field.argument)
    number = column if field.type in ("int", "long") else _unscaled(column, field.type)
    return None if number is None else _floor(number, field.argument)


def _unscaled(column: Column, data_type: str) -> Column | None:
    """The unscaled value of a decimal as a BIGINT, where it fits."""
    decimal = _DECIMAL.fullmatch(data_type)
    if decimal is None or int(decimal[1]) > _LONG_DIGITS:
        return None
    scale = int(decimal[2])
    # Typed so narrowly that the product is exact.
    return (column * F.lit(10**scale).cast(T.DecimalType(scale + 1, 0))).cast("bigint")


def _period(column: Column, field: TransformedField) -> Column:
    """Years, months, days or hours since 1970, counted towards the past before it."""
    days = _days(column, field.type)
    match field.transform:
        case "day":
            return days
        case "hour" if field.type == "timestamptz":
            return _floor(F.unix_micros(column), _HOUR_MICROS)
        case "hour":
            return days * _DAY_HOURS + F.hour(column)
    date = F.date_from_unix_date(days.cast("int"))
    years = F.year(date) - _EPOCH_YEAR
    return years if field.transform == "year" else years * _YEAR_MONTHS + F.month(date)


def _days(column: Column, data_type: str) -> Column:
    if data_type == "timestamptz":
        return _floor(F.unix_micros(column), _DAY_MICROS)
    # A TIMESTAMP_NTZ has the same date in every zone.
    return F.unix_date(column.cast("date")).cast("bigint")


def _micros(column: Column, data_type: str) -> Column:
    """Microseconds since 1970, whatever the time zone of the session."""
    if data_type == "timestamptz":
        return F.unix_micros(column)
    # From calendar fields, for Spark may take a TIMESTAMP_NTZ as a time in the session's zone. Only days can be negative.
    minutes = (_days(column, data_type) * _DAY_HOURS + F.hour(column)) * _HOUR_MINUTES + F.minute(column)
    seconds = F.extract(F.lit("SECOND"), column)
    return minutes * (_MINUTE_SECONDS * _MICROS) + (seconds * F.lit(_MICROS)).cast("bigint")


def _floor(number: Column, width: int) -> Column:
    """How many widths fit into a BIGINT, rounded towards the past; no step leaves BIGINT."""
    by = F.lit(width).cast("bigint")
    rest = number % by
    # With the remainder subtracted, the division is exact.
    whole = F.call_function("div", number - rest, by)
    return whole - (rest < 0).cast("bigint")
