"""Evaluate a pruning expression over many files or partitions at once, in arrays.

The decisions are those of Iceberg's evaluators for one file and one partition, except that a file with a bound that cannot be
decoded, or is NaN, is never pruned by it.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyiceberg.expressions import BooleanExpression, BoundTerm
from pyiceberg.expressions.visitors import BoundBooleanExpressionVisitor, bind, rewrite_not, visit
from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType

from lakelet.iceberg.scan.column_statistics import Bounds, ColumnStatistics, Mask

# A list of more values is not compared with bounds.
_MOST_VALUES = 200
Statistics = Callable[[int, IcebergType], ColumnStatistics]


def matching_files(expression: BooleanExpression, schema: Schema, statistics: Statistics, count: int) -> Mask:
    """Which of `count` files may have a row for which an expression over a schema holds, by their statistics."""
    return visit(bind(schema, rewrite_not(expression), True), _Files(statistics, count))


class PartitionColumns:
    """The values of partitions by field, as objects, since they are of any type. It may be kept and shared."""

    def __init__(self, partitions: Sequence[tuple[Any, ...]]) -> None:
        self._partitions = partitions
        self._columns: dict[int, tuple[NDArray[Any], Mask]] = {}

    def __len__(self) -> int:
        return len(self._partitions)

    def column(self, place: int) -> tuple[NDArray[Any], Mask]:
        """The values of the field in this place, and which are not NULL."""
        found = self._columns.get(place)
        if found is None:
            values = np.empty(len(self), object)
            values[:] = [one[place] for one in self._partitions]
            known = np.fromiter((value is not None for value in values), bool, len(self))
            found = self._columns[place] = values, known
        return found


def matching_partitions(expression: BooleanExpression, schema: Schema, partitions: PartitionColumns) -> Mask:
    """Which partitions satisfy an expression over the partition's schema."""
    return visit(bind(schema, expression, True), _Partitions(schema, partitions))


class _Masks(BoundBooleanExpressionVisitor[Mask]):
    """What both have in common."""

    def __init__(self, count: int) -> None:
        self._count = count

    def visit_true(self) -> Mask:
        return np.ones(self._count, bool)

    def visit_false(self) -> Mask:
        return np.zeros(self._count, bool)

    def visit_not(self, child_result: Mask) -> Mask:
        return ~child_result

    def visit_and(self, left_result: Mask, right_result: Mask) -> Mask:
        return left_result & right_result

    def visit_or(self, left_result: Mask, right_result: Mask) -> Mask:
        return left_result | right_result


class _Files(_Masks):
    def __init__(self, statistics: Statistics, count: int) -> None:
        super().__init__(count)
        self._statistics = statistics

    def _of(self, term: BoundTerm) -> ColumnStatistics:
        field = term.ref().field
        return self._statistics(field.field_id, field.field_type)

    def visit_is_null(self, term: BoundTerm) -> Mask:
        found: Mask = self._of(term).null_counts != 0
        return found

    def visit_not_null(self, term: BoundTerm) -> Mask:
        return ~self._of(term).only_nulls

    def visit_is_nan(self, term: BoundTerm) -> Mask:
        known = self._of(term)
        found: Mask = (known.nan_counts != 0) & ~known.only_nulls
        return found

    def visit_not_nan(self, term: BoundTerm) -> Mask:
        return ~self._of(term).only_nans

    def visit_less_than(self, term: BoundTerm, literal: Any) -> Mask:
        return self._without(term, ("greater_equal", literal.value), None)

    def visit_less_than_or_equal(self, term: BoundTerm, literal: Any) -> Mask:
        return self._without(term, ("greater", literal.value), None)

    def visit_greater_than(self, term: BoundTerm, literal: Any) -> Mask:
        return self._without(term, None, ("less_equal", literal.value))

    def visit_greater_than_or_equal(self, term: BoundTerm, literal: Any) -> Mask:
        return self._without(term, None, ("less", literal.value))

    def visit_equal(self, term: BoundTerm, literal: Any) -> Mask:
        return self._without(term, ("greater", literal.value), ("less", literal.value))

    def visit_not_equal(self, term: BoundTerm, literal: Any) -> Mask:
        return np.ones(self._count, bool)

    def visit_in(self, term: BoundTerm, literals: set[Any]) -> Mask:
        if len(literals) > _MOST_VALUES:
            return self._without(term, None, None)
        found = np.zeros(self._count, bool)
        for value in literals:
            found |= self._without(term, ("greater", value), ("less", value))
        return found

    def visit_not_in(self, term: BoundTerm, literals: set[Any]) -> Mask:
        return np.ones(self._count, bool)

    def visit_starts_with(self, term: BoundTerm, literal: Any) -> Mask:
        found, prefix = self._of(term), literal.value.encode()
        gone = found.only_nulls
        for bounds, name in ((found.lower, "greater"), (found.upper, "less")):
            if bounds is not None and bounds.known.any():
                gone = gone | bounds.sliced(len(prefix)).compared(name, prefix)
        return ~gone

    def visit_not_starts_with(self, term: BoundTerm, literal: Any) -> Mask:
        return np.ones(self._count, bool)

    def _without(self, term: BoundTerm, low: tuple[str, Any] | None, high: tuple[str, Any] | None) -> Mask:
        """All files but those whose bounds compare so to a value, and those without a value that compares."""
        found = self._of(term)
        gone = found.only_nulls | found.only_nans
        checks: list[tuple[Bounds | None, tuple[str, Any] | None]] = [(found.lower, low), (found.upper, high)]
        for bounds, check in checks:
            if bounds is not None and check is not None and bounds.known.any():
                gone = gone | bounds.compared(*check)
        return ~gone


class _Partitions(_Masks):
    """All partitions at once; those that are NULL apart."""

    def __init__(self, schema: Schema, partitions: PartitionColumns) -> None:
        super().__init__(len(partitions))
        self._partitions = partitions
        self._places = {field.field_id: place for place, field in enumerate(schema.fields)}

    def _column(self, term: BoundTerm) -> tuple[NDArray[Any], Mask]:
        return self._partitions.column(self._places[term.ref().field.field_id])

    def _each(self, term: BoundTerm, decide: Callable[[Any], bool]) -> Mask:
        values, _ = self._column(term)
        return np.fromiter((decide(value) for value in values), bool, self._count)

    def _compared(self, term: BoundTerm, compare: Callable[[Any, Any], Any], literal: Any) -> Mask:
        """Those that compare so to a value; NULL does not."""
        values, known = self._column(term)
        found = np.zeros(self._count, bool)
        # As it is: numpy would take a value of bytes for one that is filled with zeros.
        given = np.empty((), object)
        given[()] = literal.value
        with np.errstate(invalid="ignore"):
            found[known] = compare(values[known], given)
        return found

    def visit_is_null(self, term: BoundTerm) -> Mask:
        return ~self._column(term)[1]

    def visit_not_null(self, term: BoundTerm) -> Mask:
        return self._column(term)[1].copy()

    def visit_is_nan(self, term: BoundTerm) -> Mask:
        return self._each(term, _is_nan)

    def visit_not_nan(self, term: BoundTerm) -> Mask:
        return self._each(term, lambda value: not _is_nan(value))

    def visit_less_than(self, term: BoundTerm, literal: Any) -> Mask:
        return self._compared(term, operator.lt, literal)

    def visit_less_than_or_equal(self, term: BoundTerm, literal: Any) -> Mask:
        return self._compared(term, operator.le, literal)

    def visit_greater_than(self, term: BoundTerm, literal: Any) -> Mask:
        return self._compared(term, operator.gt, literal)

    def visit_greater_than_or_equal(self, term: BoundTerm, literal: Any) -> Mask:
        return self._compared(term, operator.ge, literal)

    def visit_equal(self, term: BoundTerm, literal: Any) -> Mask:
        return self._compared(term, operator.eq, literal)

    def visit_not_equal(self, term: BoundTerm, literal: Any) -> Mask:
        return ~self._compared(term, operator.eq, literal)

    def visit_in(self, term: BoundTerm, literals: set[Any]) -> Mask:
        return self._each(term, lambda value: value in literals)

    def visit_not_in(self, term: BoundTerm, literals: set[Any]) -> Mask:
        return self._each(term, lambda value: value not in literals)

    def visit_starts_with(self, term: BoundTerm, literal: Any) -> Mask:
        given = literal.value
        return self._each(term, lambda value: value is not None and value.startswith(given))

    def visit_not_starts_with(self, term: BoundTerm, literal: Any) -> Mask:
        return ~self.visit_starts_with(term, literal)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)
