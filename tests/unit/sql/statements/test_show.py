"""SHOW in all its forms."""

import datetime as dt

import pytest

from lakelet import NotFoundError
from tests.unit.sql_session import SqlSession


@pytest.fixture
def sql() -> SqlSession:
    made = SqlSession()
    made.rows(
        "CREATE DATABASE shop",
        "CREATE TABLE shop.orders (id INT, day DATE, h INT) PARTITIONED BY (day, h) WITH ('file.format' = 'orc')",
        "CREATE TABLE shop.old_orders (id INT)",
        "CREATE TABLE shop.Customers (id INT)",
    )
    return made


def test_databases(sql: SqlSession) -> None:
    sql.rows("CREATE DATABASE other")
    assert sql.column("SHOW DATABASES") == ["other", "shop"]
    assert sql.column("show schemas like 'SH%'") == ["shop"]
    assert sql.session.run("SHOW DATABASES").columns == ("database",)


def test_the_database_in_use(sql: SqlSession) -> None:
    assert sql.rows("SHOW CURRENT DATABASE") == [("default",)]
    sql.session.context.database = "shop"
    assert sql.rows("SHOW CURRENT SCHEMA") == [("shop",)]


def test_settings(sql: SqlSession) -> None:
    assert sql.rows("SHOW SETTINGS") == []
    assert sql.rows("SET threads = 2", "SHOW SETTINGS") == [("threads", "2")]


class TestTables:
    def test_of_a_database(self, sql: SqlSession) -> None:
        assert sql.column("SHOW TABLES IN shop") == ["Customers", "old_orders", "orders"]
        assert sql.column("SHOW TABLES FROM SHOP") == ["Customers", "old_orders", "orders"]
        # The default database is there as soon as it has a table.
        assert sql.column("SHOW TABLES") == []
        sql.session.context.database = "shop"
        assert sql.column("SHOW TABLES") == ["Customers", "old_orders", "orders"]

    @pytest.mark.parametrize(
        ("pattern", "names"),
        [
            ("LIKE '%orders'", ["old_orders", "orders"]),
            ("LIKE '*orders'", ["old_orders", "orders"]),
            ("'ORDERS'", ["orders"]),
            ("LIKE 'order_'", ["orders"]),
            ("ILIKE 'c%'", ["Customers"]),
            ("NOT LIKE '%o%d%'", ["Customers"]),
            ("LIKE '.*'", []),
            ("LIKE ''", []),
        ],
    )
    def test_by_pattern(self, sql: SqlSession, pattern: str, names: list[str]) -> None:
        assert sql.column(f"SHOW TABLES IN shop {pattern}") == names

    def test_refused(self, sql: SqlSession) -> None:
        sql.fails("SHOW TABLES IN shopp", "did you mean shop", kind=NotFoundError)
        sql.fails("SHOW TABLES IN shop LIKE", "expected a pattern in quotes", "")
        sql.fails("SHOW TABLES IN shop LIKE x", "expected a pattern in quotes", "x")
        sql.fails("SHOW TABLES IN shop junk", "expected the end of the statement", "junk")
        sql.fails("SHOW", "expected DATABASES, TABLES", "")
        sql.fails("SHOW TABELS", "expected DATABASES, TABLES.*found TABELS", "TABELS")


class TestColumns:
    def test_as_describe_shows_them(self, sql: SqlSession) -> None:
        described = sql.rows("DESCRIBE shop.orders")
        for text in ("SHOW COLUMNS IN shop.orders", "SHOW COLUMNS FROM orders FROM shop", "SHOW COLUMNS shop.orders"):
            assert sql.rows(text) == described
        assert sql.column("SHOW COLUMNS IN shop.orders LIKE '%d%'") == ["id", "day"]


class TestOptions:
    def test_all_or_one(self, sql: SqlSession) -> None:
        sql.rows("ALTER TABLE shop.orders SET ('bucket' = '-1')")
        assert sql.rows("SHOW TBLPROPERTIES shop.orders") == [
            ("bucket", "-1"),
            ("file.format", "orc"),
            ("partition.legacy-name", "false"),
        ]
        assert sql.rows("SHOW TBLPROPERTIES shop.orders ('file.format')") == [("file.format", "orc")]
        assert sql.rows("SHOW TBLPROPERTIES shop.orders (file.format)") == [("file.format", "orc")]
        assert sql.rows("SHOW TBLPROPERTIES shop.orders ('write-only')") == []
        sql.fails("SHOW TBLPROPERTIES shop.orders ('file.fromat')", "did you mean file.format", "'file.fromat'")


class TestPartitions:
    def test_those_with_rows(self, sql: SqlSession) -> None:
        assert sql.column("SHOW PARTITIONS shop.orders") == []
        day = dt.date(2026, 1, 2)
        sql.lake.table("shop.orders").write(
            [{"id": 1, "day": day, "h": 10}, {"id": 2, "day": day, "h": 9}, {"id": 3, "day": None, "h": 9}]
        )
        assert sql.column("SHOW PARTITIONS shop.orders") == [
            "day=2026-01-02/h=9",
            "day=2026-01-02/h=10",
            "day=__DEFAULT_PARTITION__/h=9",
        ]
        assert sql.column("SHOW PARTITIONS shop.orders PARTITION (h = 10)") == ["day=2026-01-02/h=10"]
        assert sql.column("SHOW PARTITIONS shop.orders PARTITION (day = DATE '2026-01-02', h = 9)") == [
            "day=2026-01-02/h=9"
        ]
        assert sql.column("SHOW PARTITIONS shop.orders PARTITION (day = NULL)") == ["day=__DEFAULT_PARTITION__/h=9"]
        sql.rows("TRUNCATE TABLE shop.orders")
        assert sql.column("SHOW PARTITIONS shop.orders") == []

    def test_refused(self, sql: SqlSession) -> None:
        sql.fails("SHOW PARTITIONS shop.old_orders", "is not partitioned", "shop")
        sql.fails("SHOW PARTITIONS shop.orders PARTITION (hh = 1)", "'hh' is no partition column", "hh")
        sql.fails("SHOW PARTITIONS shop.order", "did you mean orders", kind=NotFoundError)


class TestVersions:
    def test_tags_and_branches(self, sql: SqlSession) -> None:
        table = sql.lake.table("shop.old_orders")
        table.write([{"id": 1}])
        table.tags.create("first")
        table.branches.create("dev", tag="first")
        assert sql.column("SHOW TAGS shop.old_orders") == ["first"]
        assert sql.column("SHOW BRANCHES IN shop.old_orders") == ["dev"]
        assert sql.column("SHOW TAGS IN shop.old_orders LIKE 'x%'") == []


class TestCreateTable:
    def test_the_statement_that_made_it(self, sql: SqlSession) -> None:
        sql.rows(
            """CREATE TABLE shop.t (id BIGINT, `a b` VARCHAR(5) NOT NULL DEFAULT 'it''s' COMMENT 'x
y', n DECIMAL(5, 1) DEFAULT -1.5, r ROW<`q``` TIMESTAMP(3) COMMENT '--'>, m MULTISET<TIME(3)>, dt STRING,
PRIMARY KEY (id, dt)) COMMENT 'a ''table''' PARTITIONED BY (dt) WITH ('bucket' = '2')"""
        )
        assert sql.column("SHOW CREATE TABLE shop.t") == [
            """CREATE TABLE `shop`.`t` (
  `id` BIGINT NOT NULL,
  `a b` VARCHAR(5) NOT NULL COMMENT 'x
y' DEFAULT 'it''s',
  `n` DECIMAL(5, 1) DEFAULT -1.5,
  `r` ROW<`q``` TIMESTAMP(3) COMMENT '--'>,
  `m` MULTISET<TIME(3)>,
  `dt` STRING NOT NULL,
  PRIMARY KEY (`id`, `dt`) NOT ENFORCED
) COMMENT 'a ''table'''
PARTITIONED BY (`dt`)
WITH (
  'bucket' = '2'
)"""
        ]

    def test_in_the_spelling_of_the_lake(self, sql: SqlSession) -> None:
        assert sql.column("SHOW CREATE TABLE SHOP.CUSTOMERS")[0].startswith("CREATE TABLE `shop`.`Customers` (")

    def test_refused(self, sql: SqlSession) -> None:
        sql.fails("SHOW CREATE TABLE shop.t", r"'shop\.t' is not in", kind=NotFoundError)
        sql.fails("SHOW CREATE TABLE shop.orders$files", "names a system table", "shop")
        sql.fails("SHOW CREATE INDEX v", "expected TABLE, found INDEX", "INDEX")
