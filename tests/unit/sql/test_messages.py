"""Errors of failed statements: in the names of the statement, never in names that Lakelet generated."""

import re
from collections.abc import Iterator

import pyarrow as pa
import pytest

from lakelet.errors import LakeletError
from tests.unit.sql_session import SqlSession

# The catalog of a query, rows that are handed to it, what statements are made of, and tables that stand for others.
_INTERNAL = re.compile(r"lakelet_\w|__lakelet|\w[#@]\d|temp\.main|Use \"SET ")
_NAMES = ("t", "o", "k", "f", "t FOR VERSION AS OF 1")
_QUERIES = (
    "SELECT nope FROM {}",
    "SELECT x.nope FROM {} x",
    "SELECT y.v FROM {} x",
    "SELECT rowid FROM {}",
    "SELECT * FROM {} WHERE nope = 1",
    "SELECT * FROM {} WHERE nope(v)",
    "SELECT * FROM {} WHERE v = DATE '2024-01-01' + v",
    "SELECT CAST('x' || v AS INT) FROM {}",
    "SELECT * EXCLUDE (nope) FROM {}",
    "SELECT COLUMNS('nope') FROM {}",
    "SELECT max(v) OVER (PARTITION BY nope) FROM {}",
    "SELECT v FROM {} GROUP BY id",
    "SELECT (SELECT a.v FROM {} a, t b, t c)",
    "SELECT * FROM {} x JOIN t USING (nope)",
    "SELECT * FROM query('SELECT nope FROM {}')",
    "CREATE TABLE z AS SELECT nope FROM {}",
    "INSERT INTO t SELECT nope, 1 FROM {}",
    "INSERT INTO t SELECT 'x' || v, 1 FROM {}",
)
_CHANGES = (
    "DELETE FROM {} WHERE nope = 1",
    "DELETE FROM {} WHERE rowid = 1",
    "DELETE FROM {} AS x USING o WHERE x.nope = o.id",
    "DELETE FROM {} WHERE CAST('x' || v AS INT) = 1",
    "UPDATE {} SET nope = 1",
    "UPDATE {} SET v = nope",
    "UPDATE {} SET v = 'x' || v",
    "UPDATE {} SET v = (SELECT o.nope FROM o)",
    "MERGE INTO {} AS x USING o ON x.nope = o.id WHEN MATCHED THEN DELETE",
    "MERGE INTO {} AS x USING o ON x.id = o.id WHEN MATCHED AND nope THEN DELETE",
    "MERGE INTO {} AS x USING o ON x.id = o.id WHEN MATCHED THEN UPDATE SET v = o.nope",
    "MERGE INTO {} AS x USING o ON x.id = o.id WHEN MATCHED THEN UPDATE SET v = nope",
    "MERGE INTO {} AS x USING o ON x.id = o.id WHEN NOT MATCHED THEN INSERT VALUES (nope, 1)",
    "INSERT INTO {} VALUES (1, nope)",
    "INSERT INTO {} VALUES (DEFAULT, nope)",
    "INSERT INTO {} (nope) VALUES (1)",
    "SELECT nope FROM {}$files",
    "SELECT nope FROM changes('d.{}', 0, 1)",
    "PIVOT {} ON nope",
    "PIVOT {} ON v USING nope(id)",
    "UNPIVOT {} ON nope",
    "DESCRIBE SELECT nope FROM {}",
    "EXPLAIN SELECT nope FROM {}",
    "SUMMARIZE SELECT nope FROM {}",
)


@pytest.fixture(scope="module")
def lake() -> Iterator[SqlSession]:
    session = SqlSession()
    session.rows("CREATE DATABASE d", "USE d")
    session.rows("CREATE TABLE t (id INT, v INT)", "INSERT INTO t VALUES (1, 1), (2, 2)")
    session.rows("CREATE TABLE o (id INT, v INT) WITH ('file.format' = 'orc')", "INSERT INTO o VALUES (1, 1), (2, 2)")
    session.rows("CREATE TABLE k (id INT, v INT, PRIMARY KEY (id) NOT ENFORCED)", "INSERT INTO k VALUES (1, 1)")
    session.rows("INSERT INTO k VALUES (1, 2)")
    yield session
    session.session.close()


@pytest.mark.parametrize(
    "statement",
    [
        *(query.format(name) for query in _QUERIES for name in _NAMES),
        *(change.format(name) for change in _CHANGES for name in ("t", "o", "k")),
    ],
)
def test_no_internal_name_is_shown(lake: SqlSession, statement: str) -> None:
    with pytest.raises(LakeletError) as caught:
        lake.rows(statement, frames={"f": pa.table({"id": [1], "v": [1]})})
    assert not _INTERNAL.search(str(caught.value)), caught.value


def test_a_table_without_rowid_says_what_gives_numbers(lake: SqlSession) -> None:
    lake.fails("SELECT t.rowid FROM t", r"row_number\(\) OVER", at="t.rowid")
