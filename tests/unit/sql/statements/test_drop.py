"""DROP TABLE, DROP DATABASE and TRUNCATE TABLE."""

import datetime as dt

import pytest

from lakelet import InvalidError, NotFoundError
from tests.unit.sql_session import SqlSession

FIRST = dt.date(2026, 1, 1)


@pytest.fixture
def sql() -> SqlSession:
    made = SqlSession()
    made.rows(
        "CREATE DATABASE shop",
        "CREATE TABLE shop.t (id INT, dt DATE, h INT) PARTITIONED BY (dt, h)",
        "CREATE TABLE shop.plain (id INT)",
    )
    made.lake.table("shop.t").write(
        [
            {"id": number, "dt": day, "h": hour}
            for number, (day, hour) in enumerate([(FIRST, 1), (FIRST, 2), (dt.date(2026, 1, 2), 1), (None, 1)])
        ]
    )
    return made


class TestDropTable:
    def test_goes_with_its_files(self, sql: SqlSession) -> None:
        assert sql.done("DROP TABLE SHOP.T") == "dropped table shop.t"
        assert sql.lake.tables("shop") == ["plain"]
        assert not [path for path in sql.files() if path.startswith("shop.db/t/")]
        assert sql.done("DROP TABLE IF EXISTS shop.t") == "table shop.t does not exist"
        assert sql.done("DROP TABLE IF EXISTS nowhere.t") == "table nowhere.t does not exist"
        assert sql.done("DROP TABLE shop.plain PURGE") == "dropped table shop.plain"

    def test_refused(self, sql: SqlSession) -> None:
        sql.fails("DROP TABLE shop.plian", "did you mean plain", kind=NotFoundError)
        sql.fails("DROP TABLE shopp.t", "did you mean shop", kind=NotFoundError)
        sql.fails("DROP TABLE shop.t shop.plain", "expected the end of the statement", "shop.plain")
        sql.fails("DROP TABLE shop.t$files", "names a system table", "shop")
        sql.fails("DROP TABLE shop.t$branch_b", "CALL sys.delete_branch", "shop")
        sql.fails("DROP", "expected TABLE, VIEW, DATABASE or CATALOG, found the end", "")


@pytest.mark.parametrize("word", ["CASCADE", "RESTRICT"])
def test_nothing_depends_on_a_table_or_a_view(sql: SqlSession, word: str) -> None:
    sql.rows("CREATE TABLE shop.x (i INT)")
    sql.rows("CREATE VIEW shop.vx AS FROM shop.x")
    assert sql.done(f"DROP TABLE shop.x {word}") == "dropped table shop.x"
    assert sql.done(f"DROP TABLE IF EXISTS shop.x {word}") == "table shop.x does not exist"
    assert sql.done(f"DROP VIEW shop.vx {word}") == "dropped view shop.vx"
    sql.fails(f"DROP TABLE shop.t {word} CASCADE", "the end of the statement")


class TestDropDatabase:
    def test_with_tables_only_by_cascade(self, sql: SqlSession) -> None:
        sql.fails("DROP DATABASE shop", r"holds 2 tables \(plain, t\): drop them first, or say CASCADE", "shop")
        sql.fails("DROP DATABASE shop RESTRICT", "holds 2 tables")
        assert sql.done("DROP DATABASE Shop CASCADE") == "dropped database shop"
        assert (sql.lake.databases(), sql.files()) == ([], {})

    def test_empty_or_missing(self, sql: SqlSession) -> None:
        sql.rows("CREATE SCHEMA other", "DROP SCHEMA other")
        assert sql.done("DROP DATABASE IF EXISTS other") == "database other does not exist"
        sql.fails("DROP DATABASE shoop", "did you mean shop", kind=NotFoundError)
        sql.fails("DROP DATABASE shop now", "expected the end of the statement", "now")


class TestTruncate:
    def test_the_whole_table(self, sql: SqlSession) -> None:
        assert sql.done("TRUNCATE TABLE shop.t") == "emptied table shop.t"
        table = sql.lake.table("shop.t")
        assert table.scan().count() == 0
        assert table.scan(version=1).count() == 4
        assert sql.done("TRUNCATE shop.t") == "table shop.t was empty"
        assert sql.done("TRUNCATE TABLE shop.plain") == "table shop.plain was empty"

    def test_partitions(self, sql: SqlSession) -> None:
        table = sql.lake.table("shop.t")
        sql.rows("TRUNCATE TABLE shop.t PARTITION (DT = '2026-01-01', h = 2)")
        assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [0, 2, 3]
        sql.rows("TRUNCATE TABLE shop.t PARTITION (dt = NULL)")
        assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [0, 2]
        sql.rows("TRUNCATE TABLE shop.t PARTITION (h = 1)")
        assert table.scan().count() == 0

    def test_a_primary_key_table_on_a_branch(self, sql: SqlSession) -> None:
        sql.rows("CREATE TABLE shop.k (id INT PRIMARY KEY) WITH ('bucket' = '1')")
        table = sql.lake.table("shop.k")
        table.write([{"id": 1}, {"id": 2}])
        table.tags.create("now")
        table.branches.create("dev", tag="now")
        sql.rows("TRUNCATE TABLE shop.k$branch_dev")
        assert (table.scan().count(), table.on_branch("dev").scan().count()) == (2, 0)

    def test_refused(self, sql: SqlSession) -> None:
        sql.fails("TRUNCATE TABLE shop.tt", "did you mean t", kind=NotFoundError)
        sql.fails("TRUNCATE TABLE shop.t PARTITION (hh = 1)", "'hh' is no partition column of 'shop.t'", "hh")
        sql.fails("TRUNCATE TABLE shop.t PARTITION (h = 1, H = 2)", "'H' is given twice", "H = 2")
        sql.fails("TRUNCATE TABLE shop.t PARTITION (h = 'x')", "'x' is no INT", "'x'")
        sql.fails("TRUNCATE TABLE shop.t PARTITION (dt = DATE 'x')", "is no DATE", "DATE 'x'")
        sql.fails("TRUNCATE TABLE shop.t PARTITION ()", "expected a partition column", ")")
        sql.fails("TRUNCATE TABLE shop.t PARTITION (h)", "expected =", ")")
        sql.fails("TRUNCATE TABLE shop.plain PARTITION (h = 1)", "is not partitioned", "h")
        sql.fails("TRUNCATE TABLE shop.t WHERE id = 1", "expected the end of the statement", "WHERE")
        sql.fails("TRUNCATE TABLE shop.t$branch_dev", "dev", kind=NotFoundError)
        sql.fails("TRUNCATE TABLE a.b.c.d", "found 4 parts", kind=InvalidError)
