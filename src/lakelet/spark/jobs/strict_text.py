"""Parse text into decimals, dates and timestamps without loss, at any depth of a column.

Spark rounds a decimal, takes the day of a date with a time, and cuts a timestamp after microseconds, all silently. Such
values are read as text, checked, and then cast. Dates and timestamps for which the reader was given a format are Spark's to
parse, as the format says how much of them to take. Keys of maps are text in JSON and stay as Spark reads them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakelet.errors import InvalidError
from lakelet.model.types import Array, Atomic, DataType, Kind, Map, Row
from lakelet.spark.types import spark_schema, spark_type

_MICROSECONDS = 6
_FORMATS = {
    Kind.DATE: "dateformat",
    Kind.TIMESTAMP: "timestampntzformat",
    Kind.TIMESTAMP_LTZ: "timestampformat",
}
_PLAIN_NUMBER = r"^\s*[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)\s*$"
_FRACTION = r"\.([0-9]*?)0*\s*$"
_DAY = r"^\s*[+-]?[0-9]{4,7}-[0-9]{1,2}(-[0-9]{1,2}"
_DATE = _DAY + r"([ T]00:00(:00(\.0*)?)?)?)?\s*$"
_LOCAL_MOMENT = _DAY + r"([ T][0-9:.]+)?)?\s*$"
# What follows the time of day is a zone, or the cast finds it is none.
_MOMENT = _DAY + r"([ T][0-9:.]+([^0-9:.].*)?)?)?\s*$"
_ZONED = r"[0-9][ T][0-9:.]+\s*[^0-9:.\s]"
_TIMED = r"[0-9][ T][0-9]"
_SECONDS_FRACTION = r":[0-9]{1,2}\.([0-9]*?)0*([^0-9].*)?$"
_TOO_FINE = re.compile(f"S{{{_MICROSECONDS + 1},}}")


@dataclass(frozen=True, slots=True)
class StrictText:
    """How values of text files are parsed; `options` are those of Spark's reader, by lower-case names."""

    options: Mapping[str, str]

    @staticmethod
    def of(options: Mapping[str, str]) -> StrictText:
        """The rules for these options; InvalidError for a format that reads digits which Spark then cuts."""
        folded = {name.lower(): value for name, value in options.items()}
        for name, value in options.items():
            if name.lower() in _FORMATS.values() and _TOO_FINE.search(value):
                raise InvalidError(f"read option {name!r} = {value!r}: Spark reads no digits beyond microseconds")
        return StrictText(folded)

    def read_type(self, data_type: DataType) -> T.DataType:
        """The type to read a column in: the table's, with text for values that are checked."""
        if not self._looks_into(data_type):
            return spark_type(data_type)
        match data_type:
            case Array(element):
                return T.ArrayType(self.read_type(element))
            case Map(key, value):
                return T.MapType(spark_type(key), self.read_type(value))
            case Row(fields):
                read = [T.StructField(field.name, self.read_type(field.type)) for field in fields]
                return T.StructType(read)
            case _:
                return T.StringType()

    def is_bad(self, column: Column, data_type: DataType) -> Column:
        """Whether a value, read in `read_type`, is malformed or would be rounded or truncated."""
        if not self._looks_into(data_type):
            return F.lit(False)
        match data_type:
            case Array(element):
                found = F.exists(column, lambda one: self.is_bad(one, element))
            case Map(_, value):
                found = F.exists(F.map_values(column), lambda one: self.is_bad(one, value))
            case Row(fields):
                found = F.lit(False)
                for field in fields:
                    found = found | self.is_bad(column.getField(field.name), field.type)
            case Atomic(Kind.DECIMAL):
                found = ~column.rlike(_PLAIN_NUMBER) | _has_more(column, _FRACTION, data_type.scale)
                found = found | column.try_cast(spark_type(data_type)).isNull()
            case Atomic(Kind.DATE):
                found = ~column.rlike(_DATE) | column.try_cast(T.DateType()).isNull()
            case Atomic(kind, precision):
                found = ~column.rlike(_LOCAL_MOMENT if kind is Kind.TIMESTAMP else _MOMENT)
                found = found | _has_more(column, _SECONDS_FRACTION, min(precision, _MICROSECONDS))
                found = found | self._in_zone(column, kind).try_cast(spark_type(data_type)).isNull()
            case _:
                return F.lit(False)
        return F.coalesce(column.isNotNull() & found, F.lit(False))

    def value(self, column: Column, data_type: DataType) -> Column:
        """A value that is not bad, in the type of the table."""
        if not self._looks_into(data_type):
            return column
        match data_type:
            case Array(element):
                return F.transform(column, lambda one: self.value(one, element))
            case Map(_, value):
                return F.transform_values(column, lambda _, one: self.value(one, value))
            case Row(fields):
                inner = [self.value(column.getField(field.name), field.type).alias(field.name) for field in fields]
                return F.when(column.isNotNull(), F.struct(*inner)).cast(spark_schema(fields))
            case Atomic(kind):
                return self._in_zone(column, kind).cast(spark_type(data_type))
            case _:
                return column

    def _looks_into(self, data_type: DataType) -> bool:
        match data_type:
            case Array(element):
                return self._looks_into(element)
            case Map(_, value):
                return self._looks_into(value)
            case Row(fields):
                return any(self._looks_into(field.type) for field in fields)
            case Atomic(kind):
                return kind is Kind.DECIMAL or (kind in _FORMATS and _FORMATS[kind] not in self.options)
            case _:
                return False

    def _in_zone(self, text: Column, kind: Kind) -> Column:
        """The text with the zone of the reader's options, where it names none."""
        zone = self.options.get("timezone")
        if zone is None or kind is not Kind.TIMESTAMP_LTZ:
            return text
        bare = F.trim(text)
        timed = F.when(text.rlike(_TIMED), bare).otherwise(F.concat(bare, F.lit(" 00:00:00")))
        return F.when(text.rlike(_ZONED), text).otherwise(F.concat(timed, F.lit(f" {zone}")))


def check_keys(found: T.DataType, data_type: DataType, name: str) -> None:
    """InvalidError for keys of JSON objects inside of a column that its type does not have."""
    match data_type:
        case Row(fields) if isinstance(found, T.StructType):
            inner = {field.name: field.type for field in fields}
            for one in found.fields:
                if one.name not in inner:
                    raise InvalidError(
                        f"the files have the key {one.name!r} in column {name!r}, which is {data_type} in the table"
                    )
                check_keys(one.dataType, inner[one.name], f"{name}.{one.name}")
        case Array(element) if isinstance(found, T.ArrayType):
            check_keys(found.elementType, element, name)
        case Map(_, value) if isinstance(found, T.StructType):
            for one in found.fields:
                check_keys(one.dataType, value, f"{name}.{one.name}")
        case _:
            pass


def _has_more(text: Column, fraction: str, digits: int) -> Column:
    return F.length(F.regexp_extract(text, fraction, 1)) > digits
