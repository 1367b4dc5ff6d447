"""No statistics and no partition values that writers make keep pyiceberg from finding a row."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.expressions import (
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
    NotNaN,
    NotNull,
    StartsWith,
)
from pyiceberg.schema import Schema
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    YearTransform,
)
from pyiceberg.types import DateType, DecimalType, DoubleType, LongType, NestedField, StringType, TimestampType

from tests.tiers.examples import examples
from tests.unit.iceberg.ice_tables import committed, ice_table, spec_of

_SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "x", DoubleType()),
    NestedField(3, "s", StringType()),
    NestedField(4, "ts", TimestampType()),
    NestedField(5, "day", DateType()),
    NestedField(6, "d", DecimalType(6, 2)),
)
_ARROW = pa.schema(
    [
        ("id", pa.int64()),
        ("x", pa.float64()),
        ("s", pa.string()),
        ("ts", pa.timestamp("us")),
        ("day", pa.date32()),
        ("d", pa.decimal128(6, 2)),
    ]
)
_values: dict[str, st.SearchStrategy[Any]] = {
    "id": st.integers(-30, 30),
    "x": st.sampled_from([-math.inf, -1.5, -0.0, 0.0, 2.5, math.inf, math.nan]),
    "s": st.sampled_from(["", "null", "a", "ab", "abc", "🦆", "🦆x", "z" * 20, "\ud7ff" * 17, "\U0010ffff" * 17]),
    "ts": st.integers(-5, 5).map(lambda hours: datetime(1970, 1, 1) + timedelta(hours=17 * hours, microseconds=hours)),
    "day": st.integers(-40, 40).map(lambda days: date(1970, 1, 1) + timedelta(days)),
    "d": st.integers(-300, 300).map(lambda cents: Decimal(cents).scaleb(-2)),
}
_rows = st.lists(
    st.fixed_dictionaries({name: st.none() | values for name, values in _values.items()}), min_size=1, max_size=25
)
_CHOICES: list[tuple[int, Transform[Any, Any]]] = [
    (1, BucketTransform(3)),
    (1, TruncateTransform(7)),
    (2, IdentityTransform()),
    (3, IdentityTransform()),
    (3, TruncateTransform(2)),
    (4, DayTransform()),
    (4, HourTransform()),
    (5, MonthTransform()),
    (5, YearTransform()),
    (6, TruncateTransform(50)),
    (6, BucketTransform(2)),
]
_specs = st.lists(st.sampled_from(_CHOICES), max_size=2, unique_by=lambda choice: choice[0])
_COMPARISONS: list[tuple[Any, Callable[[Any, Any], bool]]] = [
    (EqualTo, operator.eq),
    (NotEqualTo, operator.ne),
    (LessThan, operator.lt),
    (LessThanOrEqual, operator.le),
    (GreaterThan, operator.gt),
    (GreaterThanOrEqual, operator.ge),
]


def _is_comparable(value: Any) -> bool:
    return not (isinstance(value, float) and math.isnan(value))


@st.composite
def _conditions(draw: st.DrawFn) -> tuple[BooleanExpression, Callable[[dict[str, Any]], bool]]:
    """A condition for pyiceberg, and the same in Python; nothing is compared with NaN."""
    name = draw(st.sampled_from(list(_values)))
    literal = draw(_values[name].filter(_is_comparable))
    match draw(st.integers(0, 4)):
        case 0:
            return IsNull(name), lambda row: row[name] is None
        case 1:
            return NotNull(name), lambda row: row[name] is not None
        case 2 if name == "x":
            nan = draw(st.booleans())
            made: BooleanExpression = IsNaN(name) if nan else NotNaN(name)
            return made, lambda row: row[name] is not None and math.isnan(row[name]) == nan
        case 2 if name == "s":
            return StartsWith(name, literal), lambda row: row[name] is not None and row[name].startswith(literal)
        case 3:
            others = draw(st.lists(_values[name].filter(_is_comparable), min_size=1, max_size=3))
            return In(name, {literal, *others}), lambda row: row[name] in (literal, *others)
        case _:
            expression, compare = draw(st.sampled_from(_COMPARISONS))
            return expression(name, literal), lambda row: row[name] is not None and compare(row[name], literal)


@settings(max_examples=examples(25))
@given(_rows, _specs, st.lists(_conditions(), min_size=3, max_size=10))
def test_no_row_is_pruned(
    rows: list[dict[str, Any]],
    fields: list[tuple[int, Transform[Any, Any]]],
    conditions: list[tuple[BooleanExpression, Callable[[dict[str, Any]], bool]]],
) -> None:
    with TemporaryDirectory() as folder:
        spec = spec_of(*((source, transform, f"p{at}") for at, (source, transform) in enumerate(fields)))
        table = ice_table(Path(folder), _SCHEMA, spec, properties={"write.parquet.row-group-limit": "4"})
        after = committed(table, [pa.RecordBatch.from_pylist(rows, schema=_ARROW)])
        for condition, holds in conditions:
            planned = [task.file.file_path for task in after.library.scan(condition).plan_files()]
            kept = [row for path in planned for row in _read(path)]
            wanted = [row for row in rows if holds(row)]
            assert _missing(wanted, kept) == [], condition


def _read(path: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(path.removeprefix("file://"), partitioning=None).to_pylist()
    return found


def _missing(wanted: list[dict[str, Any]], kept: list[dict[str, Any]]) -> list[str]:
    left = [_shown(row) for row in kept]
    missing = []
    for row in map(_shown, wanted):
        if row in left:
            left.remove(row)
        else:
            missing.append(row)
    return missing


def _shown(row: dict[str, Any]) -> str:
    return repr([row[name] for name in _ARROW.names])
