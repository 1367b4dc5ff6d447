"""Translate a Lakelet predicate into a Spark column, for files that Spark's own Parquet reader reads.

The column keeps exactly the rows that `predicate.row_mask` keeps, whatever the session's settings are; where `translates`
says that there is no such column, the caller reads those files itself. Spark orders values as we do: NaN is the greatest
number, -0.0 equals 0.0, text and bytes compare byte by byte. But predicates that it pushes into Parquet are
evaluated there by other rules, so that the column is built with these in mind:

    x > 1.5, x <> 3       footers of many writers ignore NaN, so a condition that NaN satisfies is not to be pushed: isnan(x) OR …
    x = 0.0, x IN (0.0)   dictionaries and bloom filters tell -0.0 from 0.0: x >= -0.0 AND x <= 0.0
    t < TIMESTAMP '…'     literals are made without the session's time zone
    d = DATE '…'          Spark pushes days and instants by way of java.sql, whose calendar lacks ten days of October 1582 and
                          tells instants before 1900 otherwise: conditions with such literals are not translated

Predicates are normalised first, which lets a leaf answer FALSE where SQL says unknown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import reduce
from operator import and_, eq, ge, gt, le, lt, ne, or_
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakelet.errors import InternalError
from lakelet.model.types import BINARIES, FLOATS, INTEGERS, STRINGS, TIMESTAMPS, Atomic, DataType, Kind
from lakelet.predicate.tree import (
    And,
    Comparison,
    Constant,
    InList,
    IsNull,
    Like,
    Opaque,
    Operator,
    Or,
    Predicate,
    normalise,
)
from lakelet.spark.types import spark_type

_OPERATORS: dict[Operator, Callable[[Any, Any], Any]] = {"=": eq, "<>": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
_NAN_MATCHES = ("<>", ">", ">=")
_MICRO = 6
_TO_MICROS = {"s": 1_000_000, "ms": 1_000, "us": 1}
_FIRST_MICRO = -62_135_596_800_000_000
_LAST_MICRO = 253_402_300_799_999_999
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
# The days 1582-10-05 to 1582-10-14 are not in the calendar of java.sql, which tells instants as we do from 1900 on.
_NO_JAVA_DAYS = range(-141_437, -141_427)
_FIRST_JAVA_MICRO = -2_208_988_800_000_000
# Every value costs some calls into the JVM and is part of the plan.
_LONGEST_LIST = 1_000


def translates(predicate: Predicate, types: Mapping[str, DataType]) -> bool:
    """Whether the predicate has an exactly equivalent Spark column; needs no session."""
    match normalise(predicate):
        case And(terms) | Or(terms):
            return all(translates(term, types) for term in terms)
        case Constant():
            return True
        case Opaque():
            return False
        case IsNull():
            return True
        case Comparison(column, _, literal):
            return _has_literal(types[column], literal)
        case InList(column, values):
            return len(values) <= _LONGEST_LIST and all(_has_literal(types[column], value) for value in values)
        case Like(column):
            found = types[column]
            return isinstance(found, Atomic) and found.kind in STRINGS
        case _:
            return False


def spark_condition(predicate: Predicate, columns: Mapping[str, tuple[Column, DataType]]) -> Column:
    """The Spark condition of a predicate that `translates`, over columns in the types of the table."""
    return _condition(normalise(predicate), columns)


def _condition(predicate: Predicate, columns: Mapping[str, tuple[Column, DataType]]) -> Column:
    match predicate:
        case And(terms):
            return reduce(and_, [_condition(term, columns) for term in terms])
        case Or(terms):
            return reduce(or_, [_condition(term, columns) for term in terms])
        case Constant(value):
            return F.lit(bool(value))
        case IsNull(name, negated):
            column, _ = columns[name]
            return column.isNotNull() if negated else column.isNull()
        case Comparison(name, operator, literal):
            column, data_type = columns[name]
            return _comparison(column, operator, literal, data_type)
        case InList(name, values, negated):
            column, data_type = columns[name]
            return _membership(column, values, negated, data_type)
        case Like(name):
            column, _ = columns[name]
            matched = column.like(_pattern(predicate))
            return ~matched if predicate.negated else matched
        case _:
            raise InternalError(f"Spark has no words for {predicate}")


def _comparison(column: Column, operator: Operator, literal: pa.Scalar, data_type: DataType) -> Column:
    value = _literal(literal, data_type)
    if not _is_float(data_type):
        return _column(_OPERATORS[operator](column, value))
    number = literal.as_py()
    if math.isnan(number):
        return _against_nan(column, operator)
    if number == 0.0 and operator in ("=", "<=", ">="):
        return _against_zero(column, operator, data_type)
    compared = _column(_OPERATORS[operator](column, value))
    return F.isnan(column) | compared if operator in _NAN_MATCHES else compared


def _against_nan(column: Column, operator: Operator) -> Column:
    match operator:
        case "=" | ">=":
            return F.isnan(column)
        case "<>" | "<":
            return column.isNotNull() & ~F.isnan(column)
        case "<=":
            return column.isNotNull()
        case _:
            return F.lit(False)


def _against_zero(column: Column, operator: Operator, data_type: DataType) -> Column:
    low, high = (F.lit(zero).cast(spark_type(data_type)) for zero in (-0.0, 0.0))
    match operator:
        case "=":
            return (column >= low) & (column <= high)
        case "<=":
            return column <= high
        case _:
            return F.isnan(column) | (column >= low)


def _membership(column: Column, values: pa.Array, negated: bool, data_type: DataType) -> Column:
    if not _is_float(data_type):
        found = column.isin([_literal(value, data_type) for value in values])
        return ~found if negated else found
    # Zeros and NaN need conditions of their own; lists of floating-point numbers are short.
    operator: Operator = "<>" if negated else "="
    terms = [_comparison(column, operator, value, data_type) for value in values]
    return reduce(and_ if negated else or_, terms)


def _literal(literal: pa.Scalar, data_type: DataType) -> Column:
    """A literal of the column's Arrow type as a Spark literal of the column's Spark type."""
    assert isinstance(data_type, Atomic)
    kind, target = data_type.kind, spark_type(data_type)
    if kind is Kind.DECIMAL:
        return F.lit(f"{literal.as_py():f}").cast(target)
    if kind is Kind.DATE:
        return F.date_from_unix_date(F.lit(literal.value))
    if kind in TIMESTAMPS:
        micros = literal.value * _TO_MICROS[literal.type.unit]
        if kind is Kind.TIMESTAMP_LTZ:
            return F.timestamp_micros(F.lit(micros).cast(T.LongType()))
        return F.lit(str(np.datetime64(micros, "us"))).cast(target)
    if kind in BINARIES:
        return F.lit(bytearray(literal.as_py()))
    if kind is Kind.BOOLEAN or kind in STRINGS:
        return F.lit(literal.as_py())
    return F.lit(literal.as_py()).cast(target)


def _has_literal(data_type: DataType, literal: pa.Scalar) -> bool:
    if not isinstance(data_type, Atomic) or not literal.is_valid:
        return False
    kind = data_type.kind
    if kind in TIMESTAMPS:
        if data_type.precision > _MICRO:
            return False
        first = _FIRST_JAVA_MICRO if kind is Kind.TIMESTAMP_LTZ else _FIRST_MICRO
        return bool(first <= literal.value * _TO_MICROS[literal.type.unit] <= _LAST_MICRO)
    if kind is Kind.DATE:
        return bool(_FIRST_DAY <= literal.value <= _LAST_DAY) and literal.value not in _NO_JAVA_DAYS
    return kind in (*INTEGERS, *FLOATS, *STRINGS, *BINARIES, Kind.BOOLEAN, Kind.DECIMAL)


def _pattern(predicate: Like) -> str:
    r"""The LIKE pattern in Spark's syntax, where `\` escapes the next character."""
    parts, pattern, at = [], predicate.pattern, 0
    while at < len(pattern):
        letter = pattern[at]
        if predicate.escape is not None and letter == predicate.escape:
            at += 1
            letter = pattern[at]
            parts.append(f"\\{letter}" if letter in "%_\\" else letter)
        else:
            parts.append("\\\\" if letter == "\\" else letter)
        at += 1
    return "".join(parts)


def _is_float(data_type: DataType) -> bool:
    return isinstance(data_type, Atomic) and data_type.kind in FLOATS


def _column(made: Any) -> Column:
    assert isinstance(made, Column)
    return made
