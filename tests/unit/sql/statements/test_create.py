"""CREATE TABLE and CREATE DATABASE."""

import datetime as dt

import duckdb
import pyarrow as pa
import pytest

from lakelet import AlreadyExistsError, InvalidError, NotFoundError
from lakelet.errors import LakeletError, UnavailableError
from lakelet.sql.lexer.errors import SqlError
from lakelet.storage.memory import MemoryStore
from tests.unit.hooked_store import HookedStore
from tests.unit.sql_session import SqlSession


@pytest.fixture
def sql() -> SqlSession:
    made = SqlSession()
    made.rows("CREATE DATABASE shop")
    return made


# Values of types that a table does not have.
NO_TYPES = (
    *("'101'::BIT", "INTERVAL 1 DAY", "TIMETZ '10:00:00+01'", "union_value(m := 1)", "1::VARIANT", "1::BIGNUM"),
    *("sum(i) EXPORT_STATE", "avg(i) EXPORT_STATE", "min(i::VARCHAR) EXPORT_STATE", "'POINT(0 0)'::GEOMETRY"),
)
STORED = [
    ("1::UTINYINT", "UTINYINT", "SMALLINT"),
    ("1::USMALLINT", "USMALLINT", "INT"),
    ("1::UINTEGER", "UINTEGER", "BIGINT"),
    ("1::UBIGINT", "UBIGINT", "DECIMAL(20, 0)"),
    ("1::HUGEINT", "HUGEINT", "DECIMAL(38, 0)"),
    ("1::UHUGEINT", "UHUGEINT", "DECIMAL(38, 0)"),
    ("uuid()", "UUID", "STRING"),
    ("'{}'::JSON", "JSON", "STRING"),
    ("'BIT'::ENUM('BIT', 'x')", "ENUM", "STRING"),
]


class TestDatabases:
    def test_made_once(self, sql: SqlSession) -> None:
        assert sql.done("CREATE SCHEMA other") == "created database other"
        assert sql.lake.databases() == ["other", "shop"]
        sql.fails("CREATE DATABASE other", "database 'other' exists", kind=AlreadyExistsError)
        sql.fails("create database OTHER", "database 'other' exists", kind=AlreadyExistsError)
        assert sql.done("CREATE DATABASE IF NOT EXISTS Other") == "database other exists"

    def test_refused(self, sql: SqlSession) -> None:
        sql.fails("CREATE DATABASE", "expected the name of a database", "")
        sql.fails("CREATE DATABASE sys", "the database of system tables", "sys")
        sql.fails("CREATE DATABASE `a/b`", "database name 'a/b'", "`a/b`")
        sql.fails("CREATE DATABASE d COMMENT 'x'", "a database is a folder", "COMMENT")
        sql.fails("CREATE DATABASE d e", "expected the end of the statement, found e", "e")


class TestColumnsAndKeys:
    def test_all_there_is_to_a_table(self, sql: SqlSession) -> None:
        text = """
            CREATE TABLE shop.orders (
              id BIGINT COMMENT 'the key',
              "dt" STRING,
              `order` INT DEFAULT -5,
              price DECIMAL(10, 2) NOT NULL DEFAULT 0.5 COMMENT 'in ''euros''',
              items ARRAY<ROW<sku STRING NOT NULL COMMENT 'which', n INTEGER>>,
              done BOOLEAN DEFAULT FALSE,
              day DATE DEFAULT DATE '2026-01-02',
              note VARCHAR(5) DEFAULT 'none',
              nothing INT DEFAULT NULL,
              PRIMARY KEY (dt, ID) NOT ENFORCED
            ) COMMENT 'what was sold' PARTITIONED BY (DT) WITH ('bucket' = '2', file.format = 'orc', 'write-only' = true)
        """
        assert sql.done(text) == "created table shop.orders"
        schema = sql.lake.table("shop.orders").schema
        assert [(field.name, str(field.type), field.description, field.default) for field in schema.fields] == [
            ("id", "BIGINT NOT NULL", "the key", None),
            ("dt", "STRING NOT NULL", None, None),
            ("order", "INT", None, "-5"),
            ("price", "DECIMAL(10, 2) NOT NULL", "in 'euros'", "0.5"),
            ("items", "ARRAY<ROW<`sku` STRING NOT NULL, `n` INT>>", None, None),
            ("done", "BOOLEAN", None, "false"),
            ("day", "DATE", None, "2026-01-02"),
            ("note", "VARCHAR(5)", None, "none"),
            ("nothing", "INT", None, None),
        ]
        assert (schema.primary_keys, schema.partition_keys) == (("dt", "id"), ("dt",))
        assert schema.options == {"bucket": "2", "file.format": "orc", "write-only": "true"}
        assert schema.comment == "what was sold"

    def test_other_spellings(self, sql: SqlSession) -> None:
        sql.rows(
            "CREATE TABLE shop.a (id INT PRIMARY KEY, v STRING) USING paimon TBLPROPERTIES ('comment' = 'hi', 'bucket' = 3)",
            "CREATE TABLE shop.b (v INT, CONSTRAINT pk PRIMARY KEY (v)) OPTIONS ('bucket' = '-1')",
            "CREATE TABLE shop.c (v INT) PARTITIONED BY (dt STRING COMMENT 'day', h INT)",
            "CREATE TABLE shop.d (v INT, p INT) TBLPROPERTIES ('primary-key' = 'v,p', 'partition' = 'p')",
        )
        a, b, c, d = (sql.lake.table(f"shop.{name}").schema for name in "abcd")
        assert (a.primary_keys, a.comment, a.options) == (("id",), "hi", {"bucket": "3"})
        assert b.primary_keys == ("v",)
        assert (c.names, c.partition_keys, c.field("dt").description) == (("v", "dt", "h"), ("dt", "h"), "day")
        assert (d.primary_keys, d.partition_keys) == (("v", "p"), ("p",))

    def test_the_default_database_is_made_with_its_first_table(self, sql: SqlSession) -> None:
        sql.fails("CREATE TABLE t (a INT, b INT) WITH ('bucket' = '2')", "'bucket-key' must name", kind=InvalidError)
        assert sql.lake.databases() == ["shop"]
        assert sql.done("CREATE TABLE t (a INT)") == "created table default.t"
        assert sql.lake.databases() == ["default", "shop"]

    def test_only_once(self, sql: SqlSession) -> None:
        sql.rows("CREATE TABLE shop.t (a INT)")
        sql.fails("CREATE TABLE shop.t (b INT)", r"table 'shop\.t' exists", kind=AlreadyExistsError)
        sql.fails("CREATE TABLE SHOP.T (b INT)", r"table 'shop\.t' exists", kind=AlreadyExistsError)
        assert sql.done("CREATE TABLE IF NOT EXISTS shop.T (b INT)") == "table shop.t exists"
        assert sql.lake.table("shop.t").schema.names == ("a",)

    @pytest.mark.parametrize(
        ("text", "reason", "at"),
        [
            ("CREATE TABLE shop.t", "expected the columns in parentheses, AS or LIKE, found the end", ""),
            ("CREATE TABLE shop.t ()", "expected the name of a column", ")"),
            ("CREATE TABLE shop.t (a)", "expected a type", ")"),
            ("CREATE TABLE shop.t (a INT", "expected ", ""),
            ("CREATE TABLE shop.t (a INT,,)", "expected the name of a column", ",)"),
            ("CREATE TABLE shop.t (,)", "expected the name of a column", ",)"),
            ("CREATE TABLE shop.t (a INT b INT)", r"expected \), found b", "b INT"),
            ("CREATE TABLE shop.t (a INT) junk", "or the end of the statement, found junk", "junk"),
            ("CREATE TABLE shop.t (a INT, A BIGINT)", "column 'A' is given twice", "A BIGINT"),
            ("CREATE TABLE shop.t (a INT) PARTITIONED BY (a INT)", "column 'a' is given twice", "a INT)"),
            ("CREATE TABLE shop.t (price INT, PRIMARY KEY (pirce))", "did you mean price", "pirce"),
            ("CREATE TABLE shop.t (a INT, b INT, PRIMARY KEY (a, A))", "'A' is given twice", "A))"),
            ("CREATE TABLE shop.t (day INT, b INT) PARTITIONED BY (dayy)", "did you mean day", "dayy)"),
            ("CREATE TABLE shop.t (a INT) PARTITIONED BY (days(a))", "not by functions of them", "days"),
            ("CREATE TABLE shop.t (a INT PRIMARY KEY, b INT PRIMARY KEY)", "one primary key", "PRIMARY KEY)"),
            ("CREATE TABLE shop.t (a INT DEFAULT 'x')", "expected a value of type INT, found 'x'", "'x'"),
            ("CREATE TABLE shop.t (a INT DEFAULT 1.5)", "expected a value of type INT", "1.5"),
            (
                "CREATE TABLE shop.t (a STRING DEFAULT NOT NULL)",
                "expected a literal or an expression as the default",
                "NOT",
            ),
            (
                "CREATE TABLE shop.t (a STRING DEFAULT read_text('x'))",
                r"a default does not call read_text\(\)",
                "read_text",
            ),
            ("CREATE TABLE shop.t (a VARCHAR(2) DEFAULT 'long')", "of length 4", "'long'"),
            ("CREATE TABLE shop.t (a ARRAY<INT> DEFAULT '1')", "cannot be written as text", "'1'"),
            ("CREATE TABLE shop.t (a INT UNIQUE)", "UNIQUE: a table checks no UNIQUE", "UNIQUE"),
            ("CREATE TABLE shop.t (a INT, CHECK (a > 1))", "checks no conditions", "CHECK"),
            ("CREATE TABLE shop.t (a INT REFERENCES b)", "no foreign keys", "REFERENCES"),
            ("CREATE TABLE shop.t (a INT, b AS a + 1)", "no computed columns", "AS a"),
            ("CREATE TABLE shop.t (a INT, WATERMARK FOR a AS a)", "no watermarks", "WATERMARK"),
            ("CREATE TABLE shop.t (a INT) LOCATION 'x'", "follows from its name", "LOCATION"),
            ("CREATE TABLE shop.t (a INT) USING parquet", "every table is a Paimon table", "parquet"),
            ("CREATE TABLE shop.t (a INT) COMMENT 'a' COMMENT 'b'", "COMMENT is given twice", "COMMENT 'b'"),
            ("CREATE TABLE shop.t (a INT) WITH ('bukket' = '1')", "did you mean 'bucket'", "'bukket'"),
            ("CREATE TABLE shop.t (a INT) WITH ('bucket' = 'x')", "expected", "'bucket'"),
            ("CREATE TABLE shop.t (a INT) WITH ('bucket' = '1', 'bucket' = '2')", "given twice", "'bucket' = '2'"),
            ("CREATE TABLE shop.t (a INT) WITH ('bucket' '1')", "expected =", "'1'"),
            ("CREATE TABLE shop.t (a INT) WITH ()", "the name of an option", ")"),
            ('CREATE TABLE shop."a.b" (a INT)', "table name 'a.b'", "shop"),
            ("CREATE TABLE shop.t$files (a INT)", "names a system table", "shop"),
            ("CREATE TABLE shop.t$branch_b (a INT)", "CALL sys.create_branch", "shop"),
            ("CREATE TABLE a.b.c.d (a INT)", "found 4 parts", "a.b.c.d"),
            ("CREATE TABLE shop.t (a INT) USING iceberg", "named with its catalog", "iceberg"),
            ("CREATE OR REPLACE TABLE IF NOT EXISTS shop.t (a INT)", "one of them will do", "OR REPLACE"),
            ("CREATE OR REPLACE DATABASE shop", "expected TABLE", "DATABASE"),
            ("CREATE OR TABLE shop.t (a INT)", "expected REPLACE", "TABLE"),
            ("CREATE INDEX i ON t (a)", "CREATE INDEX: .*PRIMARY KEY", "INDEX"),
            ("CREATE UNIQUE INDEX i ON t (a)", "CREATE UNIQUE: .*PRIMARY KEY", "UNIQUE"),
            ("CREATE SEQUENCE s", r"CREATE SEQUENCE: .*uuid\(\)", "SEQUENCE"),
            ("CREATE TRIGGER s AFTER INSERT ON t", "CREATE TRIGGER: .*commit.callbacks", "TRIGGER"),
            ("CREATE OR REPLACE MACRO f(a) AS a", "CREATE MACRO: .*CREATE VIEW", "MACRO"),
            ("CREATE OR REPLACE DATABASE d", "expected TABLE or VIEW", "DATABASE"),
            ("CREATE MACRO f(a) AS a", "CREATE MACRO: .*CREATE VIEW", "MACRO"),
            ("CREATE FUNCTION f(a) AS a", "CREATE FUNCTION: .*CREATE VIEW", "FUNCTION"),
            ("CREATE TYPE f AS ENUM ('a')", "CREATE TYPE: .*STRING", "TYPE"),
            ("CREATE TABLE shop.t (a INT, UNIQUE (a))", "UNIQUE: .*PRIMARY KEY", "UNIQUE"),
            ("CREATE TABLE shop.t (a INT CHECK (a > 1))", "CHECK: .*NOT NULL", "CHECK"),
            ("CREATE TABLE shop.t (a INT, CONSTRAINT c CHECK (a > 1))", "CHECK: .*NOT NULL", "CHECK"),
            ("CREATE TABLE shop.t (a INT, FOREIGN KEY (a) REFERENCES b (a))", "FOREIGN: .*ANTI JOIN", "FOREIGN"),
            ("CREATE TABLE shop.t (a INT, CONSTRAINT c FOREIGN KEY (a) REFERENCES b)", "ANTI JOIN", "FOREIGN"),
            ("CREATE TABEL t (a INT)", "expected TABLE, VIEW, DATABASE or CATALOG, found TABEL", "TABEL"),
        ],
    )
    def test_refused(self, sql: SqlSession, text: str, reason: str, at: str) -> None:
        sql.fails(text, reason, at)

    def test_an_unknown_database(self, sql: SqlSession) -> None:
        sql.fails("CREATE TABLE shopp.t (a INT)", "database 'shopp' is not in .*did you mean shop", kind=NotFoundError)
        sql.fails("CREATE TABLE a.b.c (a INT)", "catalog 'a' is not known", "a.b.c", kind=NotFoundError)


class TestLike:
    @pytest.fixture
    def like(self, sql: SqlSession) -> SqlSession:
        sql.rows(
            """CREATE TABLE shop.t (k INT COMMENT 'key', v STRING DEFAULT 'x', r ROW<a INT COMMENT 'in'>, p INT,
               PRIMARY KEY (k, p)) COMMENT 'source' PARTITIONED BY (p) WITH ('bucket' = '2', 'file.format' = 'orc')"""
        )
        return sql

    def test_has_all_of_the_other(self, like: SqlSession) -> None:
        like.rows("CREATE TABLE shop.u LIKE SHOP.T")
        old, new = (like.lake.table(name).schema for name in ("shop.t", "shop.u"))
        assert new.fields == old.fields
        assert (new.primary_keys, new.partition_keys, new.options, new.comment) == (
            old.primary_keys,
            old.partition_keys,
            old.options,
            old.comment,
        )

    def test_with_other_options_and_comment(self, like: SqlSession) -> None:
        like.rows(
            "CREATE TABLE shop.u LIKE shop.t COMMENT 'copy' WITH ('bucket' = '3')",
            "CREATE TABLE shop.v WITH ('bucket' = '4') LIKE shop.t (EXCLUDING OPTIONS)",
            "CREATE TABLE shop.w LIKE shop.t INCLUDING ALL",
        )
        u, v, w = (like.lake.table(f"shop.{name}").schema for name in "uvw")
        assert (u.options, u.comment) == ({"bucket": "3", "file.format": "orc"}, "copy")
        assert (v.options, v.comment) == ({"bucket": "4"}, "source")
        assert w.options == {"bucket": "2", "file.format": "orc"}

    def test_an_evolved_table_is_numbered_anew(self, like: SqlSession) -> None:
        like.rows(
            "ALTER TABLE shop.t DROP COLUMN v", "ALTER TABLE shop.t ADD COLUMN n INT", "CREATE TABLE shop.u LIKE shop.t"
        )
        new = like.lake.table("shop.u").schema
        assert (new.names, new.highest_field_id) == (("k", "r", "p", "n"), 4)

    def test_versions_of_the_other_are_left_out(self, like: SqlSession) -> None:
        table = like.lake.table("shop.t")
        table.write([{"k": 1, "p": 1}], missing="default")
        like.rows("ALTER TABLE shop.t SET ('scan.snapshot-id' = '1')", "CREATE TABLE shop.u LIKE shop.t")
        assert "scan.snapshot-id" not in like.lake.table("shop.u").schema.options
        assert like.lake.table("shop.u").scan().count() == 0

    def test_refused(self, like: SqlSession) -> None:
        like.fails("CREATE TABLE shop.u LIKE shop.tt", "did you mean t", kind=NotFoundError)
        like.fails("CREATE TABLE shop.u (a INT) LIKE shop.t", "the columns come from the other table", "a INT")
        like.fails("CREATE TABLE shop.u LIKE shop.t PARTITIONED BY (k)", "the keys come from the other table", "k)")
        like.fails("CREATE TABLE shop.u LIKE shop.t$files", "names a system table", "shop.t")
        like.fails("CREATE TABLE shop.u LIKE shop.t EXCLUDING ALL", "leaves nothing", "ALL")
        like.fails("CREATE TABLE shop.u LIKE shop.t AS SELECT 1", "LIKE and AS", "AS SELECT")


class TestAsSelect:
    def test_columns_and_rows_of_a_query(self, sql: SqlSession) -> None:
        message = sql.done("CREATE TABLE shop.t AS SELECT range AS n, 'x' || range AS s, [range] AS l FROM range(3)")
        assert message == "created table shop.t, 3 rows"
        table = sql.lake.table("shop.t")
        assert [(field.name, str(field.type)) for field in table.schema.fields] == [
            ("n", "BIGINT"),
            ("s", "STRING"),
            ("l", "ARRAY<BIGINT>"),
        ]
        assert table.scan().to_arrow().sort_by("n").to_pydict() == {
            "n": [0, 1, 2],
            "s": ["x0", "x1", "x2"],
            "l": [[0], [1], [2]],
        }
        assert len(table.snapshots()) == 1

    @pytest.mark.parametrize(
        ("text", "columns"),
        [
            ("(x, y) AS SELECT 1, 2", ("x", "y")),
            ("(x, y,) AS VALUES (1, 2)", ("x", "y")),
            ("(x) AS SELECT 1 AS a, 2 AS b", ("x", "b")),
            ("(x) AS SELECT 1 AS b, 2 AS b", ("x", "b")),
            ("(a, b_1) AS SELECT 1 AS b, 2 AS b, 3 AS b", ("a", "b_1", "b")),
            ("AS SELECT 1 AS a, 2 AS a", ("a", "a_1")),
            ("AS SELECT 1 AS a, 2 AS A, 3 AS a", ("a", "A_1", "a_2")),
            ("AS SELECT 1 AS a, 2 AS a_1, 3 AS a", ("a", "a_1", "a_2")),
            ("AS SELECT 1 AS a, 2 AS a, 3 AS a_1", ("a", "a_1", "a_1_1")),
            ("AS SELECT 1, 1", ("1", "1_1")),
        ],
    )
    def test_names_of_columns_are_duckdbs(self, sql: SqlSession, text: str, columns: tuple[str, ...]) -> None:
        for create in ("CREATE TABLE shop.x", "CREATE OR REPLACE TABLE shop.x"):
            sql.rows(f"{create} {text}")
            assert sql.session.run("FROM shop.x").columns == columns
        with duckdb.connect() as plain:
            plain.execute(f"CREATE TABLE x {text}")
            assert tuple(row[0] for row in plain.execute("DESCRIBE x").fetchall()) == columns
            assert sql.rows("FROM shop.x") == plain.execute("FROM x").fetchall()

    def test_names_with_a_key(self, sql: SqlSession) -> None:
        sql.rows("CREATE TABLE shop.x (k, p, PRIMARY KEY (k, p)) PARTITIONED BY (p) AS SELECT 1 AS a, 2 AS b, 3 AS c")
        schema = sql.lake.table("shop.x").schema
        assert (schema.primary_keys, schema.partition_keys, schema.names) == (("k", "p"), ("p",), ("k", "p", "c"))

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("(a, b, c) AS SELECT 1, 2", "at most the 2 columns of the query, found 3"),
            ("(a, A) AS SELECT 1, 2", "column 'A' is given twice"),
            ("(b) AS SELECT 1 AS a, 2 AS b", "column 'b' is given twice"),
            ("(x) AS SELECT 1 AS a, 2 AS b, 3 AS b", "column 'b' is given twice"),
            ("(a, b INT) AS SELECT 1, 2", "the columns come from the query"),
            ("(a, b INT)", "expected a type"),
        ],
    )
    def test_names_that_are_refused(self, sql: SqlSession, text: str, reason: str) -> None:
        sql.fails(f"CREATE TABLE shop.x {text}", reason, kind=InvalidError)
        with duckdb.connect() as plain, pytest.raises(duckdb.Error):
            plain.execute(f"CREATE TABLE x {text}")
        assert sql.rows("SHOW TABLES IN shop LIKE 'x'") == []

    def test_with_keys_and_options(self, sql: SqlSession) -> None:
        sql.rows(
            """CREATE TABLE shop.t (PRIMARY KEY (K, p)) COMMENT 'c' PARTITIONED BY (P) WITH ('bucket' = '1')
               AS WITH v AS (VALUES (1, 'x'), (1, 'y'), (1, 'x')) SELECT col0 AS k, col1 AS p FROM v"""
        )
        schema = sql.lake.table("shop.t").schema
        assert (schema.primary_keys, schema.partition_keys, schema.comment) == (("k", "p"), ("p",), "c")
        assert sorted(sql.rows("SELECT * FROM shop.t")) == [(1, "x"), (1, "y")]

    def test_parameters_and_frames(self, sql: SqlSession) -> None:
        frame = pa.table({"a": [1, 2, 3]})
        sql.rows("CREATE TABLE t AS SELECT a + $more AS a FROM f", params={"more": 10}, frames={"f": frame})
        assert sorted(sql.rows("SELECT a FROM t")) == [(11,), (12,), (13,)]

    def test_bytes_and_times(self, sql: SqlSession) -> None:
        sql.rows("CREATE TABLE t AS SELECT '\\xAA'::BLOB AS b, TIME '10:00:00' AS c, $1 AS d", params=["x"])
        assert [str(field.type) for field in sql.lake.table("default.t").schema.fields] == [
            "BYTES",
            "TIME(6)",
            "STRING",
        ]
        assert sql.rows("SELECT * FROM t") == [(b"\xaa", dt.time(10), "x")]

    @pytest.mark.parametrize(("value", "duck_type", "stored"), STORED)
    @pytest.mark.parametrize("inside", ["{}", "[{}]", "{{'x': {}}}", "map {{1: [{}]}}"])
    def test_a_type_that_becomes_another_is_told(
        self, sql: SqlSession, value: str, duck_type: str, stored: str, inside: str
    ) -> None:
        said = sql.done(f"CREATE TABLE t AS SELECT {inside.format(value)} AS a, 1 AS b")
        assert said == f"created table default.t, 1 row; a: {duck_type} is stored as {stored}"
        assert stored in str(sql.lake.table("default.t").schema.field("a").type)
        assert sql.rows("SELECT count(a) FROM t") == [(1,)]

    def test_a_frame_that_can_be_read_once(self, sql: SqlSession) -> None:
        once = pa.table({"a": [b"x"], "t": pa.array([dt.time(1)], pa.time64("us"))}).to_reader()
        sql.rows("CREATE TABLE t AS SELECT * FROM f", frames={"f": once})
        assert sql.rows("SELECT a, t FROM t") == [(b"x", dt.time(1))]

    def test_without_rows(self, sql: SqlSession) -> None:
        sql.rows("CREATE TABLE t AS SELECT 1 AS a WITH NO DATA", "CREATE TABLE u AS SELECT 1 AS a WITH DATA")
        assert sql.rows("SELECT count(*) FROM t") == [(0,)]
        assert sql.rows("SELECT count(*) FROM u") == [(1,)]

    def test_only_where_it_is_not_there(self, sql: SqlSession) -> None:
        sql.rows("CREATE TABLE shop.t (a INT)")
        assert sql.done("CREATE TABLE IF NOT EXISTS shop.t AS SELECT error('not run')") == "table shop.t exists"

    @pytest.mark.parametrize(
        "query",
        [
            "SELECT error('boom') AS a",
            "SELECT CASE WHEN range = 300000 THEN error('boom') ELSE 1 END AS a FROM range(400000)",
            "SELECT nothing FROM range(3)",
            "SELECT * FROM shop.missing",
            "SELECT NULL AS a",
            "SELECT INTERVAL 1 DAY AS a",
            "SELECT 170141183460469231731687303715884105727 AS a",
            "SELECT TIME '10:00:00.123456' AS a",
            "SELECT TIMETZ '10:00:00+01' AS a",
            *(f"SELECT {value} AS a FROM (VALUES (1)) AS v (i)" for value in NO_TYPES),
            *(f"SELECT [{value}] AS a FROM (VALUES (1)) AS v (i)" for value in NO_TYPES),
            *(f"SELECT {{'x': map {{1: {value}}}}} AS a FROM (VALUES (1)) AS v (i)" for value in NO_TYPES),
            "SELEC 1",
        ],
    )
    def test_nothing_stays_of_what_fails(self, sql: SqlSession, query: str) -> None:
        before = sql.files()
        with pytest.raises(LakeletError):
            sql.rows(f"CREATE TABLE shop.t AS {query}")
        assert not sql.lake.table_exists("shop.t")
        assert sql.files() == before

    def test_rows_that_do_not_fit_the_key(self, sql: SqlSession) -> None:
        query = "SELECT CASE WHEN range > 0 THEN range END AS k, 1 AS v FROM range(2)"
        sql.fails(f"CREATE TABLE shop.t (PRIMARY KEY (k)) AS {query}", "NOT NULL", kind=InvalidError)
        assert sql.lake.tables("shop") == []

    def test_errors_of_the_query_are_placed_in_the_statement(self, sql: SqlSession) -> None:
        with pytest.raises(SqlError) as caught:
            sql.rows("CREATE TABLE shop.t\nAS SELECT\n  nothing FROM range(3)")
        assert (caught.value.line, caught.value.column) == (3, 3)

    def test_refused(self, sql: SqlSession) -> None:
        sql.fails("CREATE TABLE shop.t (a INT) AS SELECT 1 AS a", "the columns come from the query", "a INT")
        sql.fails("CREATE TABLE shop.t AS", "expected a query", "")
        sql.fails("CREATE TABLE shop.t PARTITIONED BY (b) AS SELECT 1 AS a, 2 AS bb", "did you mean bb", "b)")

    def test_a_store_that_fails_leaves_no_table(self) -> None:
        inner = MemoryStore()
        SqlSession(inner).rows("CREATE DATABASE shop")
        store = HookedStore(inner)

        def fail() -> None:
            raise UnavailableError("the data file")

        store.when, store.after = lambda call, path: "/bucket-" in path, fail
        with pytest.raises(UnavailableError):
            SqlSession(store).rows("CREATE TABLE shop.t AS SELECT 1 AS a")
        assert not SqlSession(inner).lake.table_exists("shop.t")
