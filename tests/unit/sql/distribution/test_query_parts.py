"""The parts of queries of queries: what workers run of them, and what is left."""

from __future__ import annotations

import duckdb
import pytest

from tests.unit.sql.distribution.parsed_queries import made_duck, parts_of, text_of

_PART = "AS part"


@pytest.fixture(scope="module")
def duck() -> duckdb.DuckDBPyConnection:
    return made_duck()


def _written(duck: duckdb.DuckDBPyConnection, sql: str, large: str = "tu") -> tuple[list[str], str] | None:
    found = parts_of(duck, sql, large=large)
    if found is None:
        return None
    return [text_of(duck, part.worker) for part in found.parts], text_of(duck, found.combine)


@pytest.mark.parametrize(
    ("sql", "workers", "combine"),
    [
        (
            # Each row of the inner query is a row of the table: the whole is split.
            "WITH s AS (SELECT g, x + 1 AS more FROM t WHERE y > 1) SELECT g, sum(more) FROM s GROUP BY ALL",
            ["SELECT g AS c0, sum(more) AS c1 FROM (SELECT g, (x + 1) AS more FROM t WHERE (y > 1)) AS s GROUP BY g"],
            'SELECT c0 AS g, sum(c1) AS "sum(more)" FROM partials GROUP BY c0',
        ),
        (
            "SELECT max(n) FROM (SELECT g, count(*) AS n FROM t GROUP BY g) AS s(g, n) WHERE g > 'a'",
            ["SELECT g AS c0, count_star() AS c1 FROM t GROUP BY g"],
            "SELECT max(n) FROM (SELECT c0 AS g, CAST(COALESCE(sum(c1), 0) AS BIGINT) AS n FROM partials GROUP BY c0) AS s(g, n) "
            "WHERE (g > 'a')",
        ),
        (
            "SELECT g, x, count(*), grouping(g) FROM t GROUP BY ROLLUP (g, x)",
            ["SELECT g AS c0, x AS c1, count_star() AS c2 FROM t GROUP BY g, x"],
            'SELECT c0 AS g, c1 AS x, CAST(COALESCE(sum(c2), 0) AS BIGINT) AS "count_star()", GROUPING(c0) AS "GROUPING(g)" '
            "FROM partials GROUP BY GROUPING SETS ((),(c0),(c0, c1))",
        ),
        (
            "SELECT g, rank() OVER (ORDER BY sum(x) DESC) AS r FROM t GROUP BY g QUALIFY r < 3",
            ["SELECT g AS c0, sum(x) AS c1 FROM t GROUP BY g"],
            "SELECT c0 AS g, rank() OVER (ORDER BY sum(c1) DESC) AS r FROM partials GROUP BY c0 "
            "QUALIFY (rank() OVER (ORDER BY sum(c1) DESC) < 3)",
        ),
        (
            "SELECT count(DISTINCT x) FILTER (WHERE y > 1), count_if(y > 2) FROM t",
            ["SELECT x AS c0, (y > 1) AS c1, count_if((y > 2)) AS c2 FROM t GROUP BY x, (y > 1)"],
            'SELECT count(DISTINCT c0) FILTER (WHERE c1) AS "count(DISTINCT x) FILTER (WHERE (y > 1))", '
            'sum(c2) AS "count_if((y > 2))" FROM partials',
        ),
        (
            "SELECT id, row_number() OVER (PARTITION BY g ORDER BY x DESC) AS r FROM t WHERE y > 1 QUALIFY r < 3",
            [
                "SELECT c0, c1, c2 FROM (SELECT id, g, x FROM t WHERE (y > 1) QUALIFY (row_number() OVER "
                f"(PARTITION BY g ORDER BY x DESC) <= 2)) {_PART}(c0, c1, c2)"
            ],
            "SELECT c0 AS id, row_number() OVER (PARTITION BY c1 ORDER BY c2 DESC) AS r FROM partials QUALIFY (r < 3)",
        ),
        (
            "SELECT id, sum(x) OVER () AS s FROM t WHERE y > 1 QUALIFY row_number() OVER (ORDER BY x) = 1",
            [f"SELECT c0, c1 FROM (SELECT id, x FROM t WHERE (y > 1)) {_PART}(c0, c1)"],
            "SELECT c0 AS id, sum(c1) OVER () AS s FROM partials QUALIFY (row_number() OVER (ORDER BY c1) = 1)",
        ),
        (
            "SELECT g, median(x) FROM t WHERE y > 1 GROUP BY g",
            [f"SELECT c0, c1 FROM (SELECT g, x FROM t WHERE (y > 1)) {_PART}(c0, c1)"],
            'SELECT c0 AS g, median(c1) AS "median(x)" FROM partials GROUP BY c0',
        ),
        (
            "SELECT sum(x) FROM (SELECT x FROM t UNION ALL SELECT id FROM u) AS s",
            ["SELECT sum(x) AS c0 FROM ((SELECT x FROM t) UNION ALL (SELECT id FROM u)) AS s"],
            'SELECT sum(c0) AS "sum(x)" FROM partials',
        ),
        (
            "SELECT g, count(*) FROM t GROUP BY g UNION SELECT name, max(id) FROM u GROUP BY name ORDER BY 1 LIMIT 2",
            [
                "SELECT g AS c0, count_star() AS c1 FROM t GROUP BY g",
                'SELECT "name" AS c0, max(id) AS c1 FROM u GROUP BY "name"',
            ],
            '(SELECT c0 AS g, CAST(COALESCE(sum(c1), 0) AS BIGINT) AS "count_star()" FROM partials GROUP BY c0) UNION '
            '(SELECT c0 AS "name", max(c1) AS "max(id)" FROM partials_2 GROUP BY c0) ORDER BY 1 LIMIT 2',
        ),
        (
            # One part for both uses: it is the same work.
            "SELECT a.g FROM (SELECT g, count(*) AS n FROM t GROUP BY g) a "
            "JOIN (SELECT g, count(*) AS n FROM t GROUP BY g) b USING (g)",
            ["SELECT g AS c0, count_star() AS c1 FROM t GROUP BY g"],
            None,
        ),
        (
            # Named twice, its rows are those of one computation.
            "WITH s AS (SELECT g, sum(y) AS n FROM t GROUP BY g) SELECT g FROM s WHERE n = (SELECT max(n) FROM s)",
            ["SELECT g AS c0, sum(y) AS c1 FROM t GROUP BY g"],
            "WITH s AS (SELECT c0 AS g, sum(c1) AS n FROM partials GROUP BY c0) "
            "SELECT g FROM s WHERE (n = (SELECT max(n) FROM s))",
        ),
        (
            "SELECT x FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.id = t.id AND name LIKE 'a%')",
            [
                "SELECT c0 FROM (SELECT x FROM t WHERE EXISTS(SELECT 1 FROM u WHERE ((u.id = t.id) AND (\"name\" ~~ 'a%')))) "
                f"{_PART}(c0)"
            ],
            "SELECT c0 AS x FROM partials",
        ),
        (
            "SELECT upper(g) AS g, count(*) FROM t GROUP BY 1",
            ["SELECT upper(g) AS c0, count_star() AS c1 FROM t GROUP BY upper(g)"],
            'SELECT c0 AS g, CAST(COALESCE(sum(c1), 0) AS BIGINT) AS "count_star()" FROM partials GROUP BY c0',
        ),
    ],
)
def test_parts(duck: duckdb.DuckDBPyConnection, sql: str, workers: list[str], combine: str | None) -> None:
    found = _written(duck, sql)
    assert found is not None
    assert found[0] == workers
    assert combine is None or found[1] == combine


def test_a_table_that_is_not_worth_it_is_left_in_place(duck: duckdb.DuckDBPyConnection) -> None:
    sql = "SELECT * FROM (SELECT g, count(*) AS n FROM t GROUP BY g) JOIN (SELECT name FROM u) ON name = g"
    found = parts_of(duck, sql, large="t")
    assert found is not None
    (part,) = found.parts
    assert [set(one) for one in (part.way.split, part.way.whole, found.tables)] == [{"t"}, set(), {"u"}]
    assert parts_of(duck, sql, large="v") is None


@pytest.mark.parametrize(
    ("sql", "ways"),
    [
        ("SELECT count(*) FROM t JOIN u USING (id)", ("t", "u")),
        (
            "SELECT count(*) FROM (SELECT id FROM t UNION ALL SELECT id FROM t WHERE x > 1) AS s JOIN u USING (id)",
            ("t", "u"),
        ),
        ("SELECT count(*) FROM t WHERE id IN (SELECT id FROM u)", ("t", "u")),
        ("SELECT count(*) FROM t JOIN (SELECT name, max(id) AS id FROM u GROUP BY name) s USING (id)", ("t", "u")),
        ("SELECT count(*) FROM (SELECT id FROM t UNION ALL SELECT id FROM u) AS s", ("tu", "")),
    ],
)
def test_every_worker_reads_all_of_what_is_not_split(
    duck: duckdb.DuckDBPyConnection, sql: str, ways: tuple[str, str]
) -> None:
    found = parts_of(duck, sql)
    assert found is not None
    (part,) = found.parts
    assert [set(part.way.split), set(part.way.whole)] == [set(ways[0]), set(ways[1])]
