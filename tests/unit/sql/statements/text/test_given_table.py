"""Errors of missing tables and databases: the position of the name, and the nearest name."""

import pytest

from lakelet.sql.lexer.errors import UnknownNameError
from tests.unit.sql_session import SqlSession


@pytest.fixture
def sql() -> SqlSession:
    made = SqlSession()
    made.rows("CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT)")
    return made


@pytest.mark.parametrize(
    "text",
    [
        "DROP TABLE shop.oders",
        "TRUNCATE TABLE shop.oders",
        "ALTER TABLE shop.oders ADD COLUMN a INT",
        "ALTER TABLE shop.oders DROP PARTITION (p = 1)",
        "ALTER TABLE shop.oders RENAME TO x",
        "RENAME TABLE shop.oders TO x",
        "COMMENT ON TABLE shop.oders IS 'x'",
        "COMMENT ON COLUMN shop.oders.id IS 'x'",
        "DESCRIBE shop.oders",
        "DESCRIBE EXTENDED shop.oders",
        "DESCRIBE shop.oders id",
        "SHOW CREATE TABLE shop.oders",
        "SHOW COLUMNS IN shop.oders",
        "SHOW PARTITIONS shop.oders",
        "SHOW TBLPROPERTIES shop.oders",
        "SHOW TAGS IN shop.oders",
        "SHOW BRANCHES IN shop.oders",
        "CREATE TABLE shop.copy LIKE shop.oders",
    ],
)
def test_a_table(sql: SqlSession, text: str) -> None:
    reason = r"table 'shop\.oders' is not in .*did you mean orders"
    sql.fails(text, reason, "shop.oders", kind=UnknownNameError)
    sql.fails(f"SELECT 1;\n{text}", reason, "shop.oders", kind=UnknownNameError)


@pytest.mark.parametrize(
    "text",
    [
        "DROP DATABASE shoop",
        "DROP TABLE shoop.orders",
        "CREATE TABLE shoop.t (a INT)",
        "DESCRIBE DATABASE shoop",
        "SHOW TABLES IN shoop",
        "SHOW COLUMNS IN orders IN shoop",
        "ALTER TABLE shop.orders RENAME TO shoop.orders",
    ],
)
def test_a_database(sql: SqlSession, text: str) -> None:
    sql.fails(text, "database 'shoop' is not in .*did you mean shop", "shoop", kind=UnknownNameError)


def test_a_branch(sql: SqlSession) -> None:
    sql.fails("DESCRIBE shop.orders$branch_dev", "dev", "shop.orders", kind=UnknownNameError)
