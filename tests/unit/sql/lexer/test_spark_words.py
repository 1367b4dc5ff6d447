"""The lexer of Spark SQL: tokens with their positions."""

from __future__ import annotations

import pytest

from lakelet.errors import InvalidError
from lakelet.sql.lexer.spark_words import words_of


def kinds(text: str, *, quotes_names: bool = False) -> list[tuple[str, str]]:
    return [(word.text, word.kind) for word in words_of(text, quotes_names=quotes_names)]


def test_words_stand_where_the_text_has_them() -> None:
    text = "SELECT /*+ REPARTITION(3, `a b`) */ 10L, r'x y' -- no\nFROM t GROUP  BY ünï"
    assert [text[word.start : word.end] for word in words_of(text)] == [
        *("SELECT", "/*+", "REPARTITION", "(", "3", ",", "`a b`", ")", "*/", "10L", ",", "r'x y'"),
        *("FROM", "t", "GROUP", "BY", "ünï"),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("'a b'", [("a b", "string")]),
        ('"a b"', [("a b", "string")]),
        ("r'a \\'", [("a \\", "string")]),
        ("X'1F'", [("1F", "string")]),
        ("10L", [("10L", "number")]),
        ("1.5D", [("1.5D", "number")]),
        ("1a", [("1a", "word")]),
        ("`a``b`", [("a`b", "quoted")]),
        ("`a\\`", [("a\\", "quoted")]),
    ],
)
def test_literals_and_names(text: str, expected: list[tuple[str, str]]) -> None:
    assert kinds(text) == expected


def test_double_quotes_may_hold_names() -> None:
    assert kinds('"a b"."c""d", \'e\', r"f", `g`', quotes_names=True) == [
        *(("a b", "quoted"), (".", "symbol"), ('c"d', "quoted"), (",", "symbol")),
        *(("e", "string"), (",", "symbol"), ("f", "string"), (",", "symbol"), ("g", "quoted")),
    ]


def test_which_words_the_grammar_uses() -> None:
    used = {word.text: word.in_grammar for word in words_of("SELECT amount, date FROM t WHERE DISTINCT ALL map END")}
    assert [name for name, is_used in used.items() if not is_used] == ["amount", "t"]


@pytest.mark.parametrize("text", ["SELECT 'open", "SELECT `open", "SELECT $$it's$$"])
def test_text_that_cannot_be_read(text: str) -> None:
    with pytest.raises(InvalidError, match="cannot be read"):
        words_of(text)


def test_names_that_cannot_be_read() -> None:
    with pytest.raises(InvalidError, match="has a backslash"):
        words_of(r'SELECT "a\" FROM t', quotes_names=True)
