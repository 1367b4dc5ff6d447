"""CREATE TEMP TABLE and CREATE TEMP VIEW: what they make, and what they refuse, is what DuckDB makes and refuses."""

import duckdb
import pyarrow as pa
import pytest

from lakelet import AlreadyExistsError, InvalidError, NotFoundError
from tests.unit.sql_session import SqlSession

# Statements in a row, each of which both take or both refuse, on the same names.
_LIKE_DUCKDB = """
CREATE TEMP TABLE t (i INT PRIMARY KEY, d INT DEFAULT 7, s VARCHAR NOT NULL DEFAULT 'x', CHECK (d < 9))
INSERT INTO t (i) VALUES (1)
INSERT INTO t (i) VALUES (1)
INSERT INTO t VALUES (2, 10, 'a')
INSERT INTO t VALUES (2, 1, NULL)
INSERT OR REPLACE INTO t VALUES (1, 8, 'b')
INSERT OR IGNORE INTO t VALUES (1, 0, 'c'), (3, 3, 'c')
INSERT INTO t VALUES (1, 3, 'd') ON CONFLICT DO UPDATE SET d = excluded.d + t.d - 8, s = excluded.s
CREATE TEMP TABLE t (i INT)
CREATE TEMP TABLE IF NOT EXISTS T AS SELECT 1 AS other
CREATE OR REPLACE TEMPORARY TABLE u AS SELECT 1 AS a, 'x' AS a
CREATE OR REPLACE TEMPORARY TABLE u AS SELECT 1 AS a, 2 AS b WITH NO DATA
CREATE TEMP TABLE w (x, y) AS VALUES (1, 2), (3, 4)
CREATE TEMP TABLE g (a INT, b INT AS (a + 1), c INT UNIQUE, f INT REFERENCES t(i))
INSERT INTO g (a, c, f) VALUES (1, 1, 1)
INSERT INTO g (a, c, f) VALUES (1, 1, 1)
INSERT INTO g (a, c, f) VALUES (1, 2, 99)
DROP TABLE t
DROP TABLE g
CREATE TEMP TABLE twice (a INT, A INT)
CREATE TEMP TABLE none ()
CREATE TEMP VIEW v AS SELECT i, d FROM t WHERE d > 1
CREATE TEMP VIEW v AS SELECT 2
CREATE TEMP VIEW IF NOT EXISTS v AS SELECT 3
CREATE OR REPLACE TEMP VIEW v (one, two) AS SELECT i, d FROM t
CREATE TEMP VIEW t AS SELECT 1
CREATE OR REPLACE TEMP VIEW t AS SELECT 1
CREATE OR REPLACE TEMP TABLE v AS SELECT 1
CREATE TEMP VIEW bad AS FROM nowhere
CREATE TEMP VIEW bad AS SELECT nope FROM t
DROP TABLE v
DROP VIEW t
DROP VIEW IF EXISTS nothing
DROP TABLE IF EXISTS nothing CASCADE
ALTER TABLE t ADD COLUMN z INT DEFAULT 5
UPDATE t SET z = i WHERE d > 3
ALTER TABLE t DROP COLUMN s
ALTER TABLE t RENAME COLUMN z TO zz
ALTER TABLE w RENAME TO ww
INSERT INTO w VALUES (1, 2)
DELETE FROM ww WHERE x = 1
MERGE INTO ww USING t ON t.i = ww.x WHEN MATCHED THEN UPDATE SET y = t.zz WHEN NOT MATCHED THEN INSERT VALUES (i, d)
TRUNCATE u
COMMENT ON COLUMN ww.x IS 'the x'
DROP VIEW v RESTRICT
"""


def test_every_statement_is_taken_or_refused_as_in_duckdb() -> None:
    ours = SqlSession()
    with duckdb.connect() as theirs:
        for text in _LIKE_DUCKDB.strip().splitlines():
            refused: list[str] = []
            for run in (ours.rows, lambda text: theirs.execute(text).fetchall()):
                try:
                    run(text)
                    refused.append("")
                except (InvalidError, AlreadyExistsError, NotFoundError, duckdb.Error) as error:
                    refused.append(str(error))
            assert bool(refused[0]) == bool(refused[1]), f"{text}: {refused}"
            assert "lakelet_temporary" not in refused[0], refused
            for name in ("t", "u", "w", "ww", "g", "v"):
                try:
                    expected = theirs.execute(f"FROM {name} ORDER BY ALL").fetchall()
                except duckdb.Error:
                    continue
                assert ours.rows(f"FROM {name} ORDER BY ALL") == expected, text
                shown = [row[:3] for row in theirs.execute(f"DESCRIBE {name}").fetchall()]
                assert [row[:3] for row in ours.rows(f"DESCRIBE {name}")] == shown, text
    assert not ours.files()


@pytest.fixture
def sql() -> SqlSession:
    made = SqlSession()
    made.rows("CREATE DATABASE shop", "USE shop", "CREATE TABLE orders (id INT, total INT)")
    made.rows("INSERT INTO orders VALUES (1, 10), (2, 20)")
    return made


def test_says_what_it_made(sql: SqlSession) -> None:
    assert sql.done("CREATE TEMP TABLE a AS FROM orders") == "created temporary table a, 2 rows"
    assert sql.done("CREATE OR REPLACE TEMP TABLE a (i INT)") == "replaced temporary table a"
    assert sql.done("CREATE TEMP TABLE IF NOT EXISTS a (i INT)") == "temporary table a exists"
    assert sql.done("CREATE TEMP VIEW v AS FROM orders") == "created temporary view v"
    assert sql.done("CREATE OR REPLACE TEMP VIEW v AS FROM a") == "replaced temporary view v"
    assert sql.done("DROP TABLE a") == "dropped temporary table a"
    assert sql.done("DROP VIEW v") == "dropped temporary view v"


@pytest.mark.parametrize(
    ("text", "reason", "at"),
    [
        ("CREATE TEMP TABLE shop.x (i INT)", "in no database: x or temp.x", "shop.x"),
        ("CREATE TEMP VIEW shop.x AS SELECT 1", "in no database", "shop.x"),
        ("CREATE TEMP MACRO f(x) AS x", "expected TABLE or VIEW", "MACRO"),
        ("CREATE TEMP TABLE", "expected the name", ""),
        ("CREATE TEMP TABLE x (i INT) AS SELECT 1", "syntax error", "AS SELECT"),
        ("CREATE TEMP TABLE x AS SELECT nope FROM orders", '"nope" not found', "nope"),
        ("CREATE TEMP TABLE x AS\nSELECT id\nFROM orders WHERE nope", '"nope" not found', "nope"),
        ("CREATE TEMP VIEW x AS SELECT nope FROM orders", '"nope" not found', "nope"),
        ("CREATE TEMP VIEW x AS SELECT id, $p FROM orders", "no parameters", "$p"),
        ("CREATE TEMP VIEW x AS PIVOT orders ON id", "names them", "PIVOT"),
    ],
)
def test_refused_where_it_is_wrong(sql: SqlSession, text: str, reason: str, at: str) -> None:
    sql.fails(text, reason, at)
    assert sql.rows("SHOW TABLES IN temp") == []
    assert sql.rows("SELECT count(*) FROM orders") == [(2,)]


def test_frames_and_parameters(sql: SqlSession) -> None:
    sql.rows("CREATE TEMP TABLE f AS SELECT *, $p AS p FROM df", params={"p": 5}, frames={"df": pa.table({"a": [1]})})
    sql.rows("INSERT INTO f SELECT a, ? FROM df", params=[6], frames={"df": pa.table({"a": [2]})})
    assert sql.rows("FROM f ORDER BY a") == [(1, 5), (2, 6)]
    assert sql.rows("DELETE FROM f WHERE a = $x RETURNING p", params={"x": 2}) == [(6,)]


def test_rows_of_duckdbs_lists(sql: SqlSession) -> None:
    sql.rows("CREATE TEMP TABLE a (i INT)", "CREATE TEMP TABLE b AS SELECT table_name FROM information_schema.tables")
    assert {("a",), ("orders",)} <= set(sql.rows("FROM b"))
    assert sql.column("SHOW TABLES IN temp") == ["a", "b"]


def test_names_of_rows_that_queries_read_are_kept_for_them(sql: SqlSession) -> None:
    sql.fails("CREATE TEMP TABLE lakelet_rows_1 (i INT)", "kept for queries", "lakelet_rows_1")
    sql.fails("CREATE TEMP VIEW Lakelet_Rows_2 AS SELECT 1", "kept for queries", "Lakelet_Rows_2")
    with pytest.raises(InvalidError, match="kept for queries"):
        sql.rows("SELECT * FROM orders, lakelet_rows_1", frames={"lakelet_rows_1": pa.table({"a": [1]})})


def test_hostile_names(sql: SqlSession) -> None:
    for name in (
        'a"b; DROP TABLE orders',
        "lakelet_temporary",
        "select",
        "ünï ¥",
        "a.b",
        "temp",
        "main",
        "sys",
        "a$files",
    ):
        quoted = '"' + name.replace('"', '""') + '"'
        sql.rows(f"CREATE TEMP TABLE {quoted} (i INT)", f"INSERT INTO {quoted} VALUES (1)")
        assert sql.rows(f"SELECT i FROM {quoted}") == [(1,)], name
        assert sql.rows(f"SELECT t.i FROM temp.{quoted} AS t") == [(1,)], name
        sql.rows(f"CREATE TEMP VIEW over AS SELECT i + 1 AS j FROM {quoted}")
        assert sql.rows("FROM over") == [(2,)], name
        sql.rows("DROP VIEW over", f"UPDATE {quoted} SET i = 3", f"DROP TABLE temp.{quoted}")
    assert sql.rows("SHOW TABLES") == [("orders",)]
