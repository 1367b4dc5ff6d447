"""Pruning in arrays decides as Iceberg's evaluators do for one file and one partition."""

from __future__ import annotations

import math
import struct
from decimal import Decimal
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.conversions import to_bytes
from pyiceberg.expressions import (
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
    Not,
    NotEqualTo,
    NotIn,
    NotNaN,
    NotNull,
    Or,
    StartsWith,
)
from pyiceberg.expressions.visitors import _InclusiveMetricsEvaluator, expression_evaluator
from pyiceberg.manifest import DataFile
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record
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
    PrimitiveType,
    StringType,
)

from lakelet.iceberg.scan.column_statistics import StatisticPairs, column_statistics
from lakelet.iceberg.scan.vector_pruning import PartitionColumns, matching_files, matching_partitions
from tests.tiers.examples import examples

ID = 3
COMPARED: Any = (EqualTo, NotEqualTo, LessThan, LessThanOrEqual, GreaterThan, GreaterThanOrEqual)
VALUES: dict[PrimitiveType, st.SearchStrategy[Any]] = {
    IntegerType(): st.integers(-3, 3),
    LongType(): st.integers(-3, 3) | st.just(1 << 40),
    DateType(): st.integers(-3, 3),
    BooleanType(): st.booleans(),
    FloatType(): st.sampled_from([-1.5, 0.0, -0.0, 0.5, 2.0]),
    DoubleType(): st.sampled_from([-1.5, 0.0, -0.0, 0.5, 2.0]),
    DecimalType(9, 2): st.sampled_from([Decimal("-1.50"), Decimal("0.00"), Decimal("2.25")]),
    StringType(): st.sampled_from(["", "a", "ab", "abc", "b", "é", "éa", "🐟"]),
    BinaryType(): st.sampled_from([b"", b"a", b"ab", b"\xff"]),
}
FLOATS = (FloatType, DoubleType)
PAIR = {"counts": pa.int64(), "bounds": pa.binary()}


class File:
    """The statistics of one file, as the library's evaluator takes them."""

    def __init__(self, counts: tuple[Any, ...], bounds: tuple[Any, ...]) -> None:
        self.record_count = 10
        self.value_counts, self.null_value_counts, self.nan_value_counts = (
            {} if one is None else {ID: one} for one in counts
        )
        self.lower_bounds, self.upper_bounds = ({} if one is None else {ID: one} for one in bounds)


def pairs(maps: list[dict[int, Any]], kind: str) -> StatisticPairs:
    # Another column's values stand in between, as in a manifest.
    rows = [[{"key": 1, "value": None}, *({"key": key, "value": value} for key, value in one.items())] for one in maps]
    item = pa.struct([("key", pa.int32()), ("value", PAIR[kind])])
    return StatisticPairs.of(pa.array(rows, pa.list_(item)), len(maps))


def chosen(expression: BooleanExpression, kind: IcebergType, files: list[File]) -> list[bool]:
    schema = Schema(NestedField(ID, "c", kind))
    statistics = [
        pairs([one.value_counts for one in files], "counts"),
        pairs([one.null_value_counts for one in files], "counts"),
        pairs([one.nan_value_counts for one in files], "counts"),
        pairs([one.lower_bounds for one in files], "bounds"),
        pairs([one.upper_bounds for one in files], "bounds"),
    ]
    found = matching_files(expression, schema, lambda number, of: column_statistics(statistics, number, of), len(files))
    return cast(list[bool], found.tolist())


def expected(expression: BooleanExpression, kind: IcebergType, file: File) -> bool:
    try:
        return _InclusiveMetricsEvaluator(Schema(NestedField(ID, "c", kind)), expression).eval(cast(DataFile, file))
    except (struct.error, UnicodeDecodeError):
        return True


def made_of(kind: Any, *values: Any) -> BooleanExpression:
    """An expression over the column: the library's classes take what their annotations do not say."""
    found: BooleanExpression = kind("c", *values)
    return found


@st.composite
def expressions(draw: st.DrawFn, kind: PrimitiveType, depth: int = 2) -> BooleanExpression:
    """Expressions such as conditions become, over one column."""
    values = VALUES[kind]
    if depth and draw(st.booleans()):
        joined: Any = draw(st.sampled_from([And, Or]))
        made: BooleanExpression = joined(draw(expressions(kind, depth - 1)), draw(expressions(kind, depth - 1)))
        return Not(made) if draw(st.integers(0, 4)) == 0 else made
    choice = draw(st.integers(0, 9))
    if choice == 0:
        return made_of(IsNull if draw(st.booleans()) else NotNull)
    if choice == 1 and isinstance(kind, FLOATS):
        return made_of(IsNaN if draw(st.booleans()) else NotNaN)
    if choice == 2:
        several = draw(st.lists(values, min_size=2, max_size=4, unique=True))
        return made_of(In if draw(st.booleans()) else NotIn, several)
    if choice == 3 and isinstance(kind, StringType):
        return made_of(StartsWith, draw(values))
    return made_of(draw(st.sampled_from(COMPARED)), draw(values))


@st.composite
def files(draw: st.DrawFn, kind: PrimitiveType) -> File:
    """Statistics that agree with one another, or are missing."""
    count = draw(st.integers(1, 10))
    nulls = draw(st.integers(0, count))
    nans = draw(st.integers(0, count - nulls)) if isinstance(kind, FLOATS) else None
    low, high = sorted((draw(VALUES[kind]), draw(VALUES[kind])))
    bounds: list[Any] = [to_bytes(kind, low), to_bytes(kind, high)]
    if count in (nulls, nans):
        bounds = [None, None]
    counts = [one if draw(st.integers(0, 4)) else None for one in (count, nulls, nans)]
    return File(tuple(counts), tuple(one if draw(st.integers(0, 4)) else None for one in bounds))


@pytest.mark.parametrize("kind", VALUES, ids=str)
@given(data=st.data())
@settings(max_examples=examples(60))
def test_files_are_chosen_as_the_library_chooses_them(kind: PrimitiveType, data: st.DataObject) -> None:
    expression = data.draw(expressions(kind))
    some = data.draw(st.lists(files(kind), min_size=1, max_size=6))
    assert chosen(expression, kind, some) == [expected(expression, kind, one) for one in some]


@pytest.mark.parametrize("kind", VALUES, ids=str)
@given(data=st.data())
@settings(max_examples=examples(60))
def test_partitions_are_chosen_as_the_library_chooses_them(kind: PrimitiveType, data: st.DataObject) -> None:
    expression = data.draw(expressions(kind))
    values = st.none() | VALUES[kind]
    if isinstance(kind, FLOATS):
        values = values | st.just(math.nan)
    some = data.draw(st.lists(values, min_size=1, max_size=6))
    schema = Schema(NestedField(ID, "c", kind))
    evaluate = expression_evaluator(schema, expression, case_sensitive=True)
    found = matching_partitions(expression, schema, PartitionColumns([(one,) for one in some]))
    assert found.tolist() == [evaluate(Record(one)) for one in some]


def test_bytes_of_partitions_are_compared_to_their_last_zero() -> None:
    schema = Schema(NestedField(ID, "c", BinaryType()))
    partitions = PartitionColumns([(b"a",), (b"a\0",), (None,)])
    assert matching_partitions(EqualTo("c", b"a\0"), schema, partitions).tolist() == [False, True, False]
    assert matching_partitions(NotEqualTo("c", b"a"), schema, partitions).tolist() == [False, True, True]


@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [
        (LongType(), b"\x01", b"\x01"),
        (IntegerType(), to_bytes(LongType(), 0), to_bytes(LongType(), 0)),
        (StringType(), "é".encode()[:1], "é".encode()[:1]),
        (DoubleType(), to_bytes(DoubleType(), math.nan), to_bytes(DoubleType(), 0.0)),
        (DoubleType(), to_bytes(DoubleType(), 0.0), to_bytes(DoubleType(), math.nan)),
        (DecimalType(9, 2), b"", b""),
    ],
    ids=str,
)
def test_a_bound_that_cannot_be_trusted_prunes_nothing(kind: IcebergType, low: bytes, high: bytes) -> None:
    value: Any = {"string": "zz", "decimal(9, 2)": Decimal("99.00")}.get(str(kind), 99)
    for made in (EqualTo, LessThan, GreaterThan):
        assert chosen(made_of(made, value), kind, [File((10, 0, 0), (low, high))]) == [True]


def test_bounds_from_before_a_promotion_are_decoded_as_what_they_were() -> None:
    wider = [
        (LongType(), to_bytes(IntegerType(), 5), to_bytes(IntegerType(), 7)),
        (DoubleType(), to_bytes(FloatType(), 5.0), to_bytes(FloatType(), 7.0)),
    ]
    for kind, low, high in wider:
        file = File((10, 0, 0), (low, high))
        assert chosen(made_of(EqualTo, 6), kind, [file]) == [True]
        assert chosen(made_of(EqualTo, 8), kind, [file]) == [False]
        assert chosen(made_of(LessThan, 5), kind, [file]) == [False]


def test_statistics_of_no_file() -> None:
    empty = StatisticPairs.of(None, 3)
    assert empty.counts(ID).tolist() == [-1, -1, -1]
    found = empty.bounds(ID, LongType())
    assert found is not None
    assert not found.known.any()
    assert np.array_equal(found.compared("less", 5), [False, False, False])
