"""Values of queries in the types of columns: what is kept, what is refused."""

import datetime as dt
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest

from lakelet.errors import InvalidError
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field
from lakelet.sql.statements.rows.conversions import converted


def convert(expression: str, column: str) -> object:
    """The value that an expression becomes in a column."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        kind = connection.sql(f"SELECT {expression} AS x").to_arrow_table().schema.field(0).type
        value = converted("x", kind, Field(0, "c", parse_type(column)))
        query = f"SELECT {value} AS y FROM (SELECT {expression} AS x)"
        found: object = connection.sql(query).to_arrow_table().column(0)[0].as_py()
        return found


@pytest.mark.parametrize(
    ("expression", "column", "value"),
    [
        ("1", "BIGINT", 1),
        ("1.0", "INT", 1),
        ("1e0", "INT", 1),
        ("sum(3)", "INT", 3),
        ("'7'", "INT", 7),
        ("' 7.0 '", "INT", 7),
        ("0.1", "DOUBLE", 0.1),
        ("0.1e0", "FLOAT", 0.10000000149011612),
        ("5", "DOUBLE", 5.0),
        ("1.20", "DECIMAL(3, 1)", Decimal("1.2")),
        ("'.5'", "DECIMAL(3, 1)", Decimal("0.5")),
        ("1.1e0", "DECIMAL(10, 2)", Decimal("1.10")),
        ("12", "STRING", "12"),
        ("true", "STRING", "true"),
        ("'true'", "BOOLEAN", True),
        ("DATE '2026-01-02'", "STRING", "2026-01-02"),
        ("'2026-01-02'", "DATE", dt.date(2026, 1, 2)),
        ("TIMESTAMP '2026-01-02 00:00:00'", "DATE", dt.date(2026, 1, 2)),
        ("DATE '2026-01-02'", "TIMESTAMP(3)", dt.datetime(2026, 1, 2)),
        ("'2026-01-02 03:04:05.678'", "TIMESTAMP(3)", dt.datetime(2026, 1, 2, 3, 4, 5, 678000)),
        ("'2026-01-02 03:00:00+02'", "TIMESTAMP(6) WITH LOCAL TIME ZONE", dt.datetime(2026, 1, 2, 1, tzinfo=dt.UTC)),
        (
            "TIMESTAMP '2026-01-02 03:00:00'",
            "TIMESTAMP(6) WITH LOCAL TIME ZONE",
            dt.datetime(2026, 1, 2, 3, tzinfo=dt.UTC),
        ),
        ("'10:11:12'", "TIME(3)", dt.time(10, 11, 12)),
        ("'abc'", "BYTES", b"abc"),
        ("NULL", "INT", None),
        ("CAST(NULL AS VARCHAR)", "INT", None),
        ("[1.0, NULL]", "ARRAY<INT>", [1, None]),
        ("['2026-01-02']", "ARRAY<DATE>", [dt.date(2026, 1, 2)]),
        ("[]", "ARRAY<INT>", []),
        ("{'a': 1}", "ROW<a BIGINT, b STRING>", {"a": 1, "b": None}),
        ("MAP {'k': 1}", "MAP<STRING, BIGINT>", [("k", 1)]),
    ],
)
def test_kept(expression: str, column: str, value: object) -> None:
    assert convert(expression, column) == value


@pytest.mark.parametrize(
    ("expression", "column"),
    [
        ("1.5", "INT"),
        ("1.5e0", "INT"),
        ("CAST('nan' AS DOUBLE)", "INT"),
        ("300", "TINYINT"),
        ("9007199254740993", "DOUBLE"),
        ("1e300", "FLOAT"),
        ("'7.5'", "INT"),
        ("'seven'", "INT"),
        ("'1e3'", "INT"),
        ("1.25", "DECIMAL(3, 1)"),
        ("'1.25'", "DECIMAL(3, 1)"),
        ("1.115e0", "DECIMAL(10, 2)"),
        ("100", "DECIMAL(2, 0)"),
        ("'2026-01-02 10:00:00'", "DATE"),
        ("TIMESTAMP '2026-01-02 10:00:00'", "DATE"),
        ("'2026-13-01'", "DATE"),
        ("'2026-01-02 03:00:00+02'", "TIMESTAMP(6)"),
        ("'2026-01-02 03:00:00.1234567'", "TIMESTAMP(6)"),
        ("'10:11:12.1234567'", "TIME(3)"),
        ("'maybe'", "BOOLEAN"),
        ("[1.5]", "ARRAY<INT>"),
        ("{'a': 'x'}", "ROW<a BIGINT>"),
    ],
)
def test_refused_by_its_value(expression: str, column: str) -> None:
    with pytest.raises(duckdb.InvalidInputException, match=r"column 'c' is .* does not convert to it"):
        convert(expression, column)


@pytest.mark.parametrize(
    ("expression", "column"),
    [
        ("true", "INT"),
        ("1", "BOOLEAN"),
        ("1", "DATE"),
        ("DATE '2026-01-02'", "INT"),
        ("'x'::BLOB", "STRING"),
        ("1", "BYTES"),
        ("INTERVAL 1 DAY", "INT"),
        ("1", "ARRAY<INT>"),
        ("[1]", "INT"),
        ("{'b': 1}", "ROW<a INT>"),
        ("MAP {'k': 1}", "ARRAY<INT>"),
    ],
)
def test_refused_by_its_type(expression: str, column: str) -> None:
    with pytest.raises(InvalidError, match=r"column 'c' is .*; a value of type .* does not convert to it"):
        convert(expression, column)


def test_values_of_the_column_s_own_type_are_left_alone() -> None:
    assert converted("x", pa.int32(), Field(0, "c", parse_type("INT"))) == "x"
    assert converted("x", pa.string(), Field(0, "c", parse_type("VARCHAR(3)"))) == "x"
    assert converted("x", pa.timestamp("us"), Field(0, "c", parse_type("TIMESTAMP(3)"))) == "x"
