"""What workers run of a query, and what combines their rows."""

from __future__ import annotations

import json

import duckdb
import pytest

from lakelet.sql.distribution.split_query import split_query, splittable_tables
from lakelet.sql.query.parse_tree import Node

_COLUMNS = {
    "t": ("id", "g", "x", "y", "moment", "payload"),
    "u": ("id", "name"),
}
_TABLES = "CREATE TABLE t (id BIGINT, g VARCHAR, x BIGINT, y DOUBLE, moment TIMESTAMPTZ, payload STRUCT(age BIGINT))"


@pytest.fixture(scope="module")
def duck() -> duckdb.DuckDBPyConnection:
    made = duckdb.connect()
    made.execute(f"{_TABLES}; CREATE TABLE u (id BIGINT, name VARCHAR)")
    return made


def _tree(duck: duckdb.DuckDBPyConnection, sql: str) -> Node:
    text = "SELECT json_serialize_sql($1, skip_null := true, skip_empty := true, skip_default := true)"
    found: Node = json.loads(duck.execute(text, [sql]).fetchall()[0][0])
    assert not found["error"], found
    return found


def _split(duck: duckdb.DuckDBPyConnection, sql: str) -> tuple[str, str] | None:
    found = split_query(_tree(duck, sql), _COLUMNS, duck.sql(sql).columns)
    if found is None:
        return None
    worker, combine = (
        str(duck.execute("SELECT json_deserialize_sql($1)", [json.dumps(tree)]).fetchall()[0][0])
        for tree in (found.worker, found.combine)
    )
    return worker.replace("lakelet_", ""), combine.replace("lakelet_", "")


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
        "SELECT x FROM t ORDER BY ALL",
        "SELECT g, count(*) FROM t GROUP BY ALL",
        "SELECT g, x, count(*) FROM t GROUP BY CUBE (g, x)",
        "SELECT g, grouping(g) FROM t GROUP BY g",
        "SELECT x FROM t WHERE random() < 0.5",
        "SELECT x FROM t WHERE moment < now()",
        "SELECT x FROM t WHERE moment < current_timestamp",
        "SELECT uuid(), x FROM t",
        "SELECT x FROM t USING SAMPLE 3",
        "SELECT x FROM t TABLESAMPLE 10%",
        "SELECT x FROM t WHERE x IN (SELECT id FROM u)",
        "SELECT x FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.id = t.id)",
        "SELECT (SELECT max(id) FROM u), x FROM t",
        "SELECT x, row_number() OVER () FROM t",
        "SELECT x FROM t QUALIFY row_number() OVER (ORDER BY x) = 1",
        "SELECT g COLLATE nocase FROM t",
        "SELECT sum(x ORDER BY id) FROM t",
        "SELECT string_agg(g) FROM t",
        "SELECT first(g) FROM t",
        "SELECT max(x, 2) FROM t",
        "SELECT count(DISTINCT x) FILTER (WHERE y > 1) FROM t",
        "SELECT DISTINCT ON (g) g, x FROM t",
        "SELECT DISTINCT g FROM t ORDER BY x + 1",
        "SELECT t.x FROM t FULL JOIN u USING (id)",
        "SELECT x FROM t NATURAL JOIN u",
        "SELECT x FROM t POSITIONAL JOIN u",
        "SELECT x FROM (SELECT x FROM t) AS s",
        "WITH s AS (SELECT x FROM t) SELECT x FROM s",
        "SELECT x FROM t UNION ALL SELECT id FROM u",
        "SELECT upper(g) AS g, count(*) FROM t GROUP BY 1",
        "SELECT t FROM t",
        "SELECT rowid FROM t",
        "SELECT COLUMNS('x') FROM t",
        "SELECT * REPLACE (x + 1 AS x) FROM t",
        "SELECT list_transform([x], lambda a: a + 1) FROM t",
        "SELECT x AS twice, twice * 2 AS more, count(*) FROM t GROUP BY x",
        "SELECT 1 AS one, count(*) FROM t GROUP BY 1",
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
    assert split_query(_tree(duck, sql), _COLUMNS, names) is None


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
    tree = _tree(duck, f"SELECT 1 FROM {source}")
    assert [node["table_name"] for node in splittable_tables(tree)] == found
