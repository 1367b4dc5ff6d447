"""Ownership of temporary objects, and the resolution of their names."""

import threading
from pathlib import Path

import pyarrow as pa
import pytest

from lakelet import InvalidError, Lake, NotFoundError, connect
from lakelet.sql.session import Session
from tests.unit.sql_session import SqlSession


def two_sessions() -> tuple[SqlSession, SqlSession]:
    first = SqlSession()
    first.rows("CREATE DATABASE shop", "USE shop", "CREATE TABLE t (a STRING)", "INSERT INTO t VALUES ('lake')")
    second = SqlSession(first.store)
    second.rows("USE shop")
    return first, second


def test_belong_to_one_session() -> None:
    first, second = two_sessions()
    before = first.files()
    first.rows(
        "CREATE TEMP TABLE t AS SELECT 'first' AS a", "CREATE TEMP VIEW v AS FROM t", "CREATE TEMP TABLE x (i INT)"
    )
    assert second.rows("FROM t") == [("lake",)]
    for text in ("FROM v", "FROM temp.t", "INSERT INTO x VALUES (1)", "DROP VIEW v"):
        with pytest.raises(NotFoundError):
            second.rows(text)
    second.rows("CREATE TEMP TABLE t AS SELECT 'second' AS a")
    assert (first.rows("FROM v"), second.rows("FROM t")) == ([("first",)], [("second",)])
    assert first.files() == before


def test_go_with_the_session() -> None:
    first, _ = two_sessions()
    first.rows("CREATE TEMP TABLE t AS SELECT 'temp' AS a", "CREATE TEMP VIEW v AS SELECT 1")
    first.session.close()
    assert first.rows("FROM t") == [("lake",)]
    with pytest.raises(NotFoundError):
        first.rows("FROM v")
    first.rows("CREATE TEMP TABLE t AS SELECT 'again' AS a")
    assert first.rows("FROM t") == [("again",)]


def test_a_lake_has_one_session_for_all_threads(tmp_path: Path) -> None:
    lake = connect(str(tmp_path))
    lake.sql("CREATE TEMP TABLE n (thread INT, i INT)")
    failures: list[BaseException] = []

    def work(thread: int) -> None:
        try:
            for i in range(10):
                lake.sql("INSERT INTO n VALUES ($1, $2)", [thread, i])
                lake.sql("UPDATE n SET i = i + 100 WHERE thread = $1 AND i = $2", [thread, i])
                lake.sql("SELECT count(*) FROM n").rows()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    expected = [(number, 10, 100, 109) for number in range(4)]
    assert lake.sql("SELECT thread, count(*), min(i), max(i) FROM n GROUP BY ALL ORDER BY 1").rows() == expected
    assert Session(lake).context.temporary.find(("n",)) is None
    assert list(tmp_path.iterdir()) == []


def test_rows_that_are_being_read_stay_when_the_table_goes() -> None:
    first, _ = two_sessions()
    first.rows("CREATE TEMP TABLE big AS SELECT range AS i FROM range(300000)")
    result = first.session.run("SELECT i FROM big")
    batches = result.to_batches()
    rows = next(batches).num_rows
    first.rows("TRUNCATE big", "DROP TABLE big")
    assert rows + sum(batch.num_rows for batch in batches) == 300000


class TestNames:
    def test_before_those_of_the_lake_in_any_case(self) -> None:
        lake = Lake(SqlSession().store)
        lake.create_database("d")
        for name in ("d.t", "d.T"):
            lake.create_table(name, pa.schema([("a", pa.string())])).write(pa.table({"a": [name]}))
        session = SqlSession(lake._store)
        session.rows("USE d", "CREATE TEMP TABLE T AS SELECT 'temp' AS a")
        assert session.rows("SELECT * FROM t, T AS u, temp.t AS w") == [("temp",) * 3]
        found = session.rows("SELECT x.a, y.a, z.a FROM t AS x, d.t AS y, d.T AS z")
        assert found == [("temp", "d.t", "d.T")]
        session.rows("DELETE FROM t WHERE a = T.a", "INSERT INTO d.T SELECT 'new' FROM (SELECT count(*) FROM t)")
        assert session.rows("SELECT a FROM d.T ORDER BY a") == [("d.T",), ("new",)]
        assert session.rows("SELECT count(*) FROM t") == [(0,)]

    def test_behind_what_is_handed_over(self) -> None:
        first, _ = two_sessions()
        first.rows("CREATE TEMP TABLE t AS SELECT 'temp' AS a")
        frame = {"t": pa.table({"a": ["frame"]})}
        assert first.rows("FROM t", frames=frame) == [("frame",)]
        assert first.rows("FROM temp.t", frames=frame) == [("temp",)]
        with pytest.raises(InvalidError, match="both a temporary table and a relation"):
            first.rows("FROM temp.t, t", frames=frame)

    def test_a_database_called_temp(self) -> None:
        first, _ = two_sessions()
        first.rows("CREATE DATABASE temp", "CREATE TABLE temp.x (i INT)", "INSERT INTO temp.x VALUES (1)")
        first.rows("CREATE TEMP TABLE y AS SELECT 2 AS i", "USE temp")
        assert first.rows("SELECT x.i, y.i FROM x, y") == [(1, 2)]
        assert first.rows("SHOW TABLES IN temp") == [("x",)]
