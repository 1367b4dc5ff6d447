"""Which type changes are accepted: every pair of a list of types, decided by hand."""

import pytest

from lakelet.errors import InvalidError
from lakelet.model.schema_change.widening import casts_as_paimon, check_widening
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Atomic

ACCEPTED = {
    "BOOLEAN": ["BOOLEAN"],
    "TINYINT": [
        "TINYINT",
        "SMALLINT",
        "INT",
        "BIGINT",
        "FLOAT",
        "DOUBLE",
        "DECIMAL(5, 2)",
        "DECIMAL(6, 3)",
        "DECIMAL(19, 0)",
        "DECIMAL(19, 2)",
    ],
    "SMALLINT": ["SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(19, 0)", "DECIMAL(19, 2)"],
    "INT": ["INT", "BIGINT", "DOUBLE", "DECIMAL(19, 0)", "DECIMAL(19, 2)"],
    "BIGINT": ["BIGINT", "DECIMAL(19, 0)"],
    "FLOAT": ["FLOAT", "DOUBLE"],
    "DOUBLE": ["DOUBLE"],
    "DECIMAL(5, 2)": ["DECIMAL(5, 2)", "DECIMAL(6, 3)", "DECIMAL(19, 2)"],
    "DECIMAL(6, 3)": ["DECIMAL(6, 3)"],
    "DECIMAL(19, 0)": ["DECIMAL(19, 0)"],
    "DECIMAL(19, 2)": ["DECIMAL(19, 2)"],
    "CHAR(3)": ["CHAR(3)", "VARCHAR(3)", "VARCHAR(4)", "STRING"],
    "VARCHAR(3)": ["VARCHAR(3)", "VARCHAR(4)", "STRING"],
    "VARCHAR(4)": ["VARCHAR(4)", "STRING"],
    "STRING": ["STRING"],
    "BINARY(3)": ["BINARY(3)", "BYTES"],
    "BYTES": ["BYTES"],
    "DATE": ["DATE"],
    "TIME(0)": ["TIME(0)"],
    "TIME(3)": ["TIME(3)"],
    "TIMESTAMP(3)": ["TIMESTAMP(3)", "TIMESTAMP(6)"],
    "TIMESTAMP(6)": ["TIMESTAMP(6)"],
    "TIMESTAMP(6) WITH LOCAL TIME ZONE": ["TIMESTAMP(6) WITH LOCAL TIME ZONE"],
    "ARRAY<INT>": ["ARRAY<INT>"],
    "ARRAY<BIGINT>": ["ARRAY<BIGINT>"],
    "MAP<STRING, INT>": ["MAP<STRING, INT>"],
}


@pytest.mark.parametrize("old", ACCEPTED)
def test_every_pair(old: str) -> None:
    for new in ACCEPTED:
        if new in ACCEPTED[old]:
            check_widening(parse_type(old), parse_type(new), "c")
        else:
            with pytest.raises(InvalidError, match=r"column 'c' cannot change from"):
                check_widening(parse_type(old), parse_type(new), "c")


def test_nullability_is_not_its_business() -> None:
    check_widening(parse_type("INT NOT NULL"), parse_type("BIGINT"), "c")
    check_widening(parse_type("ARRAY<INT> NOT NULL"), parse_type("ARRAY<INT>"), "c")


@pytest.mark.parametrize(
    ("old", "new", "alike"),
    [
        ("INT", "INT NOT NULL", True),
        ("CHAR(5)", "CHAR(5)", True),
        ("BIGINT", "INT", True),
        ("INT", "STRING", True),
        ("DOUBLE", "FLOAT", True),
        ("DOUBLE", "INT", False),
        ("STRING", "VARCHAR(3)", False),
        ("STRING", "CHAR(5)", False),
        ("BYTES", "BINARY(4)", False),
        ("TIMESTAMP(3)", "TIMESTAMP(0)", False),
        ("BIGINT", "TIMESTAMP(3)", False),
        ("DECIMAL(10, 3)", "DECIMAL(5, 1)", False),
    ],
)
def test_lossy_casts_that_are_read_as_paimon_reads_them(old: str, new: str, alike: bool) -> None:
    before, after = parse_type(old), parse_type(new)
    assert isinstance(before, Atomic)
    assert isinstance(after, Atomic)
    assert casts_as_paimon(before, after) is alike
