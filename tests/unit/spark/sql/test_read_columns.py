"""Which columns a statement may read, by its tokens alone."""

from __future__ import annotations

import pytest

from lakelet.spark.sql.read_columns import read_columns
from lakelet.sql.lexer.spark_words import words_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT a, `B c` FROM x.y WHERE d.e > 1 ORDER BY f", {"a", "b c", "d", "e", "f"}),
        ("SELECT count(*), a * b, (c) * 2, 2 * -d, e[0] * `f`, 10L * (g), 1.5D * h.date FROM x.y", set("abcdefgh")),
        ("SELECT t.date * 2, sum(a * CASE WHEN b THEN 1 END * c) FROM x.y t", {"date", "a", "b", "c"}),
        ("SELECT /*+ REPARTITION(3, a) */ b FROM x.y", {"a", "b"}),
        ("SELECT extract(year FROM a), trim(BOTH 'x' FROM b), (c IS NOT DISTINCT FROM d) FROM x.y", set("abcd")),
        ("SELECT CAST(a AS DECIMAL(10, 2)), sum(b) OVER (PARTITION BY c) FROM x.y WHERE d IN (1)", set("abcd")),
        ("SELECT count(*) FILTER (WHERE a) FROM x.y o JOIN x.z USING (b) WHERE (c) AND (d)", set("abcd")),
        ("WITH q AS (SELECT a FROM x.y TABLESAMPLE (5 ROWS)) SELECT b FROM q UNION (SELECT c FROM x.z)", set("abc")),
        ("INSERT INTO x.w (e) SELECT a FROM x.y WHERE EXISTS (SELECT b FROM x.z)", {"a", "b", "e"}),
    ],
)
def test_columns_that_a_statement_mentions(text: str, expected: set[str]) -> None:
    found = read_columns(words_of(text))
    assert found is not None
    assert expected <= found
    assert "zzz" not in found


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM x.y",
        "SELECT DISTINCT * FROM x.y",
        "SELECT ALL * FROM x.y",
        "SELECT 1, * FROM x.y",
        "SELECT y.* FROM x.y",
        "SELECT struct(*) FROM x.y",
        "SELECT a IN (*) FROM x.y",
        "SELECT count(*, a) FROM x.y",
        "SELECT udfs.count(*) FROM x.y",
        "SELECT * EXCEPT (a) FROM x.y",
        "SELECT /*+ REPARTITION(3) */ * FROM x.y",
        "SELECT /*+ COALESCE(1), BROADCAST(y)*/* FROM x.y",
        "SELECT a FROM (SELECT /*+ REBALANCE */ * FROM x.y)",
        "FROM x.y MAP * USING 'cat' AS (a, b)",
        "FROM x.y REDUCE * USING 'cat' AS (a, b)",
        "SELECT a THEN * FROM x.y",
        "SELECT a FROM x.y NATURAL JOIN x.z",
        "SELECT a FROM x.y PIVOT (sum(b) FOR c IN (1))",
        "SELECT IDENTIFIER('a') FROM x.y",
        "TABLE x.y",
        "FROM x.y",
        "FROM x.y |> WHERE a = 1",
        "SELECT a FROM x.y |> JOIN x.z USING (a)",
        "SELECT a FROM x.y | JOIN x.z USING (a)",
        "SELECT a, b FROM x.w UNION ALL FROM x.y",
        "SELECT a, b FROM x.w UNION DISTINCT FROM x.y",
        "SELECT a, b FROM x.w EXCEPT (FROM x.y)",
        "SELECT a FROM x.w WHERE a IN (FROM x.y)",
        "WITH q AS (SELECT a FROM x.w) FROM x.y",
    ],
)
def test_statements_that_read_columns_they_do_not_mention(text: str) -> None:
    assert read_columns(words_of(text)) is None


@pytest.mark.parametrize(
    "tables",
    [
        "x.y AS o(a, b, c)",
        "x.y o(a, b, c)",
        "x.y AS o (a, b, c)",
        "x.y AS date(a, b, c)",
        "x.date order(a, b, c)",
        "x.y VERSION AS OF 3 o(a, b, c)",
        "x.y VERSION AS OF 'tag' `o`(a, b, c)",
        "x.y TABLESAMPLE (5 ROWS) o(a, b, c)",
        "(x.y) o(a, b, c)",
        "(x.y JOIN x.z USING (a)) AS o(a, b, c)",
    ],
)
def test_columns_that_are_renamed_by_position_are_all_read(tables: str) -> None:
    assert read_columns(words_of(f"SELECT a FROM {tables}")) is None


def test_names_in_double_quotes_are_mentioned() -> None:
    found = read_columns(words_of('SELECT "Some column" FROM x.y', quotes_names=True))
    assert found is not None
    assert "some column" in found
