"""Types in statements: every spelling, and where an error points."""

import duckdb
import pytest

from lakelet.errors import InvalidError
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field, Row
from lakelet.sql.lexer.errors import SqlError
from lakelet.sql.lexer.word_reader import WordReader
from lakelet.sql.lexer.words import words_of
from lakelet.sql.statements.definition.type_words import read_type


def read(text: str) -> object:
    reader = WordReader(text, words_of(text))
    found = read_type(reader)
    reader.finish()
    return found


@pytest.mark.parametrize(
    "text",
    [
        "BOOLEAN",
        "TINYINT",
        "SMALLINT",
        "INT",
        "INTEGER",
        "BIGINT NOT NULL",
        "FLOAT",
        "REAL",
        "DOUBLE",
        "DOUBLE PRECISION",
        "DECIMAL(10)",
        "DECIMAL(38, 18)",
        "NUMERIC(5, 2)",
        "CHAR",
        "CHAR(3)",
        "VARCHAR",
        "VARCHAR(7)",
        "STRING NOT NULL",
        "TEXT",
        "BINARY",
        "BINARY(4)",
        "VARBINARY(9)",
        "BYTES",
        "DATE",
        "TIME",
        "TIME(3)",
        "TIME(3) WITHOUT TIME ZONE",
        "TIMESTAMP",
        "TIMESTAMP(9)",
        "TIMESTAMP(3) WITHOUT TIME ZONE",
        "TIMESTAMP(3) WITH LOCAL TIME ZONE",
        "TIMESTAMP_LTZ(3)",
        "ARRAY<INT NOT NULL>",
        "ARRAY<ARRAY<INT>>",
        "MULTISET<STRING>",
        "MAP<STRING, INT NOT NULL> NOT NULL",
        "ROW<a INT COMMENT 'x', b STRING>",
        "ROW(a INT, `b c` MAP<INT, ROW<x DATE>>)",
        "STRUCT<a: INT, b: ARRAY<STRING>>",
        "int null",
    ],
)
def test_as_everywhere_else(text: str) -> None:
    assert read(text) == parse_type(text)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("INTEGER[]", "ARRAY<INT>"),
        ("DECIMAL", "DECIMAL(18, 3)"),
        ("NUMERIC NOT NULL", "DECIMAL(18, 3) NOT NULL"),
        ("ROW<a DECIMAL>", "ROW<a DECIMAL(18, 3)>"),
        ("DECIMAL(4, 1)[][]", "ARRAY<ARRAY<DECIMAL(4, 1)>>"),
        ("INT[] NOT NULL", "ARRAY<INT> NOT NULL"),
        ("MAP(VARCHAR, INTEGER)", "MAP<STRING, INT>"),
        ('STRUCT(a INTEGER, "b c" VARCHAR[])', "ROW<a INT, `b c` ARRAY<STRING>>"),
        ("BLOB", "BYTES"),
        ("BYTEA", "BYTES"),
        ("TIMESTAMPTZ", "TIMESTAMP_LTZ(6)"),
        ("TIMESTAMPTZ(3)", "TIMESTAMP_LTZ(3)"),
        ("TIMESTAMP(3) WITH TIME ZONE", "TIMESTAMP_LTZ(3)"),
        ("TIMESTAMP WITH TIME ZONE", "TIMESTAMP_LTZ(6)"),
        ("TIMESTAMP_S", "TIMESTAMP(0)"),
        ("TIMESTAMP_MS", "TIMESTAMP(3)"),
        ("TIMESTAMP_NS", "TIMESTAMP(9)"),
        ("DATETIME", "TIMESTAMP(6)"),
        ("INT8", "BIGINT"),
        ("FLOAT8", "DOUBLE"),
    ],
)
def test_as_duckdb_says_it(text: str, same: str) -> None:
    assert read(text) == parse_type(same)


def test_comments_of_fields() -> None:
    found = read("ROW<a INT COMMENT 'it''s', b ROW<c DATE 'short'>>")
    assert isinstance(found, Row)
    assert found.fields[0].description == "it's"
    inner = found.fields[1].type
    assert isinstance(inner, Row)
    assert inner.fields == (Field(-1, "c", parse_type("DATE"), "short"),)


@pytest.mark.parametrize(
    ("text", "column", "reason"),
    [
        ("INTT", 1, "no type of a table is called INTT; did you mean INT"),
        ("ARRAY<INTT>", 7, "no type of a table is called INTT"),
        ("UUID", 1, "STRING may do"),
        ("MAP<STRING, HUGEINT>", 13, r"DECIMAL\(38, 0\) may do"),
        ("DECIMAL(39)", 1, "a precision or length of DECIMAL between 1 and 38"),
        ("DECIMAL(3, 4)", 1, "a scale of at most 3"),
        ("TIMESTAMP(10)", 1, "between 0 and 9"),
        ("INT(3)", 1, "fewer parameters of INT"),
        ("VARCHAR(-1)", 1, "between 1 and"),
        ("VARCHAR(x)", 9, "expected a whole number, found x"),
        ("INT[3]", 4, "an array of a fixed length"),
        ("ARRAY<INT", 10, "expected >, found the end"),
        ("ARRAY(INT)", 6, r"expected <, found \("),
        ("MAP<INT>", 8, "expected ,, found >"),
        ("ROW<>", 4, "expected < or "),
        ("ROW<a INT, A INT>", 12, "field 'A' is given twice"),
        ("'INT'", 1, "expected a type, found 'INT'"),
        ("", 1, "expected a type, found the end"),
        ("INT INT", 5, "expected the end"),
    ],
)
def test_errors_point_at_the_word(text: str, column: int, reason: str) -> None:
    with pytest.raises(SqlError, match=reason) as caught:
        read(text)
    assert (caught.value.line, caught.value.column) == (1, column)
    assert isinstance(caught.value, InvalidError)


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("INT16", "SMALLINT"),
        ("INT32", "INT"),
        ("INT64", "BIGINT"),
        ("INT8", "BIGINT"),
        ("SIGNED", "INT"),
        ("INTEGRAL", "INT"),
        ("OID", "BIGINT"),
        ("LOGICAL", "BOOLEAN"),
    ],
)
def test_names_that_duckdb_has_for_types_of_tables(alias: str, name: str) -> None:
    assert read(alias) == parse_type(name)
    # The name means the same in a query.
    assert duckdb.sql(f"SELECT CAST(NULL AS {alias})").types == duckdb.sql(f"SELECT CAST(NULL AS {name})").types


def test_every_type_of_duckdb_is_taken_or_answered_with_one_that_may_do() -> None:
    names = {
        row[0].upper()
        for row in duckdb.sql("SELECT type_name FROM duckdb_types() WHERE NOT contains(type_name, ' ')").fetchall()
    }
    # Names that take parameters, and types that are no column's.
    for name in sorted(names - {"ARRAY", "LIST", "MAP", "ROW", "STRUCT", "TUPLE", "NULL", "TYPE"}):
        try:
            read(name)
        except SqlError as error:
            assert "may do" in str(error), name  # noqa: PT017
