"""Values written as text."""

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from lakelet.errors import InvalidError
from lakelet.model.arrow.arrow_types import to_arrow
from lakelet.model.literals import parse_literal
from lakelet.model.type_parser import parse_type


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("true", "BOOLEAN", True),
        (" F ", "BOOLEAN", False),
        ("-7", "INT", -7),
        (" 7 ", "BIGINT", 7),
        ("127", "TINYINT", 127),
        ("1.5", "DOUBLE", 1.5),
        ("1e3", "FLOAT", 1000.0),
        ("12.34", "DECIMAL(5, 2)", Decimal("12.34")),
        (" kept ", "STRING", " kept "),
        ("", "STRING", ""),
        ("abc", "BYTES", b"abc"),
        ("2024-02-29", "DATE", dt.date(2024, 2, 29)),
        ("10:11:12", "TIME(0)", dt.time(10, 11, 12)),
        ("10:11:12.345", "TIME(3)", dt.time(10, 11, 12, 345_000)),
        ("2024-01-01 10:11:12", "TIMESTAMP(3)", dt.datetime(2024, 1, 1, 10, 11, 12)),
        ("2024-01-01T10:11:12.345678", "TIMESTAMP(6)", dt.datetime(2024, 1, 1, 10, 11, 12, 345_678)),
        (
            "2024-01-01 10:11:12",
            "TIMESTAMP(3) WITH LOCAL TIME ZONE",
            dt.datetime(2024, 1, 1, 10, 11, 12, tzinfo=dt.UTC),
        ),
        (
            "2024-01-01 10:11:12+02:00",
            "TIMESTAMP(3) WITH LOCAL TIME ZONE",
            dt.datetime(2024, 1, 1, 8, 11, 12, tzinfo=dt.UTC),
        ),
    ],
)
def test_values(text: str, kind: str, value: object) -> None:
    found = parse_literal(text, parse_type(kind), "x")
    assert found.type == to_arrow(parse_type(kind))
    assert found == pa.scalar(value, found.type)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("maybe", "BOOLEAN"),
        ("128", "TINYINT"),
        ("1.5", "INT"),
        ("", "INT"),
        ("x", "DOUBLE"),
        ("1234.5", "DECIMAL(5, 2)"),
        ("1.234", "DECIMAL(5, 2)"),
        ("2023-02-29", "DATE"),
        ("25:00:00", "TIME(0)"),
        ("10:11:12.3456", "TIME(3)"),
        ("yesterday", "TIMESTAMP(6)"),
        ("2024-01-01 10:11:12.3456", "TIMESTAMP(3)"),
        ("toolong", "CHAR(3)"),
        ("toolong", "VARCHAR(6)"),
        ("toolong", "BINARY(3)"),
        ("[1]", "ARRAY<INT>"),
    ],
)
def test_text_that_is_no_such_value(text: str, kind: str) -> None:
    with pytest.raises(InvalidError, match="default of column 'x'"):
        parse_literal(text, parse_type(kind), "default of column 'x'")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("2024-01-01 00:00:00.5", "TIMESTAMP(0)"),
        ("2024-01-01 00:00:00.12345", "TIMESTAMP(4)"),
        ("2024-01-01 00:00:00.5", "TIMESTAMP(0) WITH LOCAL TIME ZONE"),
    ],
)
def test_times_with_more_digits_than_their_type(text: str, kind: str) -> None:
    with pytest.raises(InvalidError, match=r"default: expected a value of type TIMESTAMP.*, with more digits"):
        parse_literal(text, parse_type(kind), "default")
