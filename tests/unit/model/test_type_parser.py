"""Type text to types and back, and errors that say where the text stops making sense."""

import pytest

from lakelet.errors import InvalidError
from lakelet.model.type_parser import parse_type
from lakelet.model.types import MAX_LENGTH, Array, Atomic, Field, Kind, Map, Multiset, Row


@pytest.mark.parametrize(
    "text",
    [
        "BOOLEAN",
        "TINYINT",
        "SMALLINT",
        "INT",
        "BIGINT NOT NULL",
        "FLOAT",
        "DOUBLE",
        "DECIMAL(10, 2)",
        "DECIMAL(38, 38) NOT NULL",
        "CHAR(1)",
        "VARCHAR(20)",
        "STRING",
        "BINARY(16)",
        "VARBINARY(7)",
        "BYTES",
        "DATE",
        "TIME(0)",
        "TIME(9)",
        "TIMESTAMP(3)",
        "TIMESTAMP(9)",
        "TIMESTAMP(6) WITH LOCAL TIME ZONE",
        "TIMESTAMP(0) WITH LOCAL TIME ZONE NOT NULL",
        "ARRAY<STRING>",
        "ARRAY<INT NOT NULL> NOT NULL",
        "MAP<STRING, ARRAY<INT>>",
        "MULTISET<STRING>",
        "ROW<`a` INT, `b c` STRING NOT NULL>",
        "ROW<`a` ROW<`b` MAP<STRING, ROW<`c` DECIMAL(5, 0)>>>> NOT NULL",
    ],
)
def test_text_survives_a_round_trip(text: str) -> None:
    assert str(parse_type(text)) == text


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("integer", "INT"),
        ("Long", "BIGINT"),
        ("bool", "BOOLEAN"),
        ("real", "FLOAT"),
        ("double precision", "DOUBLE"),
        ("dec(5)", "DECIMAL(5, 0)"),
        ("numeric", "DECIMAL(10, 0)"),
        ("text", "STRING"),
        ("varchar", "STRING"),
        ("varchar(2147483647)", "STRING"),
        ("varbinary", "BYTES"),
        ("char", "CHAR(1)"),
        ("timestamp", "TIMESTAMP(6)"),
        ("TIMESTAMP(3) WITHOUT TIME ZONE", "TIMESTAMP(3)"),
        ("timestamp_ltz(3)", "TIMESTAMP(3) WITH LOCAL TIME ZONE"),
        ("time without time zone", "TIME(0)"),
        ("  array < int >  ", "ARRAY<INT>"),
        ("struct<a: int, b: string>", "ROW<`a` INT, `b` STRING>"),
        ("ROW(a INT NULL)", "ROW<`a` INT>"),
    ],
)
def test_other_spellings(text: str, canonical: str) -> None:
    assert str(parse_type(text)) == canonical


def test_the_values_that_come_out() -> None:
    assert parse_type("DECIMAL(10, 2) NOT NULL") == Atomic(Kind.DECIMAL, 10, 2, nullable=False)
    assert parse_type("STRING") == Atomic(Kind.VARCHAR, MAX_LENGTH)
    assert parse_type("ARRAY<MULTISET<INT>>") == Array(Multiset(Atomic(Kind.INT)))
    assert parse_type("MAP<INT, DATE> NOT NULL") == Map(Atomic(Kind.INT), Atomic(Kind.DATE), nullable=False)


def test_row_fields_have_quoted_names_and_comments() -> None:
    found = parse_type("ROW<`it``s` INT 'a ''quoted'' word', b STRING COMMENT 'plain', `INT` INT>")
    assert found == Row(
        (
            Field(-1, "it`s", Atomic(Kind.INT), "a 'quoted' word"),
            Field(-1, "b", Atomic(Kind.VARCHAR, MAX_LENGTH), "plain"),
            Field(-1, "INT", Atomic(Kind.INT)),
        )
    )


@pytest.mark.parametrize(
    ("text", "position", "expected"),
    [
        ("", 0, "a type"),
        ("   ", 3, "a type"),
        ("NUMBER", 0, "a known type"),
        ("ARRAY<", 6, "a type"),
        ("ARRAY<INT", 9, "'>'"),
        ("ARRAY INT", 6, "'<'"),
        ("MAP<INT>", 7, "','"),
        ("MAP<INT, >", 9, "a known type"),
        ("INT INT", 4, "the end"),
        ("INT(3)", 0, "fewer parameters"),
        ("DECIMAL(39)", 0, "between 1 and 38"),
        ("DECIMAL(0)", 0, "between 1 and 38"),
        ("DECIMAL(5, 6)", 0, "a scale of at most 5"),
        ("DECIMAL(1, 2, 3)", 0, "fewer parameters"),
        ("DECIMAL(x)", 8, "a number"),
        ("DECIMAL(5", 9, "')'"),
        ("CHAR(0)", 0, "between 1 and"),
        ("VARCHAR(2147483648)", 0, "between 1 and"),
        ("TIMESTAMP(10)", 0, "between 0 and 9"),
        ("ROW<>", 4, "a field name"),
        ("ROW<a>", 5, "a known type"),
        ("ROW<a INT,>", 10, "a field name"),
        ("INT; DROP", 3, "a type"),
        ("ARRAY<FOO>", 6, "a known type"),
    ],
)
def test_errors_name_the_place_and_what_was_expected(text: str, position: int, expected: str) -> None:
    with pytest.raises(InvalidError) as caught:
        parse_type(text)
    assert f"at position {position}," in str(caught.value)
    assert expected in str(caught.value)
    assert repr(text) in str(caught.value)
