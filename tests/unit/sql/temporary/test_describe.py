"""Temporary tables and views in SHOW, DESCRIBE and DuckDB's lists."""

import pytest

from lakelet import InvalidError
from tests.unit.sql_session import SqlSession


@pytest.fixture
def sql() -> SqlSession:
    made = SqlSession()
    made.rows("CREATE DATABASE shop", "USE shop", "CREATE TABLE t (i INT)", "CREATE VIEW sv AS FROM t")
    made.rows(
        "CREATE TEMP TABLE w (i INT PRIMARY KEY, \"B c\" VARCHAR DEFAULT 'x')", "COMMENT ON COLUMN w.i IS 'the i'"
    )
    made.rows("CREATE TEMP VIEW v AS SELECT 1 AS q, i FROM t")
    return made


def test_show(sql: SqlSession) -> None:
    assert sql.column("SHOW TABLES") == ["t", "w"]
    assert sql.column("SHOW TABLES IN shop") == ["t"]
    assert sql.column("SHOW TABLES IN temp") == ["w"]
    assert sql.column("SHOW VIEWS") == ["sv", "v"]
    assert sql.column("SHOW VIEWS LIKE 's%'") == ["sv"]
    assert sql.column("PRAGMA show_tables") == ["sv", "t", "v", "w"]


def test_describe(sql: SqlSession) -> None:
    columns = [("i", "INTEGER", "NO", "primary", None, "the i"), ("B c", "VARCHAR", "YES", None, "'x'", None)]
    for text in ("DESCRIBE w", "DESC TABLE temp.w", "SHOW COLUMNS IN w"):
        assert sql.rows(text) == columns
    assert [row[:2] for row in sql.rows("DESCRIBE v")] == [("q", "INTEGER"), ("i", "INTEGER")]
    assert [row[:2] for row in sql.rows("DESCRIBE SELECT * FROM w, v")] == [
        *(("i", "INTEGER"), ("B c", "VARCHAR"), ("q", "INTEGER"), ("i", "INTEGER")),
    ]


def test_made_again_by_what_is_shown(sql: SqlSession) -> None:
    table, view = sql.column("SHOW CREATE TABLE w")[0], sql.column("SHOW CREATE VIEW v")[0]
    before = sql.rows("DESCRIBE w"), sql.rows("DESCRIBE v")
    sql.rows("DROP TABLE w", "DROP VIEW v", table, view, "COMMENT ON COLUMN w.i IS 'the i'")
    assert (sql.rows("DESCRIBE w"), sql.rows("DESCRIBE v")) == before
    with pytest.raises(InvalidError, match="SHOW CREATE VIEW"):
        sql.rows("SHOW CREATE TABLE v")


def test_lists_of_duckdb(sql: SqlSession) -> None:
    text = "SELECT table_catalog, table_schema, table_name, table_type FROM information_schema.tables ORDER BY ALL"
    assert sql.rows(text) == [
        ("lakelet", "shop", "sv", "VIEW"),
        ("lakelet", "shop", "t", "BASE TABLE"),
        ("temp", "main", "v", "VIEW"),
        ("temp", "main", "w", "LOCAL TEMPORARY"),
    ]
    assert sql.rows("SELECT database_name, table_name, temporary FROM duckdb_tables() ORDER BY ALL") == [
        ("lakelet", "t", False),
        ("temp", "w", True),
    ]
    assert sql.column("SELECT column_name FROM duckdb_columns() WHERE table_name = 'v' ORDER BY ALL") == ["i", "q"]
    assert sql.column("SELECT name FROM pragma_table_info('w')") == ["i", "B c"]
    assert sql.column("SELECT name FROM pragma_table_info('temp.v')") == ["q", "i"]
    assert sql.column("SELECT database_name FROM duckdb_databases()") == ["lakelet"]
    assert sql.rows("SELECT count(*) FROM w, information_schema.tables") == [(0,)]


def test_other_sessions_list_none(sql: SqlSession) -> None:
    other = SqlSession(sql.store)
    other.rows("USE shop")
    assert other.column("SHOW TABLES") == ["t"]
    assert other.column("SELECT table_name FROM information_schema.tables ORDER BY ALL") == ["sv", "t"]
