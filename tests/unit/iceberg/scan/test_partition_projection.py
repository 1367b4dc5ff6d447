from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.expressions.visitors import expression_evaluator
from pyiceberg.schema import Schema
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    YearTransform,
)
from pyiceberg.typedef import Record
from pyiceberg.types import DateType, LongType, NestedField, TimestampType

from lakelet.iceberg.scan.partition_projection import partition_projection
from lakelet.iceberg.scan.plan import _Planner
from lakelet.iceberg.scan.pruning import planning_schema, pruning_expression
from lakelet.iceberg.scan.scan import _comparable
from lakelet.predicate.where import parse_where
from tests.unit.iceberg.ice_tables import ice_table, spec_of

_SCHEMA = Schema(
    NestedField(1, "ts", TimestampType()), NestedField(2, "dt", DateType()), NestedField(3, "id", LongType())
)
_PLANNED = Schema(*(NestedField(one.field_id, f"c{one.field_id}", one.field_type) for one in _SCHEMA.fields))


def _partitions(where: str, source: int, transform: Transform[Any, Any]) -> list[int]:
    """Which of the partitions -3 to 2 are looked at."""
    spec = spec_of((source, transform, "part"))
    condition = pruning_expression(parse_where(where, _comparable(_SCHEMA)), _SCHEMA)
    kind = Schema(*spec.partition_type(_PLANNED).fields)
    evaluate = expression_evaluator(kind, partition_projection(_PLANNED, spec)(condition), case_sensitive=True)
    return [value for value in range(-3, 3) if evaluate(Record(value))]


@pytest.mark.parametrize(
    ("where", "partitions"),
    [
        ("ts = '1969-12-31 23:00:00'", [-1, 0]),
        ("ts = '1969-12-30 23:00:00'", [-2, -1]),
        ("ts = '1970-01-01 23:00:00'", [0]),
        ("ts IN ('1969-12-30 23:00:00', '1970-01-02 01:00:00', '1970-01-03 01:00:00')", [-2, -1, 1, 2]),
        ("ts < '1969-12-31 00:00:00'", [-3, -2, -1]),
        ("ts <= '1969-12-31 00:00:00'", [-3, -2, -1, 0]),
        ("ts < '1970-01-02 00:00:00'", [-3, -2, -1, 0]),
        ("ts >= '1969-12-31 00:00:00'", [-1, 0, 1, 2]),
        ("ts > '1969-12-31 23:59:59.999999'", [0, 1, 2]),
        ("ts BETWEEN '1969-12-30 01:00:00' AND '1969-12-30 02:00:00'", [-2, -1]),
    ],
)
def test_moments_before_1970_may_be_one_partition_too_high(where: str, partitions: list[int]) -> None:
    assert _partitions(where, 1, DayTransform()) == partitions


@pytest.mark.parametrize(
    ("where", "source", "transform", "partitions"),
    [
        ("ts = '1968-07-01 00:00:00'", 1, YearTransform(), [-2, -1]),
        ("ts = '1969-11-15 00:00:00'", 1, MonthTransform(), [-2, -1]),
        ("ts = '1969-12-31 22:30:00'", 1, HourTransform(), [-2, -1]),
        ("dt = '1968-07-01'", 2, YearTransform(), [-2, -1]),
        ("dt = '1969-11-15'", 2, MonthTransform(), [-2, -1]),
        ("dt = '1969-12-30'", 2, DayTransform(), [-2]),
        ("dt = '1969-12-30'", 2, IdentityTransform(), [-2]),
        ("id = -2", 3, IdentityTransform(), [-2]),
    ],
)
def test_which_partitions_are_widened(
    where: str, source: int, transform: Transform[Any, Any], partitions: list[int]
) -> None:
    assert _partitions(where, source, transform) == partitions


@pytest.mark.parametrize(
    "where",
    [
        *("ts > '9999-12-31 23:59:59.999999'", "ts < '0001-01-01 00:00:00'", "ts < 'infinity'", "ts > '-infinity'"),
        *("ts IN ('1970-01-01 00:00:00', 'infinity')", "dt > '9999-12-31'", "dt < '0001-01-01'", "dt < 'infinity'"),
    ],
)
def test_moments_that_have_no_year_in_the_library(where: str) -> None:
    source = 1 if where.startswith("ts") else 2
    transforms: list[Transform[Any, Any]] = [YearTransform(), MonthTransform()]
    for transform in transforms:
        assert _partitions(where, source, transform) == [-3, -2, -1, 0, 1, 2]


def test_buckets_stay() -> None:
    found = [_partitions(f"dt = '{date(1969, 1, day)}'", 2, BucketTransform(3)) for day in range(1, 9)]
    assert {len(one) for one in found} == {1}


def test_plans_look_at_them(tmp_path: Path) -> None:
    table = ice_table(tmp_path, _SCHEMA, spec_of((1, DayTransform(), "day")))
    # Bounds of the manifest say day 0, as an old writer would for the last hour before 1970.
    table.library.append(
        pa.table(
            {
                "ts": pa.array([datetime(1970, 1, 1)], pa.timestamp("us")),
                "dt": pa.array([None], pa.date32()),
                "id": pa.array([1], pa.int64()),
            }
        )
    )
    table = table.reloaded()
    snapshot = table.metadata.current_snapshot()
    assert snapshot is not None
    (manifest,) = snapshot.manifests(table.library.io)

    def may_match(where: str) -> bool:
        condition = pruning_expression(parse_where(where, _comparable(_SCHEMA)), _SCHEMA)
        return _Planner(table.metadata, planning_schema(table.metadata, _SCHEMA), condition).may_match(manifest)

    assert may_match("ts = '1969-12-31 23:00:00'")
    assert not may_match("ts = '1969-12-30 23:00:00'")
