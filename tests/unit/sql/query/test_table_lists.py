"""DuckDB's lists of tables hold those of the lake, for programs that look there."""

from typing import Any

import pyarrow as pa
import pytest

from lakelet.storage.memory import MemoryStore
from tests.unit.sql_session import SqlSession


@pytest.fixture
def lake() -> SqlSession:
    session = SqlSession()
    session.rows("CREATE DATABASE d", "CREATE DATABASE e", "CREATE DATABASE empty")
    session.rows("CREATE TABLE d.t (id INT NOT NULL COMMENT 'it''s', v STRING, r ROW<a INT>) COMMENT 'all'")
    session.rows("CREATE TABLE e.k (id INT, z TIMESTAMP_LTZ(9), PRIMARY KEY (id) NOT ENFORCED)")
    session.rows("INSERT INTO d.t (id, v) VALUES (7, 'x')", "USE d")
    return session


_TABLE_INFO = [
    (0, "id", "INTEGER", True, None, False),
    (1, "v", "VARCHAR", False, None, False),
    (2, "r", "STRUCT(a INTEGER)", False, None, False),
]


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        (
            "SELECT table_catalog, table_schema, table_name, table_type FROM information_schema.tables ORDER BY ALL",
            [("lakelet", "d", "t", "BASE TABLE"), ("lakelet", "e", "k", "BASE TABLE")],
        ),
        (
            "SELECT table_name, column_name, data_type, is_nullable, column_comment FROM information_schema.columns "
            "ORDER BY table_name, ordinal_position",
            [
                ("k", "id", "INTEGER", "NO", None),
                ("k", "z", "TIMESTAMPTZ_NS", "YES", None),
                ("t", "id", "INTEGER", "NO", "it's"),
                ("t", "v", "VARCHAR", "YES", None),
                ("t", "r", "STRUCT(a INTEGER)", "YES", None),
            ],
        ),
        (
            "SELECT catalog_name, schema_name FROM information_schema.schemata ORDER BY ALL",
            [("lakelet", "d"), ("lakelet", "e"), ("lakelet", "empty")],
        ),
        ("SELECT table_name, comment FROM duckdb_tables() ORDER BY ALL", [("k", None), ("t", "all")]),
        ("SELECT column_name FROM duckdb_columns() WHERE table_name = 'k' ORDER BY ALL", [("id",), ("z",)]),
        ("SELECT database_name, schema_name FROM duckdb_schemas() WHERE schema_name = 'e'", [("lakelet", "e")]),
        ("SELECT database_name FROM duckdb_databases()", [("lakelet",)]),
        ("SELECT view_name FROM duckdb_views()", []),
        ("SELECT schemaname, tablename FROM pg_catalog.pg_tables ORDER BY ALL", [("d", "t"), ("e", "k")]),
        ("SELECT name FROM sqlite_master ORDER BY ALL", [("k",), ("t",)]),
        ("SELECT column_name FROM information_schema.key_column_usage", [("id",)]),
        ("FROM pragma_table_info('t')", _TABLE_INFO),
        ("FROM pragma_table_info('d.T')", _TABLE_INFO),
        ("PRAGMA table_info('d.t')", _TABLE_INFO),
        ("PRAGMA table_info(t)", _TABLE_INFO),
        ("PRAGMA show_tables", [("t",)]),
        (
            "SELECT database, schema, name, column_names FROM (SHOW ALL TABLES) WHERE name = 'k'",
            [("lakelet", "e", "k", ["id", "z"])],
        ),
        ("SHOW TABLES FROM e", [("k",)]),
        ("FROM (SHOW TABLES)", [("t",)]),
        ("FROM (SHOW TABLES FROM e)", [("k",)]),
        ("SELECT current_database(), current_catalog(), current_schema()", [("lakelet", "lakelet", "d")]),
        (
            "SELECT table_name FROM information_schema.tables WHERE table_catalog = current_database() "
            "AND table_schema = current_schema()",
            [("t",)],
        ),
        # A table that is read beside it is still in the list.
        (
            "SELECT i.table_name, t.id FROM information_schema.tables i, t WHERE i.table_type = 'BASE TABLE' ORDER BY ALL",
            [("k", 7), ("t", 7)],
        ),
    ],
)
def test_the_lakes_tables_are_listed(lake: SqlSession, query: str, rows: list[Any]) -> None:
    assert lake.rows(query) == rows
    # Another query at the same time, whose catalog is there, is nobody's business.
    unread = lake.session.run("SELECT * FROM e.k, range(10)")
    assert lake.rows(query) == rows
    unread.close()


def test_all_tables_are_shown_by_a_statement(lake: SqlSession) -> None:
    assert [row[:3] for row in lake.rows("SHOW ALL TABLES")] == [("lakelet", "d", "t"), ("lakelet", "e", "k")]


def test_views_are_listed(lake: SqlSession) -> None:
    lake.rows("CREATE VIEW e.w AS SELECT id AS i, v FROM d.t")
    assert lake.rows("SELECT table_schema, table_name FROM information_schema.tables WHERE table_type = 'VIEW'") == [
        ("e", "w")
    ]
    assert lake.rows("SELECT view_name FROM duckdb_views()") == [("w",)]
    assert [row[1:3] for row in lake.rows("FROM pragma_table_info('e.w')")] == [("i", "INTEGER"), ("v", "VARCHAR")]
    assert lake.rows("SELECT i, table_name FROM e.w, information_schema.tables ORDER BY ALL") == [
        (7, "k"),
        (7, "t"),
        (7, "w"),
    ]


@pytest.mark.parametrize("database", ["d", "D", "e"])
def test_names_that_differ_in_case_alone_are_all_listed(lake: SqlSession, database: str) -> None:
    lake.lake.create_database("D")
    lake.lake.create_table("d.T", pa.schema([("a", pa.int32()), ("A", pa.int32())]))
    lake.lake.create_table("d.u", pa.schema([("a", pa.int32()), ("A", pa.int32())]))
    lake.lake.create_table("D.t", pa.schema([("big", pa.int32())]))
    lake.rows("CREATE VIEW d.V AS SELECT 1 AS one", "CREATE DATABASE f", f"USE {database}")
    listed = [("D", "t"), ("d", "T"), ("d", "V"), ("d", "t"), ("d", "u"), ("e", "k")]
    assert lake.rows("SELECT table_schema, table_name FROM information_schema.tables ORDER BY ALL") == listed
    assert lake.rows("SELECT schema, name FROM (SHOW ALL TABLES) ORDER BY ALL") == listed
    text = "SELECT column_name FROM information_schema.columns WHERE table_schema = '{}' AND table_name = '{}'"
    found = [lake.column(text.format(*name)) for name in (("D", "t"), ("d", "T"), ("d", "t"))]
    assert found == [["big"], ["a"], ["id", "v", "r"]]
    schemas = lake.column("SELECT schema_name FROM information_schema.schemata ORDER BY ALL")
    assert schemas == ["D", "d", "e", "empty", "f"]
    assert lake.column("SELECT name FROM pragma_table_info('d.T')") == ["a"]
    assert lake.column("SELECT name FROM pragma_table_info('D.t')") == ["big"]


class _Counting(MemoryStore):
    """Notes which files are read."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[str] = []

    def get(self, path: str) -> bytes:
        self.read.append(path)
        return super().get(path)


def test_lists_read_schemas_and_only_where_they_are_asked_for() -> None:
    store = _Counting()
    lake = SqlSession(store)
    lake.rows("CREATE DATABASE d", "USE d")
    for number in range(3):
        lake.rows(f"CREATE TABLE t{number} (id INT)", f"INSERT INTO t{number} VALUES (1)")
    store.read.clear()
    lake.rows("FROM information_schema.tables")
    assert {path.split("/")[-2] for path in store.read} == {"schema"}
    store.read.clear()
    lake.rows("SELECT id FROM t1")
    assert not any("/t0/" in path or "/t2/" in path for path in store.read)
    store.read.clear()
    lake.rows("FROM pragma_table_info('t1')")
    assert not any("/t0/" in path or "/t2/" in path for path in store.read)


@pytest.mark.parametrize(
    "text",
    [
        "PRAGMA enable_profiling",
        "PRAGMA enable_object_cache",
        "PRAGMA",
        "PRAGMA table_info",
        "PRAGMA table_info('nope')",
    ],
)
def test_other_pragmas_are_refused(lake: SqlSession, text: str) -> None:
    lake.fails(text, "expected|does not exist")
