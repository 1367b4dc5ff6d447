"""DESCRIBE."""

import pyarrow as pa
import pytest

from lakelet import NotFoundError
from tests.unit.sql_session import SqlSession


@pytest.fixture
def sql() -> SqlSession:
    made = SqlSession()
    made.rows(
        "CREATE DATABASE d",
        """CREATE TABLE d.t (k INT COMMENT 'key', p STRING, n DECIMAL(4, 1) DEFAULT 1.5, s STRING DEFAULT 'x',
           r ROW<a INT COMMENT 'in', l ARRAY<BIGINT NOT NULL>>, PRIMARY KEY (k, p)) COMMENT 'about it' PARTITIONED BY (p)
           WITH ('bucket' = '1')""",
    )
    return made


COLUMNS = [
    ("k", "INT", "NO", "primary", None, "key"),
    ("p", "STRING", "NO", "primary, partition", None, None),
    ("n", "DECIMAL(4, 1)", "YES", None, "1.5", None),
    ("s", "STRING", "YES", None, "'x'", None),
    ("r", "ROW<`a` INT COMMENT 'in', `l` ARRAY<BIGINT NOT NULL>>", "YES", None, None, None),
]


def test_the_columns_of_a_table(sql: SqlSession) -> None:
    for text in ("DESCRIBE d.t", "DESC D.T", "describe table d.t"):
        assert sql.rows(text) == COLUMNS
    assert sql.session.run("DESC d.t").columns == ("column_name", "column_type", "null", "key", "default", "comment")


def test_one_column(sql: SqlSession) -> None:
    assert sql.rows("DESCRIBE d.t N") == [COLUMNS[2]]
    assert sql.rows("DESC TABLE d.t COLUMN r.a") == [("r.a", "INT", "YES", None, None, "in")]
    assert sql.rows("DESC d.t R.L.element") == [("r.l.element", "BIGINT", "NO", None, None, None)]
    sql.fails("DESCRIBE d.t nn", "column 'nn' is not there", "nn")
    sql.fails("DESCRIBE d.t r.z", "column 'z' is not there; there are a, l", "z")
    sql.fails("DESCRIBE d.t n.z", "has nothing inside", "z")


def test_more_of_a_table(sql: SqlSession) -> None:
    sql.lake.table("d.t").write([{"k": 1, "p": "x"}], missing="default")
    rows = sql.rows("DESCRIBE EXTENDED d.t")
    assert rows[: len(COLUMNS)] == COLUMNS
    facts = dict(row[:2] for row in rows[len(COLUMNS) :])
    assert facts == {
        "": None,
        "# Table": None,
        "Name": "d.t",
        "Location": sql.lake.table("d.t").location,
        "Comment": "about it",
        "Primary key": "k, p",
        "Partitioned by": "p",
        "Schema": "0",
        "Snapshot": "1",
        "Rows stored": "1",
        "Option bucket": "1",
    }
    assert sql.rows("DESC FORMATTED d.t") == rows


def test_a_database(sql: SqlSession) -> None:
    assert sql.rows("DESCRIBE DATABASE D") == [
        ("Name", "d"),
        ("Location", f"{sql.lake.location}/d.db"),
        ("Tables", "1"),
    ]
    sql.fails("DESCRIBE DATABASE e", "database 'e' is not in", kind=NotFoundError)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT 1 AS a, 'x' AS b",
        "(SELECT 1 AS a, 'x' AS b)",
        "FROM (VALUES (1, 'x')) v(a, b)",
        "WITH v AS (SELECT 1 AS a, 'x' AS b) FROM v",
        "frame",
    ],
)
def test_a_query(sql: SqlSession, query: str) -> None:
    frame = pa.table({"a": pa.array([1], pa.int32()), "b": ["x"]})
    rows = sql.rows(f"DESCRIBE {query}", frames={"frame": frame})
    assert [row[:3] for row in rows] == [("a", "INTEGER", "YES"), ("b", "VARCHAR", "YES")]


def test_a_query_over_a_table_and_a_system_table(sql: SqlSession) -> None:
    assert [row[:2] for row in sql.rows("DESCRIBE SELECT k + 1 AS n, p FROM d.t")] == [
        ("n", "INTEGER"),
        ("p", "VARCHAR"),
    ]
    assert ("snapshot_id", "BIGINT") in [row[:2] for row in sql.rows("DESCRIBE d.t$snapshots")]
    assert sql.rows("DESCRIBE range(3)")[0][:2] == ("range", "BIGINT")


def test_refused(sql: SqlSession) -> None:
    sql.fails("DESCRIBE", "expected the name of a table or a query", "")
    sql.fails("DESCRIBE d.tt", "did you mean t", kind=NotFoundError)
    sql.fails("DESCRIBE d.t n junk", "expected the end of the statement", "junk")
    sql.fails("DESCRIBE EXTENDED", "expected the name of a table", "")
    sql.fails("SELECT 1;\n  DESC SELECT nothing FROM d.t", "nothing", "nothing FROM")
