"""Plain literals have the values and the types that DuckDB gives them."""

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelet.errors import LakeletError
from lakelet.sql.lexer.word_reader import WordReader
from lakelet.sql.lexer.words import words_of
from lakelet.sql.statement import Statement
from lakelet.sql.statements.rows.insert_words import read_insert
from lakelet.sql.statements.rows.literal_rows import literal_rows
from tests.tiers.examples import examples

NUMBERS = st.integers(-(2**70), 2**70) | st.sampled_from([2**31 - 1, 2**31, -(2**31), 2**63 - 1, 2**63, -(2**63)])
TEXTS = st.text(max_size=8).map(lambda text: "'" + text.replace("'", "''") + "'")
LITERALS = (
    NUMBERS.map(str)
    | NUMBERS.map(lambda number: f"+{abs(number)}")
    | TEXTS
    | st.sampled_from(
        ["NULL", "null", "007", "1_000", "1.0", "1e3", "0x1F", "true", "- 5", "--5\n5", "(1)", "-'1'", "X'00'", "$$a$$"]
    )
)


def read(values: str) -> pa.Table | None:
    text = f"INSERT INTO t VALUES {values}"
    statement = Statement(WordReader(text, words_of(text)))
    insert = read_insert(statement)
    return literal_rows(statement.reader.words, statement.reader.text, insert.values)


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(LITERALS, min_size=1, max_size=3))
def test_a_column_is_what_duckdb_reads(literals: list[str]) -> None:
    values = ", ".join(f"({one})" for one in literals)
    try:
        found = read(values)
    except LakeletError:
        return
    if found is None:
        return
    expected = duckdb.sql(f"VALUES {values}").to_arrow_table()  # type: ignore[union-attr]
    assert found.schema.types == expected.schema.types
    assert found.column(0).to_pylist() == expected.column(0).to_pylist()


@pytest.mark.parametrize(
    ("values", "kinds"),
    [
        ("(1, 'a')", [pa.int32(), pa.string()]),
        ("(1, 'it''s'), (NULL, NULL)", [pa.int32(), pa.string()]),
        ("(1), (-3000000000)", [pa.int64()]),
        ("(-2147483648)", [pa.int32()]),
        ("(9223372036854775807)", [pa.int64()]),
    ],
)
def test_plain_literals_are_read(values: str, kinds: list[pa.DataType]) -> None:
    found = read(values)
    assert found is not None
    assert found.schema.types == kinds


@pytest.mark.parametrize(
    "values",
    [
        "(NULL)",
        "(1), ('a')",
        "(DEFAULT)",
        "(9223372036854775808)",
        "(1.5)",
        "(1 + 1)",
        "(lower('a'))",
        "(E'a')",
        "('a\nb')",
    ],
)
def test_anything_else_is_left_to_duckdb(values: str) -> None:
    assert read(values) is None
