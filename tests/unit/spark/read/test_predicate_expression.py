"""Which conditions Spark can decide exactly. The conditions themselves are tested on a session, in tests/spark."""

import pytest

from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field
from lakelet.predicate.tree import Like
from lakelet.predicate.where import parse_where
from lakelet.spark.read.predicate_expression import _pattern, translates

TYPES = {
    "i": "INT",
    "x": "DOUBLE",
    "s": "STRING",
    "b": "BYTES",
    "d": "DATE",
    "m": "DECIMAL(38, 10)",
    "t3": "TIMESTAMP(3)",
    "t9": "TIMESTAMP(9)",
    "z6": "TIMESTAMP(6) WITH LOCAL TIME ZONE",
    "at": "TIME(3)",
    "list": "ARRAY<INT>",
}
FIELDS = [Field(number, name, parse_type(text)) for number, (name, text) in enumerate(TYPES.items())]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("i > 1 AND NOT (x = 'nan' OR s LIKE 'a%')", True),
        ("b = X'00' AND m IN (1, 2.5) AND d < '2024-01-01'", True),
        ("t3 = '2024-01-01 00:00:00.001' AND z6 IS NOT NULL", True),
        ("list IS NULL AND at IS NULL AND t9 IS NOT NULL", True),
        ("i > 1.5 OR i IN (1, NULL)", True),
        ("TRUE", True),
        ("length(s) > 1", False),
        ("i > 1 AND length(s) > 1", False),
        ("t9 < '2024-01-01'", False),
        ("at < '12:00:00'", False),
        ("t3 > '290000-01-01'", False),
        ("d < '1582-10-04' OR d > '1582-10-15' OR t3 = '1582-10-10'", True),
        ("d = '1582-10-05'", False),
        ("d IN ('2024-01-01', '1582-10-14')", False),
        ("z6 >= '1900-01-01 00:00:00+00:00'", True),
        ("z6 >= '1899-12-31 23:59:59+00:00'", False),
    ],
)
def test_what_translates(condition: str, expected: bool) -> None:
    types = {field.name: field.type for field in FIELDS}
    assert translates(parse_where(condition, FIELDS), types) is expected


def test_long_lists_do_not_travel_in_a_plan() -> None:
    condition = f"i IN ({', '.join(map(str, range(1_001)))})"
    assert not translates(parse_where(condition, FIELDS), {field.name: field.type for field in FIELDS})


@pytest.mark.parametrize(
    ("pattern", "escape", "expected"),
    [
        ("a%_", None, "a%_"),
        ("a\\%", None, "a\\\\%"),
        ("a!%!!!_b", "!", "a\\%!\\_b"),
        ("\\%\\\\x\\y", "\\", "\\%\\\\xy"),
    ],
)
def test_patterns(pattern: str, escape: str | None, expected: str) -> None:
    assert _pattern(Like("s", pattern, escape)) == expected
