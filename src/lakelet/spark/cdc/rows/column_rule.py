"""Columns that events do not have: computed from others, or telling where a change came from."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

from lakelet.errors import InvalidError
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Atomic, DataType, Kind, string
from lakelet.spark.types import spark_type

Values = Callable[[str], Column | None]
_CALL = re.compile(r"^\s*(\w+)\s*\((.*)\)\s*$", re.DOTALL)
_PARTS = re.compile(r"\s*('(?:[^']|'')*'|`(?:[^`]|``)*`|[^,]+?)\s*(?:,|$)")
_LATER = Atomic(Kind.TIMESTAMP_LTZ, 3)
# Their names, types and expressions over the event's columns.
METADATA: Mapping[str, tuple[DataType, Callable[[], Column]]] = {
    "database_name": (string(), lambda: F.col("database_name")),
    "schema_name": (string(), lambda: F.col("schema_name")),
    "table_name": (string(), lambda: F.col("table_name")),
    "op_ts": (_LATER, lambda: F.timestamp_millis(F.col("op_millis"))),
    "source_position": (string(), lambda: F.col("position")),
    "topic": (string(), lambda: F.col("topic")),
    "partition": (Atomic(Kind.INT), lambda: F.col("partition")),
    "offset": (Atomic(Kind.BIGINT), lambda: F.col("offset")),
    "timestamp": (_LATER, lambda: F.date_trunc("millisecond", F.col("kafka_timestamp"))),
}
_FIELDS = ("year", "month", "day", "hour", "minute", "second")


@dataclass(frozen=True, slots=True)
class ColumnRule:
    """A column made for each row: its type, its expression over the row's values, and the column that it reads."""

    type: DataType
    expression: Callable[[Values], Column]
    reads: str | None = None


def metadata_columns(names: Sequence[str], prefix: str = "") -> dict[str, ColumnRule]:
    """The rules of metadata columns, each under its name behind the prefix."""
    wrong = [name for name in names if name not in METADATA]
    if wrong:
        raise InvalidError(f"metadata {', '.join(map(repr, wrong))}: expected some of {', '.join(METADATA)}")
    return {f"{prefix}{name}": ColumnRule(METADATA[name][0], _constant(METADATA[name][1])) for name in names}


def _constant(made: Callable[[], Column]) -> Callable[[Values], Column]:
    return lambda _: made()


def computed_columns(texts: Mapping[str, str]) -> dict[str, ColumnRule]:
    """The rules of computed columns: name → `function(column, …)`."""
    return {name: _computed(name, text) for name, text in texts.items()}


def _computed(name: str, text: str) -> ColumnRule:
    found = _CALL.match(text)
    if found is None:
        raise InvalidError(f"computed column {name!r}: expected function(column, …), found {text!r}")
    function, inside = found[1].lower(), found[2]
    given = [_unquoted(part) for part in _PARTS.findall(inside)] if inside.strip() else []
    if function == "now" and not given:
        return ColumnRule(_LATER, lambda _: F.date_trunc("millisecond", F.current_timestamp()))
    if not given:
        raise InvalidError(f"computed column {name!r}: {function} expects a column, found {text!r}")
    if function == "cast":
        return _cast(name, given)
    return _of_column(name, function, given[0], given[1:])


def _unquoted(part: str) -> str:
    return part[1:-1].replace(part[0] * 2, part[0]) if part[:1] in ("'", "`") else part


def _cast(name: str, given: Sequence[str]) -> ColumnRule:
    value, kind = given[0], ",".join(given[1:]) or "STRING"
    data_type = parse_type(kind)
    return ColumnRule(data_type, lambda _: F.lit(value).cast(spark_type(data_type)))


def _of_column(name: str, function: str, column: str, given: Sequence[str]) -> ColumnRule:
    def of(made: Callable[[Column], Column]) -> Callable[[Values], Column]:
        def expression(values: Values) -> Column:
            value = values(column)
            return F.lit(None) if value is None else made(value)

        return expression

    numbers = [int(text) for text in given if re.fullmatch(r"-?\d+", text)]
    if function in _FIELDS and not given:
        return ColumnRule(Atomic(Kind.INT), of(lambda value: getattr(F, function)(_local(value))), column)
    if function == "date_format" and len(given) == 1:
        return ColumnRule(string(), of(lambda value: F.date_format(_local(value), given[0])), column)
    if function == "substring" and 1 <= len(numbers) == len(given) <= 2:
        return ColumnRule(string(), of(lambda value: _part(value, *numbers)), column)
    if function == "truncate" and len(numbers) == len(given) == 1:
        return ColumnRule(string(), of(lambda value: _truncated(value, numbers[0])), column)
    if function in ("upper", "lower", "trim") and not given:
        return ColumnRule(string(), of(getattr(F, function)), column)
    known = ", ".join((*_FIELDS, "date_format", "now", "substring", "truncate", "cast", "upper", "lower", "trim"))
    raise InvalidError(
        f"computed column {name!r}: no function {function} that takes a column and {len(given)} values; there are {known}"
    )


def _local(value: Column) -> Column:
    """A date, timestamp or text as a timestamp without a zone; an instant as of UTC, whatever the session's zone."""
    epoch = F.lit("1970-01-01").cast("timestamp_ntz")
    instant = F.timestamp_add("MICROSECOND", F.unix_micros(value.try_cast("timestamp")), epoch)
    return F.when(F.typeof(value) == "timestamp", instant).otherwise(value.try_cast("timestamp_ntz"))


def _part(value: Column, begin: int, end: int | None = None) -> Column:
    """Characters from `begin`, counted from 0, to before `end`."""
    size = F.lit(2**31 - 1) if end is None else F.lit(max(0, end - begin))
    return F.substring(value.cast("string"), F.lit(begin + 1), size)


def _truncated(value: Column, width: int) -> Column:
    """Numbers rounded down to a multiple of the width, text cut to it."""
    text = value.cast("string")
    number = F.when(F.typeof(value) != "string", text.try_cast("bigint"))
    return F.coalesce((number - F.pmod(number, F.lit(width))).cast("string"), F.substring(text, 1, width))
