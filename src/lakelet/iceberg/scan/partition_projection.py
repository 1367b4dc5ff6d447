"""Project a predicate on columns to the partition fields of a spec, for partition pruning.

The library projects as Iceberg specifies. Old writers rounded timestamps before 1970 up instead of down, and so put them one
partition too high:

    1969-12-31 23:00 by days(ts)      day -1, but old writers say day 0
    ts = 1969-12-31 23:00             the partitions -1 and 0
    ts < 1969-12-31                   up to day -1, where day -2 is the last that should have such rows

So wherever a year, month, day or hour before 1970 is asked for, the one behind it is too, as in Iceberg's Java library. Days of
a DATE were always right.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from pyiceberg.expressions import (
    AlwaysTrue,
    And,
    BooleanExpression,
    BoundPredicate,
    EqualTo,
    In,
    LessThanOrEqual,
    UnboundPredicate,
)
from pyiceberg.expressions.literals import LongLiteral
from pyiceberg.expressions.visitors import InclusiveProjection
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import DayTransform, TimeTransform, Transform
from pyiceberg.types import DateType, IcebergType


def partition_projection(schema: Schema, spec: PartitionSpec) -> Callable[[BooleanExpression], BooleanExpression]:
    """The inclusive projection of a condition to the partition; the columns are those of a planning schema."""
    return _Projection(schema, spec, True).project


class _Projection(InclusiveProjection):
    def visit_bound_predicate(self, predicate: BoundPredicate) -> BooleanExpression:
        field = predicate.term.ref().field
        found: BooleanExpression = AlwaysTrue()
        for part in self.spec.fields_by_source_id(field.field_id):
            projected = _projected(part, predicate)
            if projected is not None:
                wider = _was_rounded_up(part.transform, field.field_type)
                found = And(found, _widened(projected) if wider else projected)
        return found


def _projected(part: PartitionField, predicate: BoundPredicate) -> UnboundPredicate | None:
    """The projection of a condition on a column to one partition field; None where it has none."""
    try:
        return part.transform.project(name=part.name, pred=predicate)
    except (OverflowError, struct.error):
        # The library has no year or month beyond 9999 or before 1, nor of the infinite timestamps of queries.
        return None


def _was_rounded_up(transform: Transform[Any, Any], source: IcebergType) -> bool:
    is_day_of_date = isinstance(transform, DayTransform) and isinstance(source, DateType)
    return isinstance(transform, TimeTransform) and not is_day_of_date


def _widened(projected: UnboundPredicate) -> UnboundPredicate:
    match projected:
        case LessThanOrEqual(term=term, literal=literal) if literal.value < 0:
            return _made(LessThanOrEqual, term, LongLiteral(literal.value + 1))
        case EqualTo(term=term, literal=literal) if literal.value < 0:
            return _in(term, {literal.value})
        case In(term=term, literals=literals):
            return _in(term, {literal.value for literal in literals})
    return projected


def _in(term: Any, values: set[int]) -> UnboundPredicate:
    behind = {value + 1 for value in values if value < 0}
    return _made(In, term, {LongLiteral(value) for value in values | behind})


def _made(kind: Callable[..., Any], *arguments: object) -> UnboundPredicate:
    """A predicate: the library's classes take what their annotations do not say."""
    found: UnboundPredicate = kind(*arguments)
    return found
