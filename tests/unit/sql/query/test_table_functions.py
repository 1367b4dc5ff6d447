"""query() and query_table() over tables of the lake, and functions that are refused."""

from pathlib import Path
from typing import Any

import pytest

from lakelet.errors import InvalidError, LakeletError
from lakelet.sql.query.table_functions import REFUSED_FUNCTIONS
from tests.unit.sql_session import SqlSession


@pytest.fixture
def lake() -> SqlSession:
    session = SqlSession()
    session.rows(
        "CREATE DATABASE d", "USE d", "CREATE TABLE t (id INT, v INT)", "INSERT INTO t VALUES (1, 10), (2, 20)"
    )
    session.rows("CREATE TABLE `a b` (v INT, id INT)", "INSERT INTO `a b` VALUES (30, 3)")
    return session


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("FROM query('SELECT * FROM t')", [(1, 10), (2, 20)]),
        ("SELECT v FROM query('FROM d.t WHERE id = 1')", [(10,)]),
        ("SELECT query.v FROM query('FROM t') WHERE query.id = 2", [(20,)]),
        ("SELECT q.v FROM query('FROM t -- all') AS q, query('SELECT 2 AS i') r WHERE q.id = r.i", [(20,)]),
        ("SELECT count(*) FROM query('FROM query(''FROM t'')')", [(2,)]),
        ("FROM query('FROM t FOR VERSION AS OF 1')", [(1, 10), (2, 20)]),
        ("FROM query('SELECT ' || '1')", [(1,)]),
        ("WITH query(a) AS (SELECT v FROM t) SELECT a FROM query", [(10,), (20,)]),
        ("SELECT query.a FROM t query(a, b) WHERE b = 20", [(2,)]),
        ("FROM query_table('t')", [(1, 10), (2, 20)]),
        ("FROM query_table('d.t')", [(1, 10), (2, 20)]),
        ("SELECT id FROM query_table('a b')", [(3,)]),
        ("FROM query_table(['t', 'd.t'])", [(1, 10), (1, 10), (2, 20), (2, 20)]),
        ("FROM query_table(['t', 'a b'], true)", [(1, 10), (2, 20), (3, 30)]),
        ("FROM query_table(['t', 'a b'], false)", [(1, 10), (2, 20), (30, 3)]),
        (
            "WITH RECURSIVE x(a, b) USING KEY (a) AS (SELECT id, v FROM t UNION SELECT x.a, x.b + 1 FROM x, "
            "recurring.x AS r WHERE r.a = x.a AND x.b % 10 < 3) FROM x",
            [(1, 13), (2, 23)],
        ),
    ],
)
def test_tables_are_found(lake: SqlSession, query: str, rows: list[Any]) -> None:
    assert sorted(lake.rows(query)) == rows
    lake.rows("CREATE TABLE copied AS " + query)
    assert sorted(lake.rows("FROM copied")) == rows


@pytest.mark.parametrize(
    "query",
    [
        "FROM query('DROP TABLE t')",
        "FROM query('SELECT 1; SELECT 2')",
        "FROM query('')",
        "FROM query(1)",
        "FROM query('SELECT 1', 'SELECT 2')",
        "FROM query('FROM nothing')",
        "FROM query_table('nothing')",
        "FROM query_table([])",
        "FROM query_table(1)",
        "FROM query('FROM query(''FROM enable_logging()'')')",
    ],
)
def test_anything_else_is_refused(lake: SqlSession, query: str) -> None:
    with pytest.raises(LakeletError):
        lake.rows(query)


@pytest.mark.parametrize("name", sorted(REFUSED_FUNCTIONS))
@pytest.mark.parametrize(
    "query", ["FROM {}()", 'FROM "{}"(1, 2, 3)', "SELECT system.main.{}(1)", "INSERT INTO t FROM {}()"]
)
def test_functions_are_refused(
    lake: SqlSession, name: str, query: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lake.fails(query.format(name), f"function {name} cannot be called here", at=None, kind=InvalidError)
    assert list(tmp_path.iterdir()) == []
