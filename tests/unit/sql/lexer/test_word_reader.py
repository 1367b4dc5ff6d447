from collections.abc import Callable

import pytest

from lakelet.sql.lexer.errors import SqlError
from lakelet.sql.lexer.word_reader import WordReader
from lakelet.sql.lexer.words import words_of


def reader(text: str) -> WordReader:
    return WordReader(text, words_of(text))


def test_keywords_are_read_in_any_case() -> None:
    found = reader("drop Table IF EXISTS a.`b c`")
    found.expect("DROP", "TABLE")
    assert found.accept("IF", "EXISTS")
    assert not found.accept("IF")
    assert found.name_parts() == ("a", "b c")
    assert found.at_end
    found.finish()


def test_a_quoted_name_is_no_keyword() -> None:
    found = reader('"TABLE"')
    assert not found.accept("TABLE")
    assert found.name() == "TABLE"


def test_accept_reads_all_or_nothing() -> None:
    found = reader("IF EXIST")
    assert not found.accept("IF", "EXISTS")
    assert found.peek().text == "IF"


def test_numbers_texts_and_lists() -> None:
    found = reader("-12 'x' (a, b) 1_000")
    assert found.integer() == -12
    assert found.string() == "x"
    assert found.listed(found.name) == ["a", "b"]
    assert found.integer() == 1000


@pytest.mark.parametrize(
    ("text", "read", "column", "message"),
    [
        ("DROP x", lambda one: one.expect("DROP", "TABLE"), 6, "expected TABLE, found x"),
        ("x", lambda one: one.one_of("A", "B", "C"), 1, "expected A, B or C, found x"),
        ("'x'", lambda one: one.name("a table"), 1, "expected a table, found 'x'"),
        ("x", lambda one: one.string(), 1, "expected a text in quotes"),
        ("1.5", lambda one: one.integer(), 1, "expected a whole number, found 1.5"),
        ("a.", lambda one: one.name_parts(), 3, "found the end"),
        ("(a,", lambda one: one.listed(one.name), 4, "found the end"),
        ("(a b)", lambda one: one.listed(one.name), 4, "expected \\), found b"),
        ("x", lambda one: one.finish(), 1, "expected the end of the statement, found x"),
        ("(a", lambda one: one.expression(), 3, "a closing parenthesis"),
        (", a", lambda one: one.expression(","), 1, "expected an expression"),
    ],
)
def test_what_is_wrong_is_shown_at_its_word(
    text: str, read: Callable[[WordReader], object], column: int, message: str
) -> None:
    with pytest.raises(SqlError, match=message) as caught:
        read(reader(text))
    assert caught.value.column == column


def test_an_expression_ends_at_a_stop_that_stands_outside_of_parentheses() -> None:
    found = reader("f(a, [b, c]) + 1, d) e")
    assert found.expression(",") == "f(a, [b, c]) + 1"
    assert found.accept(",")
    assert found.expression(",") == "d"
    assert found.accept(")")
    assert found.rest() == "e"
    assert found.rest() == ""


def test_a_line_and_a_column_count_from_one() -> None:
    found = reader("SELECT\n  a\n  b")
    found.place = 2
    error = found.error("something")
    assert (error.line, error.column) == (3, 3)
