import pytest

from lakelet.sql.engine.engine_errors import Placed
from lakelet.sql.lexer.errors import SqlError
from lakelet.sql.lexer.words import words_of
from lakelet.sql.query.incremental import Incremental, incrementals

VALUES: dict[str, object] = {
    "'t'": "t",
    "'shop.t'": "shop.t",
    "'`a b`.t'": "`a b`.t",
    "1": 1,
    "2": 2,
    "'x'": "x",
    "NULL": None,
}
VALUES |= {"''": "", "'a b'": "a b", "'\"'": '"', "'t!'": "t!"}


def found(text: str) -> tuple[list[Incremental], str]:
    calls, edits = incrementals(text, words_of(text), lambda expression: VALUES[expression])
    return calls, Placed(text, tuple(edits)).changed


@pytest.mark.parametrize(
    ("call", "parts", "start", "end", "with_kinds"),
    [
        ("changes('shop.t', 1, 2)", ("shop", "t"), 1, 2, True),
        ("CHANGES('t', 1)", ("t",), 1, None, True),
        ("changes('`a b`.t', 1)", ("a b", "t"), 1, None, True),
        ("paimon_incremental_query('t', 1, 2)", ("t",), 1, 2, False),
    ],
)
def test_a_call_becomes_a_name(
    call: str, parts: tuple[str, ...], start: int, end: int | None, with_kinds: bool
) -> None:
    calls, changed = found(f"SELECT * FROM {call} AS c WHERE id = 1")
    (one,) = calls
    assert (one.parts, one.start, one.end, one.with_kinds) == (parts, start, end, with_kinds)
    assert changed == f'SELECT * FROM "{one.stand_in}" AS c WHERE id = 1'


@pytest.mark.parametrize(
    "text",
    ["SELECT changes FROM t", "SELECT changes(1) FROM t", "SELECT * FROM t AS changes", "SELECT 'changes(1)'"],
)
def test_the_word_alone_is_a_name_like_any_other(text: str) -> None:
    assert found(text) == ([], text)


def test_several_calls_have_names_of_their_own() -> None:
    calls, _ = found("SELECT * FROM changes('t', 1) a JOIN changes('t', 2) b ON a.id = b.id")
    assert len({one.stand_in for one in calls}) == 2


@pytest.mark.parametrize(
    "call",
    [
        "changes('t')",
        "changes('t', 'x')",
        "changes(1, 2)",
        "changes('t', 1, 2, 1)",
        "changes('', 1)",
        "changes('a b', 1)",
        "changes('\"', 1)",
        "changes('t!', 1)",
        "changes('t', NULL)",
    ],
)
def test_other_arguments_are_refused_at_the_call(call: str) -> None:
    with pytest.raises(SqlError) as caught:
        found(f"SELECT * FROM {call}")
    assert caught.value.column == len("SELECT * FROM ") + 1
