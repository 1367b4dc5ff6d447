"""Which type changes are accepted: every pair of a list of types, decided by hand."""

import pytest

from lakelet.errors import InvalidError
from lakelet.model.type_parser import parse_type
from lakelet.model.widening import check_widening

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
