"""Translate Lakelet predicates into Iceberg expressions, for pruning files by partitions and statistics.

The expression is TRUE wherever the condition is, and may be TRUE elsewhere: the caller filters rows again. So where the two
differ, the condition is widened or left out. NaN is the greatest value here and none of the bounds there; a time, a uuid or a
timestamp in nanoseconds is not compared. Columns are named by their ids, `c7`: real names may hold dots, and those of dropped
columns, which partition specs still mention, may be taken again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import pyarrow as pa
from pyiceberg.expressions import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BooleanExpression,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNaN,
    IsNull,
    LessThan,
    LessThanOrEqual,
    NotEqualTo,
    NotIn,
    NotNaN,
    NotNull,
    Or,
    StartsWith,
)
from pyiceberg.expressions.literals import (
    BinaryLiteral,
    BooleanLiteral,
    DateLiteral,
    DecimalLiteral,
    DoubleLiteral,
    FloatLiteral,
    Literal,
    LongLiteral,
    StringLiteral,
    TimestampLiteral,
)
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
)

from lakelet.iceberg.library_internals import fields_by_id
from lakelet.predicate import tree
from lakelet.predicate.tree import Operator, Predicate

_COMPARED = {
    "=": EqualTo,
    "<>": NotEqualTo,
    "<": LessThan,
    "<=": LessThanOrEqual,
    ">": GreaterThan,
    ">=": GreaterThanOrEqual,
}
_FLOATS = (FloatType, DoubleType)


def planning_schema(metadata: TableMetadata, schema: Schema) -> Schema:
    """The columns of a schema, and those that only older schemas have, named by their ids. None is required: what is said of a
    column that cannot be NULL would be decided before any file is looked at."""
    found: dict[int, IcebergType] = {}
    newest_first = sorted(metadata.schemas, key=lambda one: -one.schema_id)
    for one in (schema, *newest_first):
        for number, field in fields_by_id(one).items():
            found.setdefault(number, field.field_type)
    return _named_by_ids(tuple(sorted((number, kind) for number, kind in found.items() if kind.is_primitive)))


@lru_cache(maxsize=256)
def _named_by_ids(columns: tuple[tuple[int, IcebergType], ...]) -> Schema:
    return Schema(*(NestedField(number, column_name(number), kind) for number, kind in columns))


def column_name(field_id: int) -> str:
    """The name of a column in expressions."""
    return f"c{field_id}"


def pruning_expression(predicate: Predicate | None, schema: Schema) -> BooleanExpression:
    """An expression that holds wherever a predicate over the columns of a schema does."""
    if predicate is None:
        return AlwaysTrue()
    columns = {field.name: field for field in schema.fields}
    return _expression(tree.normalise(predicate), columns)


def _expression(predicate: Predicate, columns: Mapping[str, NestedField]) -> BooleanExpression:
    match predicate:
        case tree.And(terms):
            made = [_expression(term, columns) for term in terms]
            return And(*made) if len(made) > 1 else made[0]
        case tree.Or(terms):
            made = [_expression(term, columns) for term in terms]
            return Or(*made) if len(made) > 1 else made[0]
        case tree.Constant(value):
            return AlwaysTrue() if value else AlwaysFalse()
        case tree.Comparison(column, operator, literal):
            return _comparison(columns.get(column), operator, literal)
        case tree.InList(column, values, negated):
            return _membership(columns.get(column), values, negated)
        case tree.IsNull(column, negated):
            field = columns.get(column)
            if field is None or not field.field_type.is_primitive:
                return AlwaysTrue()
            term = column_name(field.field_id)
            return _made(NotNull if negated else IsNull, term)
        case tree.Like(column, pattern, None, False):
            return _like(columns.get(column), pattern)
        case _:
            return AlwaysTrue()


def _comparison(field: NestedField | None, operator: Operator, scalar: pa.Scalar) -> BooleanExpression:
    if field is None or not scalar.is_valid:
        return AlwaysTrue()
    term = column_name(field.field_id)
    if isinstance(field.field_type, _FLOATS):
        return _float_comparison(term, field.field_type, operator, scalar.as_py())
    value = _literal(field.field_type, scalar)
    return AlwaysTrue() if value is None else _made(_COMPARED[operator], term, value)


def _float_comparison(term: str, kind: IcebergType, operator: Operator, value: float) -> BooleanExpression:
    """NaN is above everything, infinity too, and equal to itself."""
    if math.isnan(value):
        if operator in ("=", ">="):
            return _made(IsNaN, term)
        if operator == ">":
            return AlwaysFalse()
        return _made(NotNull, term) if operator == "<=" else _made(NotNaN, term)
    if math.isinf(value) or operator == "<>":
        # Infinity is out of the range that literals of the library have.
        return AlwaysTrue()
    literal: Literal[float] = FloatLiteral(value) if isinstance(kind, FloatType) else DoubleLiteral(value)
    compared = _made(_COMPARED[operator], term, literal)
    return Or(compared, _made(IsNaN, term)) if operator in (">", ">=") else compared


def _membership(field: NestedField | None, values: pa.Array, negated: bool) -> BooleanExpression:
    if field is None:
        return AlwaysTrue()
    kind, term = field.field_type, column_name(field.field_id)
    if isinstance(kind, _FLOATS):
        if negated:
            return AlwaysTrue()
        made = [_float_comparison(term, kind, "=", value) for value in values.to_pylist()]
        return Or(*made) if len(made) > 1 else made[0]
    literals = [_literal(kind, value) for value in values]
    if None in literals:
        return AlwaysTrue()
    chosen = {literal for literal in literals if literal is not None}
    return _made(NotIn if negated else In, term, chosen)


def _like(field: NestedField | None, pattern: str) -> BooleanExpression:
    if field is None or not isinstance(field.field_type, StringType):
        return AlwaysTrue()
    ends = [place for place in (pattern.find("%"), pattern.find("_")) if place >= 0]
    prefix = pattern[: min(ends)] if ends else pattern
    return _made(StartsWith, column_name(field.field_id), StringLiteral(prefix)) if prefix else AlwaysTrue()


def _literal(kind: IcebergType, scalar: pa.Scalar) -> Literal[Any] | None:
    """A value of a column's type; None where it is not compared."""
    match kind:
        case BooleanType():
            return BooleanLiteral(scalar.as_py())
        case IntegerType() | LongType():
            return LongLiteral(scalar.as_py())
        case StringType():
            return StringLiteral(scalar.as_py())
        case BinaryType():
            return BinaryLiteral(scalar.as_py())
        case DecimalType():
            return DecimalLiteral(scalar.as_py())
        case DateType():
            return DateLiteral(scalar.value)
        case TimestampType() | TimestamptzType():
            return TimestampLiteral(scalar.value) if scalar.type.unit == "us" else None
        case _:
            return None


def _made(kind: Callable[..., Any], *arguments: object) -> BooleanExpression:
    """An expression: the library's classes take what their annotations do not say."""
    found: BooleanExpression = kind(*arguments)
    return found
