"""Views of the lake: created, read from anywhere, and harmless whoever wrote them."""

import json

import duckdb
import pyarrow as pa
import pytest

from lakelet.errors import AlreadyExistsError, CorruptionError, InvalidError, LakeletError, NotFoundError
from lakelet.storage.paths import view_path
from tests.unit.sql_session import SqlSession


@pytest.fixture
def sql() -> SqlSession:
    made = SqlSession()
    made.rows("CREATE DATABASE shop", "CREATE DATABASE other", "USE shop")
    made.rows("CREATE TABLE orders (id BIGINT, dt STRING)", "INSERT INTO orders VALUES (1, 'a'), (2, 'b')")
    made.rows("INSERT INTO orders VALUES (3, 'c')")
    made.rows("CREATE VIEW v AS SELECT id, upper(dt) AS d FROM orders WHERE id > 1")
    return made


class TestReading:
    @pytest.mark.parametrize("database", ["shop", "other"])
    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            ("SELECT * FROM shop.v", [(2, "B"), (3, "C")]),
            ("SELECT v.id FROM shop.v WHERE d = 'B'", [(2,)]),
            ("SELECT x.d FROM SHOP.V x JOIN shop.v y USING (id)", [("B",), ("C",)]),
            ("SELECT a FROM shop.v AS t(a, b)", [(2,), (3,)]),
            ("SELECT count(*) FROM shop.v", [(2,)]),
            ("FROM shop.v", [(2, "B"), (3, "C")]),
            ("TABLE shop.v", [(2, "B"), (3, "C")]),
            ("SELECT id FROM shop.orders WHERE id IN (SELECT id FROM shop.v)", [(2,), (3,)]),
            ("WITH orders AS (SELECT 9 AS id, 'z' AS dt) SELECT v.id FROM shop.v, orders", [(2,), (3,)]),
            ("WITH v AS (SELECT 9 AS id) SELECT * FROM v", [(9,)]),
            ("SELECT id FROM shop.v UNION ALL SELECT id FROM shop.v WHERE id = 2", [(2,), (2,), (3,)]),
            ("PIVOT shop.v ON d USING count(*) GROUP BY id", [(2, 1, 0), (3, 0, 1)]),
            ("SELECT * FROM shop.v PIVOT (count(id) FOR d IN ('B', 'C'))", [(1, 1)]),
            ("SELECT column_name FROM (SUMMARIZE shop.v)", [("d",), ("id",)]),
            ("DESCRIBE shop.v", [("d", "VARCHAR", "YES", None, None, None), ("id", "BIGINT", "YES", None, None, None)]),
        ],
    )
    def test_wherever_it_stands(
        self, sql: SqlSession, database: str, query: str, expected: list[tuple[object, ...]]
    ) -> None:
        sql.rows(f"USE {database}")
        assert sorted(sql.rows(query)) == expected

    def test_names_are_those_of_the_database_where_it_was_made(self, sql: SqlSession) -> None:
        sql.rows("USE other", "CREATE TABLE orders (id BIGINT, dt STRING)", "INSERT INTO orders VALUES (7, 'x')")
        assert sorted(sql.rows("SELECT id FROM shop.v")) == [(2,), (3,)]
        # Neither data frames, variables nor what a statement is handed take the place of tables in it.
        orders = pa.table({"id": [8], "dt": ["y"]})
        assert sorted(sql.rows("SELECT id FROM shop.v", frames={"orders": orders})) == [(2,), (3,)]

    def test_names_are_those_of_its_own_database_first(self, sql: SqlSession) -> None:
        for database in ("shop", "other"):
            sql.rows(
                f"CREATE TABLE {database}.place (name STRING)", f"INSERT INTO {database}.place VALUES ('{database}')"
            )
        sql.rows(
            "USE other", "CREATE VIEW shop.w AS SELECT name, id FROM place, orders WHERE id = 1", "CREATE DATABASE far"
        )
        with duckdb.connect() as duck:
            for text in ("CREATE SCHEMA shop", "CREATE SCHEMA other", "CREATE TABLE shop.orders AS SELECT 1 AS id"):
                duck.execute(text)
            for database in ("shop", "other"):
                duck.execute(f"CREATE TABLE {database}.place AS SELECT '{database}' AS name")
            duck.execute("USE other")
            duck.execute("CREATE VIEW shop.w AS SELECT name, id FROM place, shop.orders")
            expected = duck.execute("FROM shop.w").fetchall()
        for database in ("other", "shop", "far"):
            sql.rows(f"USE {database}")
            assert sql.rows("FROM shop.w") == expected == [("shop", 1)]
        # What its own database does not have is in the one that was in use.
        sql.rows("USE other", "CREATE TABLE only_here AS SELECT 5 AS n", "CREATE VIEW shop.only_here AS FROM only_here")
        sql.rows("USE far", "CREATE VIEW other.over AS SELECT n FROM only_here")
        assert sql.rows("SELECT a.n, b.n FROM shop.only_here AS a, other.over AS b") == [(5, 5)]

    def test_a_view_that_an_earlier_version_made(self, sql: SqlSession) -> None:
        sql.rows("CREATE TABLE other.orders (id BIGINT)", "INSERT INTO other.orders VALUES (9)", "USE shop")
        sql.rows("CREATE VIEW other.w AS SELECT id FROM orders WHERE id IN (1, 9)")
        path = view_path("other", "w")
        kept = json.loads(sql.store.get(path))
        assert (kept["database"], kept.pop("home")) == ("shop", "other")
        assert sql.rows("FROM other.w") == [(9,)]
        sql.store.put(path, json.dumps(kept).encode())
        assert sql.rows("FROM other.w") == [(1,)]

    def test_versions_inside(self, sql: SqlSession) -> None:
        sql.rows("CREATE VIEW old AS SELECT count(*) AS n FROM orders FOR VERSION AS OF 1")
        sql.rows("CREATE VIEW all_of AS SELECT o.n, count(*) AS m FROM old o, orders GROUP BY o.n")
        assert sql.rows("SELECT * FROM all_of") == [(2, 3)]

    def test_it_follows_its_tables(self, sql: SqlSession) -> None:
        sql.rows("INSERT INTO orders VALUES (4, 'd')")
        assert len(sql.rows("SELECT * FROM v")) == 3

    def test_statements_read_it(self, sql: SqlSession) -> None:
        sql.rows("CREATE TABLE t AS SELECT * FROM v", "INSERT INTO t SELECT id + 10, d FROM v")
        assert sorted(sql.column("SELECT id FROM t")) == [2, 3, 12, 13]
        sql.rows("DELETE FROM t WHERE id IN (SELECT id FROM v)")
        assert sorted(sql.column("SELECT id FROM t")) == [12, 13]

    def test_errors_are_placed_in_the_query_as_it_was_written(self, sql: SqlSession) -> None:
        sql.fails("SELECT v.id,\n  nothing\nFROM v", "nothing", "nothing")
        sql.fails("SELECT 1 FROM v JOIN missing USING (id)", "missing", "missing", kind=NotFoundError)

    def test_read_only(self, sql: SqlSession) -> None:
        for text in ("INSERT INTO v VALUES (1, 'x')", "DELETE FROM v", "SELECT * FROM v FOR VERSION AS OF 1"):
            with pytest.raises(InvalidError, match="is a view, which can only be read"):
                sql.rows(text)


class TestMaking:
    def test_columns_and_comment(self, sql: SqlSession) -> None:
        sql.rows("CREATE VIEW w (a, b,) COMMENT 'it''s' AS SELECT * FROM v")
        assert sorted(sql.rows("SELECT a, b FROM w")) == [(2, "B"), (3, "C")]
        text = sql.rows("SHOW CREATE VIEW w")[0][0]
        sql.rows("DROP VIEW w", text)
        assert sql.rows("SHOW CREATE VIEW w")[0][0] == text

    def test_replaced_and_dropped(self, sql: SqlSession) -> None:
        assert sql.done("CREATE OR REPLACE VIEW V AS SELECT 1 AS one") == "replaced view shop.v"
        assert sql.rows("SELECT * FROM v") == [(1,)]
        assert sql.done("CREATE VIEW IF NOT EXISTS v AS SELECT 2 AS two") == "view shop.v exists"
        assert sql.rows("SHOW VIEWS") == [("v",)]
        assert sql.lake.views("shop") == ["v"]
        assert sql.done("DROP VIEW v") == "dropped view shop.v"
        assert sql.done("DROP VIEW IF EXISTS v") == "view shop.v does not exist"
        sql.fails("DROP VIEW v", "view 'shop.v' is not in", kind=NotFoundError)

    def test_names_that_are_taken(self, sql: SqlSession) -> None:
        sql.fails("CREATE VIEW v AS SELECT 1 AS a", "exists", kind=AlreadyExistsError)
        sql.fails("CREATE VIEW orders AS SELECT 1 AS a", "is a table", kind=AlreadyExistsError)
        sql.fails("CREATE TABLE V (a INT)", "is a view", kind=AlreadyExistsError)
        sql.fails("CREATE OR REPLACE TABLE v (a INT)", "is a view", kind=AlreadyExistsError)
        sql.fails("DROP TABLE v", "DROP VIEW", "v")
        sql.fails("DROP VIEW orders", "DROP TABLE", "orders")
        with pytest.raises(AlreadyExistsError):
            sql.lake.create_table("shop.v", [("a", "INT")])
        with pytest.raises(AlreadyExistsError):
            sql.lake.rename_table("shop.orders", "shop.v")

    def test_databases_with_views(self, sql: SqlSession) -> None:
        sql.rows("CREATE VIEW other.w AS SELECT * FROM v")
        sql.fails("DROP DATABASE other", "holds 1 views")
        sql.rows("DROP DATABASE other CASCADE", "CREATE DATABASE other")
        assert sql.lake.views("other") == []

    def test_cycles_and_depth(self, sql: SqlSession) -> None:
        sql.rows("CREATE VIEW w AS SELECT * FROM v")
        sql.fails("CREATE OR REPLACE VIEW v AS SELECT * FROM w", "reads itself", "v")
        for number in range(31):
            sql.rows(f"CREATE VIEW x{number} AS SELECT * FROM {f'x{number - 1}' if number else 'orders'}")
        sql.rows("CREATE VIEW y AS SELECT * FROM x30")
        sql.fails("CREATE VIEW z AS SELECT * FROM y", "inside each other", "z")
        sql.fails("CREATE VIEW z AS SELECT a.* FROM x30 AS a, y AS b", "inside each other", "z")

    def test_a_text_that_doubles_with_every_view(self, sql: SqlSession) -> None:
        for number in range(30):
            both = f"SELECT * FROM d{number - 1} UNION ALL SELECT * FROM d{number - 1}" if number else "SELECT 1 AS a"
            content = {"version": 1, "query": both, "database": "shop"}
            sql.store.put(view_path("shop", f"d{number}"), json.dumps(content).encode())
        assert len(sql.rows("SELECT * FROM d4")) == 16
        sql.fails("SELECT * FROM d29", "letters long", kind=InvalidError)


# What reaches beyond the lake, or is no query.
HARMFUL = [
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM '/etc/passwd'",
    "SELECT * FROM 'x.csv'",
    'SELECT * FROM "x.parquet"',
    "SELECT * FROM glob('*')",
    "SELECT getenv('HOME')",
    "SELECT system.main.getenv('HOME')",
    "SELECT 'HOME'.getenv()",
    "SELECT current_setting('threads')",
    "SELECT getvariable('x')",
    "SELECT * FROM duckdb_settings()",
    "SELECT * FROM duckdb_settings",
    "SELECT * FROM information_schema.tables",
    "SELECT * FROM pg_catalog.pg_class",
    "SELECT * FROM query('SELECT 1')",
    "SELECT * FROM query_table('orders')",
    "SELECT json_execute_serialized_sql('{}')",
    "SELECT (SELECT content FROM read_text('x'))",
    "SELECT 1 AS a WHERE EXISTS (FROM read_csv('a'))",
    "SELECT id FROM orders ORDER BY getenv('x')",
    "SELECT sum(id) FILTER (getenv('x') = '') FROM orders",
    "SELECT sum(id) OVER (ORDER BY getenv('x')) FROM orders",
    "SELECT sum(id) OVER w FROM orders WINDOW w AS (PARTITION BY getenv('x'))",
    "SELECT list_transform([1], lambda x: getenv('a'))",
    "SELECT [getenv('a') FOR x IN [1]]",
    "SELECT COLUMNS(c -> c = getenv('a')) FROM orders",
    "SELECT * REPLACE (getenv('a') AS id) FROM orders",
    "SELECT CASE WHEN id = 1 THEN getenv('a') END FROM orders",
    "SELECT id FROM orders GROUP BY id, getenv('a')",
    "SELECT id FROM orders QUALIFY row_number() OVER () < len(getenv('a'))",
    "FROM orders LIMIT (SELECT len(getenv('x')))",
    "SELECT * FROM (VALUES (getenv('a'))) v",
    "WITH x AS (FROM read_csv('x')) SELECT 1",
    "WITH RECURSIVE x AS (SELECT 1 AS a UNION ALL SELECT a FROM x, read_csv('x')) SELECT 1",
    "SELECT * FROM orders JOIN orders o ON getenv('x') = ''",
    "SELECT * FROM orders FOR VERSION AS OF (getenv('x'))",
    "SELECT * FROM orders AT (VERSION => getenv('x'))",
    "SELECT * FROM orders FOR TIMESTAMP AS OF (now())",
    "SELECT nextval('x')",
    "SELECT $1",
    "SELECT * FROM ice.db.t",
    "SELECT * FROM sys.tables",
    "DELETE FROM orders",
    "COPY orders TO 'x'",
    "SHOW TABLES",
    "SELECT * FROM (SHOW TABLES)",
    "PRAGMA version",
    "SELECT 1) UNION (SELECT 2",
    "SELECT 1 AS a) AS t, (SELECT content FROM read_text('x')",
]


@pytest.mark.parametrize("query", HARMFUL)
def test_nothing_beyond_the_lake(sql: SqlSession, query: str) -> None:
    """Neither when a view is made nor when a stranger has put its file into the store."""
    before = sql.files()
    with pytest.raises(LakeletError):
        sql.rows(f"CREATE VIEW bad AS {query}")
    assert sql.files() == before
    content = {"version": 1, "query": query, "database": "shop", "comment": None, "timeMillis": 0}
    sql.store.put(view_path("shop", "bad"), json.dumps(content).encode())
    for text in ("SELECT * FROM bad", "DESCRIBE bad", "PIVOT bad ON a", "CREATE TABLE t AS SELECT * FROM bad"):
        with pytest.raises(LakeletError, match=r"view|table|database|catalog|expected|snapshot|parser|syntax|Parser"):
            sql.rows(text)
    assert not sql.lake.table_exists("shop.t")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b"\xff",
        b'{"version": 2, "query": "SELECT 1", "database": "shop"}',
        b'{"version": 1, "query": 1, "database": "shop"}',
        b'{"version": 1, "query": "SELECT 1", "database": null}',
        b"[" * 100_000,
        b" " * (2 << 20),
    ],
)
def test_files_that_are_no_views(sql: SqlSession, data: bytes) -> None:
    sql.store.put(view_path("shop", "bad"), data)
    with pytest.raises((CorruptionError, InvalidError)):
        sql.rows("SELECT * FROM bad")
    sql.rows("DROP VIEW bad")
