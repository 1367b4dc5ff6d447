"""Statements that are prepared and executed with values."""

import pyarrow as pa
import pytest

from lakelet.errors import AlreadyExistsError, LakeletError, NotFoundError
from lakelet.sql.session import Session
from tests.unit.sql_session import SqlSession


@pytest.fixture
def sql() -> SqlSession:
    made = SqlSession()
    made.rows("CREATE TABLE t (id BIGINT, v STRING)", "INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    return made


@pytest.mark.parametrize(
    ("statement", "call"),
    [
        ("SELECT id FROM t WHERE id > ?", "EXECUTE p(1)"),
        ("SELECT id FROM t WHERE id > $1", "EXECUTE P (0 + 1)"),
        ("SELECT id FROM t WHERE id > $least", "EXECUTE p(least := 1)"),
        ("SELECT id FROM t WHERE id > $least AND v = $v", "EXECUTE p(v => 'b', least => 1)"),
        ("WITH x AS (SELECT * FROM t) SELECT id FROM x WHERE id = 2", "EXECUTE p"),
        ("FROM t SELECT id WHERE id = 2", "EXECUTE p()"),
        ("SELECT id FROM t WHERE id > ?", "EXECUTE p((SELECT min(id) FROM t))"),
    ],
)
def test_queries(sql: SqlSession, statement: str, call: str) -> None:
    sql.rows(f"PREPARE p AS {statement}")
    assert sql.rows(call) == [(2,)]
    sql.rows("DELETE FROM t WHERE id = 2")
    # The newest rows, not those of the time when it was prepared.
    assert sql.rows(call) == []


def test_changes(sql: SqlSession) -> None:
    sql.rows("PREPARE add AS INSERT INTO t VALUES ($1, $2)", "EXECUTE add(3, 'c')", "EXECUTE add(4, NULL)")
    sql.rows("PREPARE take AS DELETE FROM t WHERE id = $id", "EXECUTE take(id := 1)")
    assert sorted(sql.rows("SELECT * FROM t")) == [(2, "b"), (3, "c"), (4, None)]


def test_values_of_parameters_and_frames(sql: SqlSession) -> None:
    sql.rows("PREPARE p AS SELECT n + $1 FROM f")
    assert sql.rows("EXECUTE p($1)", params=[5], frames={"f": pa.table({"n": [1]})}) == [(6,)]


def test_they_belong_to_a_session(sql: SqlSession) -> None:
    sql.rows("PREPARE p AS SELECT 1 AS a")
    with pytest.raises(NotFoundError, match="prepared as 'p'"):
        Session(sql.lake).run("EXECUTE p")
    with pytest.raises(AlreadyExistsError, match="DEALLOCATE P"):
        sql.rows("PREPARE P AS SELECT 2 AS a")
    sql.rows("DEALLOCATE PREPARE p", "PREPARE p AS SELECT 2 AS a", "DEALLOCATE ALL")
    sql.fails("EXECUTE p", "prepared as 'p'", "p", kind=NotFoundError)
    sql.fails("DEALLOCATE p", "prepared as 'p'", "p", kind=NotFoundError)


@pytest.mark.parametrize(
    "text",
    [
        "PREPARE p",
        "PREPARE p AS",
        "PREPARE p AS NONSENSE",
        "PREPARE p AS PREPARE q AS SELECT 1",
        "PREPARE p AS EXECUTE p",
        "EXECUTE",
        "DEALLOCATE",
    ],
)
def test_refused(sql: SqlSession, text: str) -> None:
    with pytest.raises(LakeletError):
        sql.rows(text)
    assert not sql.session.context.prepared


def test_values_that_do_not_fit(sql: SqlSession) -> None:
    sql.rows("PREPARE p AS SELECT id FROM t WHERE id = $1 AND v = $2")
    for call in ("EXECUTE p", "EXECUTE p(1)", "EXECUTE p(1, b := 2)", "EXECUTE p(1, 'a') junk"):
        with pytest.raises(LakeletError):
            sql.rows(call)
