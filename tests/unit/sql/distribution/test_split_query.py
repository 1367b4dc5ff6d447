"""What workers run of a query, and what combines their rows."""

from __future__ import annotations

import duckdb
import pytest

from lakelet.sql.distribution.row_expressions import NotSplitError
from lakelet.sql.distribution.split_sources import Sources
from tests.unit.sql.distribution.parsed_queries import made_duck, parts_of, text_of, tree_of


@pytest.fixture(scope="module")
def duck() -> duckdb.DuckDBPyConnection:
    return made_duck()


def _split(duck: duckdb.DuckDBPyConnection, sql: str) -> tuple[str, str] | None:
    found = parts_of(duck, sql)
    if found is None:
        return None
    (part,) = found.parts
    return text_of(duck, part.worker), text_of(duck, found.combine)


@pytest.mark.parametrize(
    ("sql", "worker", "combine"),
    [
        (
            "SELECT g, avg(x) FROM t WHERE y > 1 GROUP BY g HAVING count(*) > 2 ORDER BY 2 LIMIT 3",
            "SELECT g AS c0, sum(x) AS c1, count(x) AS c2, count_star() AS c3 FROM t WHERE (y > 1) GROUP BY g",
            'SELECT c0 AS g, (CAST(sum(c1) AS DOUBLE) / CAST(sum(c2) AS DOUBLE)) AS "avg(x)" FROM partials GROUP BY c0 '
            "HAVING (CAST(COALESCE(sum(c3), 0) AS BIGINT) > 2) ORDER BY 2 LIMIT 3 OFFSET 0",
        ),
        (
            "SELECT count(*), sum(x) FILTER (WHERE g = 'a'), max(y) - min(y) AS spread FROM t",
            "SELECT count_star() AS c0, sum(x) FILTER (WHERE (g = 'a')) AS c1, max(y) AS c2, min(y) AS c3 FROM t",
            'SELECT CAST(COALESCE(sum(c0), 0) AS BIGINT) AS "count_star()", '
            "sum(c1) AS \"sum(x) FILTER (WHERE (g = 'a'))\", (max(c2) - min(c3)) AS spread FROM partials",
        ),
        (
            "SELECT g AS k, count(DISTINCT x), count(x) FROM t GROUP BY k ORDER BY k DESC",
            "SELECT g AS c0, x AS c1, count(x) AS c2 FROM t GROUP BY g, x",
            'SELECT c0 AS k, count(DISTINCT c1) AS "count(DISTINCT x)", CAST(COALESCE(sum(c2), 0) AS BIGINT) AS "count(x)" '
            "FROM partials GROUP BY c0 ORDER BY 1 DESC",
        ),
        (
            "SELECT id, x + 1 AS more FROM t ORDER BY y, more LIMIT 2 OFFSET 5",
            "SELECT c0, c1, c2 FROM (SELECT id, (x + 1) AS more, y FROM t ORDER BY y, more LIMIT 7 OFFSET 0) AS part(c0, c1, c2)",
            "SELECT c0 AS id, c1 AS more FROM partials ORDER BY c2, c1 LIMIT 2 OFFSET 5",
        ),
        (
            "SELECT DISTINCT t.g, u.name FROM t JOIN u USING (id) ORDER BY u.name",
            'SELECT c0, c1 FROM (SELECT DISTINCT t.g, u."name" FROM (t INNER JOIN u USING (id))) AS part(c0, c1)',
            'SELECT DISTINCT c0 AS g, c1 AS "name" FROM partials ORDER BY c1',
        ),
        (
            "SELECT * FROM t LEFT JOIN u ON t.id = u.id WHERE payload.age > 3",
            "SELECT c0, c1, c2, c3, c4, c5, c6, c7 FROM (SELECT * FROM (t LEFT JOIN u ON ((t.id = u.id))) "
            "WHERE (payload.age > 3)) AS part(c0, c1, c2, c3, c4, c5, c6, c7)",
            None,
        ),
        (
            "SELECT T.G, count(*) FROM t GROUP BY g",
            "SELECT g AS c0, count_star() AS c1 FROM t GROUP BY g",
            None,
        ),
    ],
)
def test_the_two_queries(duck: duckdb.DuckDBPyConnection, sql: str, worker: str, combine: str | None) -> None:
    found = _split(duck, sql)
    assert found is not None
    assert found[0] == worker
    assert combine is None or found[1] == combine


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT x FROM t LIMIT 3",
        "SELECT x FROM t ORDER BY x LIMIT 10%",
        "SELECT x FROM t WHERE random() < 0.5",
        "SELECT x FROM t WHERE moment < now()",
        "SELECT x FROM t WHERE moment < current_timestamp",
        "SELECT uuid(), x FROM t",
        "SELECT x FROM t USING SAMPLE 3",
        "SELECT x FROM t TABLESAMPLE 10%",
        "SELECT g COLLATE nocase FROM t",
        "SELECT string_agg(g) FROM t",
        "SELECT first(g) FROM t",
        "SELECT DISTINCT g FROM t ORDER BY x + 1",
        "SELECT t.x FROM t FULL JOIN u USING (id)",
        "SELECT x FROM t NATURAL JOIN u",
        "SELECT x FROM t POSITIONAL JOIN u",
        "SELECT t FROM t",
        "SELECT rowid FROM t",
        "SELECT COLUMNS('x') FROM t",
        "SELECT * REPLACE (x + 1 AS x) FROM t",
        "SELECT list_transform([x], lambda a: a + 1) FROM t",
        "SELECT upper(g) AS g, count(*) FROM t GROUP BY g",
        "SELECT upper(g) AS g FROM t ORDER BY g",
        "SELECT a.x FROM t a JOIN t b USING (id)",
        "SELECT x FROM t WHERE x IN (SELECT x FROM t)",
        "SELECT x FROM t WHERE x > (SELECT avg(id) FROM u)",
        "SELECT x FROM t WHERE x IN (SELECT id FROM u LIMIT 3)",
        "SELECT x FROM t WHERE x IN (SELECT id FROM u WHERE random() < 0.5)",
        "SELECT x FROM t WHERE EXISTS (SELECT 1 FROM t AS v WHERE v.id = t.id)",
        "SELECT count(*) FROM (SELECT x FROM t LIMIT 3) AS s",
        "SELECT count(*) FROM (SELECT x, row_number() OVER (ORDER BY random()) FROM t) AS s",
        "SELECT string_agg(g) OVER () FROM t",
        "SELECT x, list_transform([x], lambda a: a + 1), count(*) OVER () FROM t",
        "SELECT *, count(*) OVER () FROM t JOIN u USING (id)",
        "WITH RECURSIVE r AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM r WHERE a < 3) SELECT x FROM t, r",
        "WITH u AS (SELECT g, sum(x) AS s FROM t GROUP BY g) SELECT a.g FROM u a, u b",
        "VALUES (1)",
        "SELECT 1",
        "SELECT x FROM t, LATERAL (SELECT t.x) AS s(z)",
        "SELECT y FROM t AS s(a, b, c, d, e, f), u",
    ],
)
def test_what_is_not_split(duck: duckdb.DuckDBPyConnection, sql: str) -> None:
    try:
        names = duck.sql(sql).columns
    except duckdb.Error:
        names = ["x"]
    assert parts_of(duck, sql, names) is None


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("t", ["t"]),
        ("t, u", ["t", "u"]),
        ("t JOIN u USING (id)", ["t", "u"]),
        ("t LEFT JOIN u USING (id)", ["t"]),
        ("t RIGHT JOIN u USING (id)", ["u"]),
        ("t SEMI JOIN u USING (id)", ["t"]),
        ("t ANTI JOIN u USING (id)", ["t"]),
        ("t FULL JOIN u USING (id)", []),
        ("t LEFT JOIN (u JOIN v USING (id)) USING (id)", ["t"]),
        ("(t LEFT JOIN u USING (id)) RIGHT JOIN v USING (id)", ["v"]),
        ("(t LEFT JOIN u USING (id)) JOIN v USING (id)", ["t", "v"]),
        ("(t FULL JOIN u USING (id)) LEFT JOIN v USING (id)", []),
        ("t ASOF JOIN u USING (id)", []),
        ("range(3)", []),
    ],
)
def test_tables_that_can_be_split(duck: duckdb.DuckDBPyConnection, source: str, found: list[str]) -> None:
    select = tree_of(duck, f"SELECT 1 FROM {source}")["statements"][0]["node"]
    sources = Sources({"t": (), "u": (), "v": ()}, lambda _: ())
    try:
        ways = sources.ways(select)
    except NotSplitError:
        ways = []
    assert ["+".join(sorted(way.split)) for way in ways] == found
