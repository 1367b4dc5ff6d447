"""The parser of INSERT statements."""

from __future__ import annotations

import pytest

from lakelet.errors import InvalidError
from lakelet.spark.sql.insert import Insert, parse_insert
from lakelet.sql.lexer.spark_words import words_of


def parsed(text: str) -> Insert | None:
    return parse_insert(text, words_of(text))


@pytest.mark.parametrize(
    ("text", "overwrites", "partition", "columns", "query"),
    [
        ("INSERT INTO a.b VALUES (1)", False, (), None, "VALUES (1)"),
        ("INSERT INTO TABLE a.b SELECT 1;", False, (), None, "SELECT 1"),
        ("INSERT INTO a.b (x, `y z`) SELECT 1, 2", False, (), ("x", "y z"), "SELECT 1, 2"),
        ("INSERT INTO a.b (SELECT 1)", False, (), None, "(SELECT 1)"),
        ("INSERT INTO a.b (x) (SELECT 1)", False, (), ("x",), "(SELECT 1)"),
        ("INSERT OVERWRITE a.b TABLE c", True, (), None, "TABLE c"),
        (
            "INSERT OVERWRITE TABLE a.b PARTITION (dt = DATE '2026-01-01', h) SELECT 1",
            True,
            (("dt", "DATE '2026-01-01'"), ("h", None)),
            None,
            "SELECT 1",
        ),
        (
            "INSERT INTO a.b PARTITION (p = concat('a', 'b')) (x) WITH q AS (SELECT 1) SELECT * FROM q",
            False,
            (("p", "concat('a', 'b')"),),
            ("x",),
            "WITH q AS (SELECT 1) SELECT * FROM q",
        ),
    ],
)
def test_parts_of_an_insert(
    text: str,
    overwrites: bool,
    partition: tuple[tuple[str, str | None], ...],
    columns: tuple[str, ...] | None,
    query: str,
) -> None:
    insert = parsed(text)
    assert insert is not None
    assert (insert.target.database, insert.target.table) == ("a", "b")
    assert (insert.overwrites, insert.partition, insert.columns) == (overwrites, partition, columns)
    assert text[slice(*insert.query)] == query


def test_by_name_and_common_tables_before_it() -> None:
    text = "WITH q AS (SELECT 1 AS x) INSERT INTO a.b BY NAME SELECT x FROM q"
    insert = parsed(text)
    assert insert is not None
    assert insert.by_name
    assert text[slice(*insert.prefix)] == "WITH q AS (SELECT 1 AS x) "
    assert text[slice(*insert.query)] == "SELECT x FROM q"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1",
        "SELECT insert FROM a.b",
        "INSERT INTO b SELECT 1",
        "INSERT INTO d.c.a.b SELECT 1",
        "INSERT OVERWRITE DIRECTORY '/tmp/x' SELECT 1",
        "EXPLAIN INSERT INTO a.b SELECT 1",
        "INSERT",
    ],
)
def test_other_statements(text: str) -> None:
    assert parsed(text) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("INSERT INTO a.b", "expected a query"),
        ("INSERT INTO a.b (x, y)", "expected a query"),
        ("INSERT INTO a.b (x, ) SELECT 1", "something is missing"),
        ("INSERT INTO a.b (x + 1) SELECT 1", "expected the name of a column"),
        ("INSERT INTO a.b (x SELECT 1", "not closed"),
        ("INSERT INTO a.b (x) BY NAME SELECT 1", "do not go together"),
        ("INSERT INTO a.b VERSION AS OF 1 SELECT 1", "newest version"),
        ("INSERT INTO a.b REPLACE WHERE x = 1 SELECT 1", "found 'REPLACE' at character 17"),
        ("INSERT INTO a.b PARTITION (x) IF NOT EXISTS SELECT 1", "found 'IF'"),
        ("INSERT INTO a.b PARTITION x SELECT 1", "expected \\(column = value"),
        ("INSERT INTO a.b PARTITION (x > 1) SELECT 1", "expected column = value"),
    ],
)
def test_what_is_wrong_is_said(text: str, message: str) -> None:
    with pytest.raises(InvalidError, match=message):
        parsed(text)
