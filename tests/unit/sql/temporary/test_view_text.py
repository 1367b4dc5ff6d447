"""Temporary views: expanded where they are named, over whatever a query of the session may read."""

from pathlib import Path

import pyarrow as pa
import pytest

from lakelet import InvalidError, NotFoundError
from tests.unit.sql_session import SqlSession


@pytest.fixture
def sql() -> SqlSession:
    made = SqlSession()
    made.rows("CREATE DATABASE shop", "CREATE DATABASE other", "USE shop", "CREATE TABLE t (id INT)")
    made.rows("INSERT INTO t VALUES (1)", "CREATE VIEW stored AS SELECT id * 10 AS id FROM t")
    made.rows("CREATE TABLE other.t (id INT)", "INSERT INTO other.t VALUES (99)")
    return made


def test_sees_new_commits_and_keeps_its_database(sql: SqlSession) -> None:
    sql.rows("CREATE TEMP VIEW v AS SELECT id FROM t", "INSERT INTO t VALUES (2)", "USE other")
    assert sql.rows("SELECT * FROM v ORDER BY id") == [(1,), (2,)]
    assert sql.rows("SELECT t.id, v.id FROM t, v WHERE v.id = 2") == [(99, 2)]
    assert sql.rows("SELECT x.id FROM temp.v AS x, temp.main.v AS y WHERE x.id < y.id") == [(1,)]


def test_names_of_the_outer_query_mean_nothing_inside(sql: SqlSession) -> None:
    sql.rows("CREATE TEMP TABLE own AS SELECT 5 AS id", "CREATE TEMP VIEW v AS SELECT t.id, own.id AS o FROM t, own")
    assert sql.rows("WITH t AS (SELECT 7 AS id), own AS (SELECT 8 AS id) SELECT v.*, t.id FROM v, t, own") == [
        (1, 5, 7)
    ]
    assert sql.rows("SELECT * FROM v", frames={"t": pa.table({"id": [3]})}) == [(1, 5)]


def test_over_views_and_versions(sql: SqlSession) -> None:
    sql.rows("CREATE TEMP VIEW a AS SELECT id + 1 AS id FROM stored", "INSERT INTO t VALUES (2)")
    sql.rows("CREATE TEMP VIEW b AS SELECT a.id, old.id AS o FROM a, t FOR VERSION AS OF 1 AS old, temp.a AS again")
    assert sql.rows("SELECT DISTINCT * FROM b ORDER BY id") == [(11, 1), (21, 1)]
    assert sql.rows("SELECT count(*) FROM b JOIN a USING (id) JOIN stored ON stored.id + 1 = a.id") == [(4,)]
    sql.rows("CREATE OR REPLACE TEMP VIEW a AS SELECT 0 AS id")
    assert sql.rows("FROM b") == [(0, 1)]
    sql.rows("DROP VIEW a")
    with pytest.raises(NotFoundError, match=r"shop\.a"):
        sql.rows("FROM b")


def test_may_read_what_a_query_may(sql: SqlSession, tmp_path: Path) -> None:
    sql.rows(f"COPY (SELECT 6 AS i) TO '{tmp_path}/f.csv'")
    sql.rows(f"CREATE TEMP VIEW f AS SELECT i, r.range FROM '{tmp_path}/f.csv', range(2) AS r")
    assert sql.rows("FROM f ORDER BY ALL") == [(6, 0), (6, 1)]
    frame = pa.table({"x": [4]})
    sql.rows("CREATE TEMP VIEW g AS SELECT x FROM frame", frames={"frame": frame})
    assert sql.rows("FROM g", frames={"frame": frame}) == [(4,)]


def test_reading_itself(sql: SqlSession) -> None:
    sql.rows("CREATE TEMP VIEW a AS SELECT 1 AS i", "CREATE TEMP VIEW b AS FROM a")
    with pytest.raises(InvalidError, match="reads itself: a -> b -> a"):
        sql.rows("CREATE OR REPLACE TEMP VIEW a AS FROM b")
    assert sql.rows("FROM b") == [(1,)]


def test_many_inside_each_other(sql: SqlSession) -> None:
    long = "x" * 4000
    sql.rows(f"CREATE TEMP VIEW v0 AS SELECT '{long}' AS i")
    views = [
        f"CREATE TEMP VIEW v{n + 1} AS SELECT a.i FROM {', '.join(f'v{n} AS {one}' for one in 'abcdefgh')}"
        for n in range(3)
    ]
    with pytest.raises(InvalidError, match="letters long"):
        sql.rows(*views)


def test_stored_views_never_see_what_is_temporary(sql: SqlSession) -> None:
    sql.rows("CREATE TEMP TABLE t AS SELECT 5 AS id", "CREATE TEMP VIEW stored AS SELECT 6 AS id")
    assert sql.rows("FROM shop.stored") == [(10,)]
    assert sql.rows("FROM stored") == [(6,)]
    for query in ("SELECT * FROM t", "SELECT * FROM temp.t", "SELECT * FROM shop.t, stored"):
        sql.fails(f"CREATE VIEW kept AS {query}", "is a temporary table or view of this session", "kept")
    sql.rows("CREATE VIEW kept AS SELECT a.id FROM shop.t AS a, shop.stored")
    assert sql.rows("FROM kept") == [(1,)]
    assert SqlSession(sql.store).rows("FROM shop.kept") == [(1,)]


def test_can_only_be_read(sql: SqlSession) -> None:
    sql.rows("CREATE TEMP VIEW v AS FROM t")
    for text in (
        "INSERT INTO v VALUES (1)",
        "UPDATE v SET id = 1",
        "DELETE FROM v",
        "ALTER VIEW v RENAME TO w",
        "TRUNCATE v",
    ):
        sql.fails(text, "can only be read", "v")
