from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
    TimeType,
)

from lakelet.iceberg.scan.pruning import planning_schema, pruning_expression
from lakelet.iceberg.scan.scan import _comparable
from lakelet.predicate.tree import Comparison, InList, Like, Not
from lakelet.predicate.where import parse_where
from tests.unit.iceberg.ice_tables import ice_table

_KINDS = (
    *(IntegerType(), StringType(), DoubleType(), FloatType(), DecimalType(9, 2), DateType(), TimestampType()),
    *(TimestamptzType(), BooleanType(), BinaryType()),
)
_SCHEMA = Schema(*(NestedField(number, f"a.{number}", kind) for number, kind in enumerate(_KINDS, 1)))


@pytest.mark.parametrize(
    ("where", "expression"),
    [
        ('"a.1" > 5', "GreaterThan(term=Reference(name='c1'), literal=LongLiteral(5))"),
        ('"a.1" IS NULL', "IsNull(term=Reference(name='c1'))"),
        ('"a.1" IN (1, 1)', "EqualTo(term=Reference(name='c1'), literal=LongLiteral(1))"),
        ("\"a.2\" LIKE 'ab%c'", "StartsWith(term=Reference(name='c2'), literal=literal('ab'))"),
        ("\"a.2\" LIKE '%c'", "AlwaysTrue()"),
        ("\"a.2\" NOT LIKE 'ab%'", "AlwaysTrue()"),
        ('"a.3" < 1.5', "LessThan(term=Reference(name='c3'), literal=DoubleLiteral(1.5))"),
        ("\"a.3\" = 'nan'", "IsNaN(term=Reference(name='c3'))"),
        ("\"a.3\" > 'nan'", "AlwaysFalse()"),
        ("\"a.3\" < 'nan'", "NotNaN(term=Reference(name='c3'))"),
        ("\"a.3\" <= 'nan'", "NotNull(term=Reference(name='c3'))"),
        ("\"a.3\" < 'inf'", "AlwaysTrue()"),
        ('"a.3" <> 1', "AlwaysTrue()"),
        ('"a.5" = 1.5', "EqualTo(term=Reference(name='c5'), literal=DecimalLiteral(Decimal('1.50')))"),
        ("\"a.6\" = '1970-01-03'", "EqualTo(term=Reference(name='c6'), literal=DateLiteral(2))"),
        (
            "\"a.7\" >= '1970-01-01 00:00:01'",
            "GreaterThanOrEqual(term=Reference(name='c7'), literal=TimestampLiteral(1000000))",
        ),
        ('"a.9"', "EqualTo(term=Reference(name='c9'), literal=BooleanLiteral(True))"),
        ('abs("a.1") = 1', "AlwaysTrue()"),
        ('NOT ("a.1" = 1 OR abs("a.1") = 1)', "NotEqualTo(term=Reference(name='c1'), literal=LongLiteral(1))"),
    ],
)
def test_conditions(where: str, expression: str) -> None:
    assert repr(pruning_expression(parse_where(where, _comparable(_SCHEMA)), _SCHEMA)) == expression


def test_nan_is_above_everything() -> None:
    found = repr(pruning_expression(Comparison("a.4", ">=", pa.scalar(1.5, pa.float32())), _SCHEMA))
    assert found.startswith("Or(left=GreaterThanOrEqual(")
    assert "IsNaN(term=Reference(name='c4'))" in found
    several = InList("a.3", pa.array([1.5, float("nan")]))
    assert "IsNaN" in repr(pruning_expression(several, _SCHEMA))
    assert repr(pruning_expression(Not(several), _SCHEMA)) == "AlwaysTrue()"


def test_what_is_not_compared() -> None:
    schema = Schema(NestedField(1, "t", TimeType()), NestedField(2, "s", StringType()))
    assert repr(pruning_expression(Comparison("t", "=", pa.scalar(5, pa.time64("us"))), schema)) == "AlwaysTrue()"
    assert repr(pruning_expression(Comparison("gone", "=", pa.scalar(5)), schema)) == "AlwaysTrue()"
    assert repr(pruning_expression(Like("s", "a!%%", escape="!"), schema)) == "AlwaysTrue()"
    assert repr(pruning_expression(None, schema)) == "AlwaysTrue()"
    assert [field.name for field in _comparable(schema)] == ["s"]


def test_dropped_columns_are_known_to_partition_specs(tmp_path: Path) -> None:
    table = ice_table(tmp_path, Schema(NestedField(1, "a", IntegerType()), NestedField(2, "b", StringType())))
    with table.library.update_schema() as update:
        update.delete_column("a")
        update.add_column("a", StringType())
    schema = planning_schema(table.library.metadata, table.library.schema())
    assert [(field.name, str(field.field_type)) for field in schema.fields] == [
        ("c1", "int"),
        ("c2", "string"),
        ("c3", "string"),
    ]
