import pytest

from lakelet.sql.lexer.errors import SqlError
from lakelet.sql.lexer.words import statements_of, words_of


def kinds(text: str) -> list[tuple[str, str]]:
    return [(word.kind, word.text) for word in words_of(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT a", [("word", "SELECT"), ("word", "a")]),
        ("t$files", [("word", "t$files")]),
        ("a.b", [("word", "a"), ("symbol", "."), ("word", "b")]),
        ('"a ""b"""', [("quoted", 'a "b"')]),
        ("`a ``b```", [("quoted", "a `b`")]),
        ("'it''s'", [("string", "it's")]),
        ("E'a\\tb\\x41\\101'", [("string", "a\tbAA")]),
        ("E'\\UFFFFFFFF'", [("string", "UFFFFFFFF")]),
        ("$$a 'b'$$", [("string", "a 'b'")]),
        ("$x$a $$ b$x$", [("string", "a $$ b")]),
        ("X'00ff'", [("string", "X'00ff'")]),
        ("$1 $name ?", [("parameter", "$1"), ("parameter", "$name"), ("parameter", "?")]),
        ("1 1.5 .5 1e-3 1_000", [("number", text) for text in ("1", "1.5", ".5", "1e-3", "1_000")]),
        ("1..2", [("number", "1"), ("symbol", "."), ("number", ".2")]),
        ("a=>b", [("word", "a"), ("symbol", "=>"), ("word", "b")]),
        ("a::INT", [("word", "a"), ("symbol", "::"), ("word", "INT")]),
        ("größe", [("word", "größe")]),
        (
            "👤.🔑 ✍x$files, a🙂b",
            [("word", "👤"), ("symbol", "."), ("word", "🔑"), ("word", "✍x$files"), ("symbol", ","), ("word", "a🙂b")],
        ),
        # Spaces beyond ASCII end a word.
        ("é\u00a0ü\u3000🙂", [("word", "é"), ("word", "ü"), ("word", "🙂")]),
        ("🦆", [("word", "🦆")]),
    ],
)
def test_words_say_what_they_are(text: str, expected: list[tuple[str, str]]) -> None:
    assert kinds(text) == expected


def test_words_know_their_places() -> None:
    text = "SELECT /* x */ 'a'  -- end\n , b"
    assert [text[word.start : word.end] for word in words_of(text)] == ["SELECT", "'a'", ",", "b"]


def test_comments_may_hold_others() -> None:
    assert kinds("a /* b /* c */ ; */ d") == [("word", "a"), ("word", "d")]


def test_a_keyword_is_upper_case_and_never_quoted() -> None:
    first, second, third = words_of("select \"select\" 'select'")
    assert (first.keyword, second.keyword, third.keyword) == ("SELECT", "", "")
    assert (first.is_name, second.is_name, third.is_name) == (True, True, False)


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("SELECT 'a", 8, "has no end"),
        ('SELECT "a', 8, "has no end"),
        ("SELECT `a", 8, "has no end"),
        ("a /* b", 3, "has no end"),
        ('SELECT ""', 8, "cannot be empty"),
        ("``", 1, "cannot be empty"),
    ],
)
def test_what_does_not_end_is_shown_where_it_begins(text: str, column: int, message: str) -> None:
    with pytest.raises(SqlError, match=message) as caught:
        words_of(text)
    assert (caught.value.line, caught.value.column) == (1, column)


def test_statements_are_cut_at_semicolons_outside_of_texts_and_comments() -> None:
    found = statements_of("; a 'x;y' ; /* ; */ b -- ;\n;; c")
    assert [[word.text for word in words] for words in found] == [["a", "x;y"], ["b"], ["c"]]
    assert statements_of(" ; -- nothing") == []
