"""Queries assembled from parts of a statement."""

import pytest

from lakelet import Lake
from lakelet.errors import InvalidError
from lakelet.sql.context import Context
from lakelet.sql.lexer.errors import SqlError
from lakelet.sql.lexer.word_reader import WordReader
from lakelet.sql.lexer.words import words_of
from lakelet.sql.statement import Params, Statement
from lakelet.sql.statements.text.query_text import QueryText, Span
from lakelet.sql.statements.text.spans import read_span
from lakelet.storage.memory import MemoryStore


def statement(text: str, params: Params = None) -> Statement:
    return Statement(WordReader(text, words_of(text)), params)


def whole(made: Statement) -> Span:
    return Span(0, len(made.reader.words))


def test_parameters_get_names_and_only_those_used_are_handed_over() -> None:
    made = statement("? + ? * ?", [1, 2, 3])
    text = QueryText(made).add("SELECT ").add_span(Span(2, 5)).add(" AS x, ").add_span(Span(0, 1))
    assert text.text == "SELECT $lakelet_2 * $lakelet_3 AS x, $lakelet_1"
    assert text.run(Context(Lake(MemoryStore()))).rows() == [(6, 1)]
    numbered = QueryText(statement("$2 - $1", [1, 5])).add("SELECT ").add_span(Span(0, 3))
    assert numbered.run(Context(Lake(MemoryStore()))).rows() == [(4,)]
    named = QueryText(statement("$a || $b", {"a": "x", "b": "y"})).add("SELECT ").add_span(Span(2, 3))
    assert named.run(Context(Lake(MemoryStore()))).rows() == [("y",)]


@pytest.mark.parametrize(
    ("text", "params", "message"),
    [
        ("? + ?", [1], "parameter 2: there is no value"),
        ("?", [1, 2], "parameter 2: the statement does not name it"),
        ("$a", {"b": 1}, "parameter a: there is no value"),
        ("1", {"b": 1}, "parameter b: the statement does not name it"),
        ("?", None, "parameter 1: there is no value"),
    ],
)
def test_there_is_a_value_for_each_parameter(text: str, params: Params, message: str) -> None:
    with pytest.raises(InvalidError, match=message):
        QueryText(statement(text, params))


def test_errors_point_at_the_statement() -> None:
    made = statement("UPDATE t\nSET a = nope + 1")
    text = QueryText(made).add("SELECT 1 AS one,\n 2 AS two, (").add_span(Span(5, 8)).add(")")
    with pytest.raises(SqlError) as caught:
        text.run(Context(Lake(MemoryStore())))
    assert (caught.value.line, caught.value.column) == (2, 9)


def test_errors_in_our_own_text_have_no_place() -> None:
    made = statement("1")
    with pytest.raises(InvalidError) as caught:
        QueryText(made).add("SELECT nope, ").add_span(whole(made)).run(Context(Lake(MemoryStore())))
    assert not isinstance(caught.value, SqlError)


def test_columns_may_be_qualified_by_the_whole_name_of_the_table() -> None:
    made = statement("shop.t.a + x.shop.t.b + Shop . T . c + shop.t")
    assert QueryText(made, ("shop", "t")).add_span(whole(made)).text == "t.a + x.shop.t.b + T . c + shop.t"
    assert QueryText(made).add_span(whole(made)).text == "shop.t.a + x.shop.t.b + Shop . T . c + shop.t"


@pytest.mark.parametrize(
    ("text", "stops", "found"),
    [
        ("a + 1, b", (",",), "a + 1"),
        ("f(a, b), c", (",",), "f(a, b)"),
        ("CASE WHEN a THEN b END WHEN", ("WHEN",), "CASE WHEN a THEN b END"),
        ("CASE WHEN CASE WHEN a THEN b END THEN 1 END THEN", ("THEN",), "CASE WHEN CASE WHEN a THEN b END THEN 1 END"),
        ("a IS DISTINCT FROM b FROM c", ("FROM",), "a IS DISTINCT FROM b"),
        ("a IS NOT DISTINCT FROM b", ("FROM",), "a IS NOT DISTINCT FROM b"),
        ("[1, 2]) , x", (",",), "[1, 2]"),
        ("'a, b' , x", (",",), "'a, b'"),
    ],
)
def test_where_expressions_end(text: str, stops: tuple[str, ...], found: str) -> None:
    reader = WordReader(text, words_of(text))
    span = read_span(reader, *stops)
    assert reader.source(span.first, span.behind) == found


@pytest.mark.parametrize("text", ["", ", a", ") a", "(a"])
def test_where_no_expression_is(text: str) -> None:
    with pytest.raises(SqlError):
        read_span(WordReader(text, words_of(text)), ",")
